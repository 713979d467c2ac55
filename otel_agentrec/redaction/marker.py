"""What stands in the place of a secret: ``REDACTED(password~1a2b3c4d)``.

One form everywhere: no character of it needs an escape in JSON, a URL, a header or a cookie. The word names the rule. The
eight digits are a keyed digest of what was there, so that a reader can tell whether two places held the same secret; the key
is random, lives only in the memory of one process (and its forked children) and is never written, so nothing can be guessed
from them. ``REDACTED(withheld)`` stands for a value that a rule failed on.
"""

from __future__ import annotations

import re
import secrets
from hashlib import blake2b

__all__ = ["MARKER", "Marker", "holds_marker", "is_marker", "withheld"]

MARKER = re.compile(r"REDACTED\([a-z0-9][a-z0-9.-]{0,63}(?:~[0-9a-f]{8})?\)")


class Marker:
    """Makes markers under one key. Equal secrets get equal digits under any rule."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def of(self, rule: str, secret: str) -> str:
        digits = blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=4, key=self._key).hexdigest()
        return f"REDACTED({rule}~{digits})"


def withheld(rule: str = "withheld") -> str:
    """The marker of a value that was not even looked at."""
    return f"REDACTED({rule})"


def is_marker(text: str) -> bool:
    """Whether a text is one marker and nothing else."""
    return text.startswith("REDACTED(") and MARKER.fullmatch(text) is not None


def holds_marker(text: str) -> bool:
    """Whether something was redacted in a text. (Anybody can write the words of a marker: True is no proof.)"""
    return "REDACTED(" in text and MARKER.search(text) is not None

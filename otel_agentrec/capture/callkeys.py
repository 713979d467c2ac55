"""The keys of calls, made while they are captured: over the values before anything is redacted.

A TOOL's key is made here, from its name and arguments. The key of a MODEL's whole prompt is made of the bytes that
``agent_run`` hands over, or was hung on the span by whoever knows the request, as ``agentrec.key.prompt`` or
``agentrec.key.wire``: made under a secret, it may leave the process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, MutableMapping
from functools import lru_cache
from typing import Any

from otel_agentrec.journal.facts import Facts, Kind
from otel_agentrec.nodes.keys import KeyRing, NoKey, prompt_bytes, tool_key

__all__ = ["KEY_ATTRIBUTES", "CallKeys", "asked_whole", "flag_cut", "limit_of", "ring_at", "take_keys"]

KEY_ATTRIBUTES = {"prompt": "agentrec.key.prompt", "wire": "agentrec.key.wire"}
_MAX_KEY = 1_024
"""Characters of an attribute that can be a key."""


@lru_cache(maxsize=16)
def ring_at(path: str) -> KeyRing:
    """The secret of a recording directory, made when there is none. Raises OSError, RecordingUnreadable."""
    return KeyRing.of(path)


def take_keys(rest: MutableMapping[str, Any]) -> dict[str, str] | None:
    """Move the keys that were hung on a span out of its attributes."""
    found: dict[str, str] = {}
    for scheme, name in KEY_ATTRIBUTES.items():
        key = rest.pop(name, None)
        if isinstance(key, str) and 0 < len(key) <= _MAX_KEY:
            found[scheme] = key
    return found or None


def asked_whole(prompt: object) -> bytes | None:
    """What the key of a prompt is made of; None when it is no whole request (text, a message, a list of them)."""
    is_whole = isinstance(prompt, Mapping) and "role" not in prompt
    is_whole = is_whole or callable(getattr(prompt, "to_json", None)) or dataclasses.is_dataclass(prompt)
    try:
        return prompt_bytes(prompt) if is_whole else None
    except (NoKey, RecursionError):
        return None


class CallKeys:
    """Makes the keys of one recorder's calls.

    Args:
        path: its recording; None: no keys.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path

    def add(self, kind: str, facts: Facts) -> None:
        """Put the key of a call into its facts, if it has one: a disk may be full, a value have no end."""
        if self._path is None:
            return
        try:
            if kind == Kind.TOOL and facts.tool_name and facts.arguments is not None:
                facts.keys = {
                    **(facts.keys or {}),
                    "tool": tool_key(ring_at(self._path), facts.tool_name, facts.arguments),
                }
            elif kind == Kind.MODEL and facts.asked is not None:
                facts.keys = {**(facts.keys or {}), "prompt": ring_at(self._path).digest("prompt", facts.asked)}
        except Exception:
            return


def limit_of(span: Any) -> int | None:
    """Characters of the longest attribute that a started span keeps, where that can be read; None: no limit."""
    limit = getattr(getattr(span, "_limits", None), "max_span_attribute_length", None)
    return limit if isinstance(limit, int) else None


def flag_cut(kind: str, facts: Facts, limits: Collection[int]) -> None:
    """Flag values that are exactly as long as the longest that an SDK keeps: their end may have been cut off."""
    if not limits:
        return
    told = {"input_truncated": facts.arguments, "output_truncated": facts.result}
    if kind == Kind.MODEL:
        told = {"output_truncated": facts.output_text}
    for flag, value in told.items():
        if isinstance(value, str) and len(value) in limits and flag not in facts.flags:
            facts.flags.append(flag)

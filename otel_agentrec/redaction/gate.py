r"""Whether a text can hold anything that the rules look for: a few microseconds for what is clean, as nearly all of it is.

:func:`suspicious` may be wrong only one way: what it calls clean, no default rule would change (tests hold it to that). It takes
the bytes of a text, or of the JSON that holds it.

A search that begins with one letter costs a tenth of one that begins with a choice, so each pattern here begins with a sign
that is rare in texts: the ``:`` or ``=`` behind a name, the hyphen in a key, a capital. To match a name from the sign behind
it, the text is reversed, and so is every word below (``-ks`` is ``sk-``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from otel_agentrec.redaction.names import ENDINGS, QUERY_ENDINGS

__all__ = ["name_behind", "suspicious"]

Search = Callable[[bytes], re.Match[bytes] | None]
_BESIDE = ("value", "values", "val", "v", "raw-headers", "mime-type", "media-type", "content-type")
"""Keys that have their meaning from another key beside them."""


def _fold(byte: int) -> int:
    """Lower case; ``-`` for ``_``; ``|`` for the capitals that shapes are known by."""
    if byte in b"BGIJ":
        return ord("|")
    return ord("-") if byte == ord("_") else ord(chr(byte).lower()) if byte < 128 else byte


_FOLDED = bytes(_fold(byte) for byte in range(256))
_LETTERS = {letter: f"[{letter}|]" for letter in "bgij"} | {"-": "[^a-z0-9|]{0,2}"}


def _trie(words: Iterable[str]) -> str:
    """A pattern of all words that branches at each letter, so that a miss is found at the first one."""
    branches: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""  # a shorter word ends here: nothing more is needed
        branches.setdefault(word[0], []).append(word[1:])
    choices = [_LETTERS.get(letter, letter) + _trie(rest) for letter, rest in branches.items()]
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"


def _behind(sign: str, names: Iterable[str]) -> Search:
    """The sign after one of the names, in a text that is reversed; quotes, blanks and a number may lie between."""
    last_word = _trie(name[::-1] for name in names)
    return re.compile(rf"{sign}[^a-z0-9|]{{0,40}}(?=[a-z0-9|])(?:[0-9]{{1,4}}[^a-z0-9|]?)?{last_word}".encode()).search


def name_behind(sign: str) -> re.Pattern[str]:
    """As the gate looks for names, for a text that is reversed but not folded; ``sign`` is a pattern."""
    names = [*_KEYS, *(name for names in QUERY_ENDINGS.values() for name in names)]
    last_word = _trie(name[::-1] for name in names)
    blank = "[^A-Za-z0-9]"
    pattern = rf"{sign}{blank}{{0,40}}(?=[A-Za-z0-9])(?:[0-9]{{1,4}}{blank}?)?{last_word.replace('[^a-z0-9|]', blank)}"
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


_KEYS = [name for names in ENDINGS.values() for name in names]
_KEYED = _behind(":", [*_KEYS, *_BESIDE])
_ASSIGNED = _behind("=", [*_KEYS, *(name for names in QUERY_ENDINGS.values() for name in names)])
_HYPHENED = re.compile(
    rb"-(?:k[sr](?:[^a-z0-9|]|$|[abefnrtv0|]\\|[0-9a-f|]{2}(?:[%=]|x\\)|[0-7]{3}\\|[0-9a-f|]{4}u\\|[mk][0-9;]{0,20}\[)"
    rb"|[cdeoprsab]xox|[opusr]hg|tap|ksg|ceshw|8r|fh|mpn|taphs|ssphs|acphs|ipa-nil|1v-pod|[kt][sp]-2vsl"
    rb"|ipyp|iax|xlpp|ylvt|ipavn|talpg|yek-terces|ppax)"
).search
_CAPITAL = re.compile(rb"\|(?:ye|[ks]a|-----|(?<=az\|)a|(?<=\.\|)s|(?<=rerae\|)|(?<=c[i|]sa\|))").search
_FLAG = re.compile(rb"--[a-z0-9|-]{0,32}(?:key|token|secret|pass|pwd|cookie|cred|auth|jwt|bearer|connect|otp)").search
_USERINFO = re.compile(rb"://[^\s/?#\"'<>\\]{1,4096}@").search
_BEARER = re.compile(rb"b(?<=reraeb)").search
_GOOGLE = re.compile(rb"9(?=2ay)").search
_PAIRS = re.compile(rb"\[(?=[\s\\nrt]{0,16}\[[\s\\nrt]{0,16}\")").search
_NO_JSON = re.compile(rb"\{(?=\\{0,8}\"\$(?:b64|u16|map)\\{0,8}\")").search
_HIDDEN = re.compile(rb"\\(?=u00[2-7])").search
_ENCODED_SIGNS = ((b"%3D", b"="), (b"%3d", b"="), (b"%3A", b":"), (b"%3a", b":"))


def suspicious(data: bytes) -> bool:
    """Whether a default rule may find something in a text, or in a JSON text (UTF-8, ASCII not escaped)."""
    if b"%" in data:
        for encoded, sign in _ENCODED_SIGNS:
            data = data.replace(encoded, sign)
    folded = data.translate(_FOLDED)
    reverse = folded[::-1]
    return (  # whether one byte is there at all costs next to nothing
        (b":" in data and _KEYED(reverse) is not None)
        or (b"-" in folded and (_HYPHENED(reverse) is not None or _FLAG(folded) is not None))
        or (b"|" in folded and _CAPITAL(reverse) is not None)
        or _BEARER(reverse) is not None
        or (b"9" in data and _GOOGLE(reverse) is not None)
        or (b"[" in data and _PAIRS(data) is not None)
        or (b"=" in data and _ASSIGNED(reverse) is not None)
        or (b"@" in data and _USERINFO(data) is not None)
        or (b"$" in data and _NO_JSON(data) is not None)
        or (b"\\" in data and _HIDDEN(data) is not None)
    )

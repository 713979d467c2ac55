r"""Strings inside a text that may itself stand in a string: ``"``, ``\"``, ``\\\"`` …: at which level a quote stands, and where
the string that it opens ends."""

from __future__ import annotations

__all__ = ["closing_quote", "slashes_before"]


def slashes_before(text: str, at: int, start: int = 0) -> int:
    """The number of backslashes that end at offset ``at``, none before ``start`` counted."""
    first = at
    while first > start and text[first - 1] == "\\":
        first -= 1
    return at - first


def closing_quote(text: str, at: int, quote: str, level: int) -> int:
    r"""Offset of the backslash or quote that closes the string whose contents begin at ``at``; -1 when it is cut off.

    Args:
        level: backslashes before the opening quote: 0, 1, 3, 7 … one more string around it each time. At level k a quote
            inside the string has 2k + 1 backslashes, and one that closes it k, not counting pairs that are backslashes of
            the string itself.
    """
    start, step = at, 2 * (level + 1)
    while True:
        at = text.find(quote, at)
        if at < 0:
            return -1
        slashes = slashes_before(text, at, start)
        if slashes % step == level:
            return at - level
        if slashes < level:  # a quote of a string around this one
            return at - slashes
        at += 1
        start = at

"""Rules by a pattern of the text: those of the user, and two that must be asked for, ``email`` and ``card``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = ["OPTIONAL", "TextPattern", "is_card_number"]

Json = Any

_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])", re.ASCII)
_CARD = re.compile(r"(?<![\w.-])(?:[0-9][ -]?){12,18}[0-9](?![\w-])", re.ASCII)


class TextPattern:
    """Withholds what matches, in every string and every key of a value.

    Args:
        make: (rule, secret) -> what stands in its place.
        judge: False for a match that is none after all.
    """

    def __init__(
        self,
        name: str,
        pattern: re.Pattern[str],
        make: Callable[[str, str], str],
        judge: Callable[[str], bool] = bool,
    ) -> None:
        self.name = name
        self._pattern = pattern
        self._make = make
        self._judge = judge

    def __call__(self, value: Json, at: tuple[str, ...] = ()) -> Json:
        if isinstance(value, str):
            new = self._pattern.sub(self._judged, value)
            return value if new == value else new
        if isinstance(value, dict):
            made = {self(key) if isinstance(key, str) else key: self(held) for key, held in value.items()}
            return value if all(key in made and made[key] is held for key, held in value.items()) else made
        if isinstance(value, (list, tuple)):
            items = [self(held) for held in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def _judged(self, found: re.Match[str]) -> str:
        return self._make(self.name, found[0]) if self._judge(found[0]) else found[0]


def is_card_number(text: str) -> bool:
    """Whether digits are a card number: 13 to 19 of them that pass the check of Luhn, not all the same."""
    digits = [int(c) for c in text if c.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [d if i % 2 == 0 else 2 * d - 9 * (d > 4) for i, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


OPTIONAL: dict[str, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    "email": (_EMAIL, bool),
    "card": (_CARD, is_card_number),
}
"""Words of the setting -> pattern, and what decides on a match."""

"""The gate between what was seen and what is written: all that the journal keeps passes a :class:`Redactor` here.

A value is checked in its canonical bytes, where one look at them tells that nearly all values hold no secret; only what looks
suspicious is taken apart again.
"""

from __future__ import annotations

from typing import Any

from otel_agentrec.journal.canonical import (
    MAX_BYTES,
    canonical,
    canonical_any,
    denormalise,
    from_canonical,
    normalise,
)
from otel_agentrec.journal.events import content_of
from otel_agentrec.journal.facts import RawList
from otel_agentrec.journal.lists import parsed
from otel_agentrec.redaction import Redactor

__all__ = ["OWN_EVENTS", "Gate"]

Json = Any
Place = tuple[str, ...]


class Gate:
    """Args:
    redactor: the rules; default: the default rules.
    value_bytes: of a value that is larger in canonical bytes, the large parts are cut; at most ``MAX_BYTES``.
    """

    def __init__(self, redactor: Redactor | None = None, value_bytes: int = MAX_BYTES) -> None:
        self.redactor = redactor if redactor is not None else Redactor()
        self.value_bytes = value_bytes

    def value(self, value: Any, at: Place, *, cell: bool) -> bytes:
        """The canonical bytes of a content value as they may be kept; ``cell``: as the value of a cell."""
        data = canonical_any(value, cell=cell)
        if len(data) > self.value_bytes:
            data = canonical(normalise(value, cell=cell, max_bytes=self.value_bytes))
        return self._redacted(data, at)

    def elements(self, values: list[bytes], at: Place) -> list[bytes]:
        """The canonical bytes of new elements of a list as they may be kept."""
        if any(len(value) > self.value_bytes for value in values):
            values = [self._cut(value) for value in values]
        if not values or self.redactor.is_clean(b"\n".join(values)):
            return values
        at = (*at, "*")
        return [self._redacted(value, at) for value in values]

    def identifier(self, text: str | None) -> str | None:
        """An id of the envelope as it may be kept."""
        if not isinstance(text, str) or self.redactor.is_clean(text.encode("utf-8", "surrogatepass")):
            return text
        return self.redactor.identifier(text)

    def record(self, type_: str, payload: dict[str, Any]) -> dict[str, Any]:
        """A payload after the rules that must see all of it; the same object when there are none."""
        if self.redactor.per_element:
            return payload
        whole = denormalise(normalise({key: _parsed(value) for key, value in payload.items()}))
        return self.redactor.record(type_, whole)

    def payload(self, type_: str, payload: dict[str, Any]) -> dict[str, Any]:
        """A payload as it may be handed on without being written: plain Python data, with all its content."""
        plain: dict[str, Any] = {}
        held: list[tuple[Place, Any, str]] = []
        contents = content_of(type_)
        payload = self.record(type_, payload)
        _part(payload, plain, (), contents, held)
        plain = self.redactor.payload(plain)
        for at, value, kind in held:
            into: Any = plain
            for key in at[:-1]:
                into = into.setdefault(key, {})
            into[at[-1]] = self._content(value, at, kind)
        return plain

    def _cut(self, data: bytes) -> bytes:
        if len(data) <= self.value_bytes:
            return data
        return canonical(normalise(denormalise(from_canonical(data)), cell=True, max_bytes=self.value_bytes))

    def _redacted(self, data: bytes, at: Place) -> bytes:
        if self.redactor.is_clean(data):
            return data
        tree = from_canonical(data)
        new = self.redactor.value(tree, at)
        if new is tree:
            return data
        try:
            return canonical(new)
        except ValueError:  # a rule of the user made something that JSON can't say
            return canonical(self.redactor.withhold())

    def _content(self, value: Any, at: Place, kind: str) -> Any:
        within = (*at, "*")
        if isinstance(value, RawList):
            if self.redactor.is_clean(value.text.encode("utf-8", "surrogatepass")):
                return value
            items = _parsed(value)
            if isinstance(items, str):
                return RawList(self.redactor.text(items), value.element)
            value = items
        if kind == "list" and isinstance(value, (list, tuple)):
            return [self.redactor.value(item, within) for item in value]
        return self.redactor.value(value, at)


OWN_EVENTS = Gate(Redactor(credentials=False))
"""For the journal's own bookkeeping (names of streams, sizes, hashes): nothing in it was seen, and no rule may change it."""


def _parsed(value: Any) -> Any:
    """A value with its RawLists parsed."""
    if isinstance(value, dict):
        return {key: _parsed(held) for key, held in value.items()}
    return parsed(value)


def _part(
    node: dict[str, Any], plain: dict[str, Any], at: Place, contents: dict[str, str], held: list[tuple[Place, Any, str]]
) -> None:
    """Part a payload into what is content and what is not."""
    for key, value in node.items():
        place = (*at, key)
        path = ".".join(place)
        if path in contents:
            held.append((place, value, contents[path]))
        elif isinstance(value, dict) and any(p.startswith(path + ".") for p in contents):
            plain[key] = {}
            _part(value, plain[key], place, contents, held)
        else:
            plain[key] = value

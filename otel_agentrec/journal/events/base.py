"""What every typed event is: a frozen dataclass whose fields are the keys of the event's ``payload`` (camelCase on disk)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from otel_agentrec.journal.facts import CONTENT as FACT_CONTENT
from otel_agentrec.records import camel

__all__ = ["FACTS", "FORMAT", "TYPES", "Generic", "Json", "Payload", "content_of", "event", "keys_of", "payload_of"]

Json = Any
FORMAT = "agentrec/1"

FACTS = {f"facts.{key}": how for key, how in FACT_CONTENT.items()}


@dataclass(frozen=True)
class Payload:
    """Base of all payloads. ``content`` names the dotted paths that hold content: ``"one"`` value or a ``"list"``."""

    event_type: ClassVar[str] = ""
    ignorable: ClassVar[bool] = False
    content: ClassVar[dict[str, str]] = {}

    def to_json(self) -> dict[str, Json]:
        """The payload as it is sealed: camelCase keys, absent (None) ones left out."""
        return {key: v for name, key in keys_of(type(self)) if (v := getattr(self, name)) is not None}


@dataclass(frozen=True)
class Generic(Payload):
    """An event of a type this version does not know, kept as it is."""

    event_type: ClassVar[str] = "GENERIC"
    ignorable: ClassVar[bool] = True
    name: str = ""
    data: dict[str, Json] | None = None


TYPES: dict[str, type[Payload]] = {}
P = TypeVar("P", bound=Payload)


def event(
    type_: str, *, ignorable: bool = False, content: dict[str, str] | None = None
) -> Callable[[type[P]], type[P]]:
    """Register a payload class under its event type."""

    def register(cls: type[P]) -> type[P]:
        made = dataclass(frozen=True)(cls)
        made.event_type, made.ignorable, made.content = type_, ignorable, content or {}
        TYPES[type_] = made
        return made

    return register


def payload_of(type_: str, payload: dict[str, Json]) -> Payload:
    """The typed payload of an event; unknown keys are ignored, an unknown type or a missing key gives Generic."""
    cls = TYPES.get(type_)
    if cls is None:
        return Generic(name=type_, data=payload)
    try:
        return cls(**{name: payload[key] for name, key in keys_of(cls) if key in payload})
    except TypeError:
        return Generic(name=type_, data=payload)


def content_of(type_: str) -> dict[str, str]:
    """Dotted payload paths that hold content for an event type -> ``"one"`` or ``"list"``."""
    cls = TYPES.get(type_)
    return cls.content if cls else {}


_KEY_CACHE: dict[type[Payload], list[tuple[str, str]]] = {}


def keys_of(cls: type[Payload]) -> list[tuple[str, str]]:
    """(field name, payload key) pairs; a trailing underscore only keeps a name off Python's keywords."""
    if cls not in _KEY_CACHE:
        _KEY_CACHE[cls] = [(f.name, camel(f.name.rstrip("_"))) for f in dataclasses.fields(cls)]
    return _KEY_CACHE[cls]

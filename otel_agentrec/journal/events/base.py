"""What every typed event is: a frozen dataclass whose fields are the keys of the event's ``payload`` (camelCase on disk)."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from otel_agentrec.errors import EventInvalid
from otel_agentrec.journal.facts import CONTENT as FACT_CONTENT
from otel_agentrec.records import camel

__all__ = [
    "FACTS",
    "FORMAT",
    "TYPES",
    "Generic",
    "Json",
    "Payload",
    "checked",
    "content_of",
    "event",
    "keys_of",
    "payload_of",
]

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


if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        """As in Python 3.11: tells type checkers what :func:`event` makes of a class."""
        return lambda decorator: decorator


TYPES: dict[str, type[Payload]] = {}
P = TypeVar("P", bound=Payload)


@dataclass_transform(frozen_default=True)
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


def checked(type_: str, payload: dict[str, Json]) -> Payload:
    """The typed payload of an event that somebody wants to append. None counts as absent.

    Raises:
        EventInvalid: the type is not known, a key is not one of its keys, is missing, or holds what it can't hold.
    """
    cls = TYPES.get(type_)
    if cls is None:
        raise EventInvalid(f"there is no event type {type_!r}", "reading keeps unknown types; writing does not")
    kinds = _kinds(type_)
    given = {key: value for key, value in payload.items() if value is not None}
    for key, value in given.items():
        if key not in kinds:
            raise EventInvalid(f"{type_} has no key {key!r}", f"its keys are {', '.join(kinds)}")
        _, kind, _ = kinds[key]
        if kind is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise EventInvalid(f"{key} of {type_} is {_said(type(value))}, not {_said(kind)}")
    for key, (_, _, needed) in kinds.items():
        if needed and key not in given:
            raise EventInvalid(f"{type_} without {key}")
    return cls(**{kinds[key][0]: value for key, value in given.items()})


def _said(kind: type) -> str:
    return {"str": "text", "int": "a whole number", "dict": "an object", "list": "a list"}.get(
        kind.__name__, kind.__name__
    )


@functools.cache
def _kinds(type_: str) -> dict[str, tuple[str, type | None, bool]]:
    """Payload key -> (field name, the class that its value must have or None for any, whether it must be there)."""
    cls = TYPES[type_]
    hints, kinds = typing.get_type_hints(cls), {}
    for field, (name, key) in zip(dataclasses.fields(cls), keys_of(cls), strict=True):
        hint = hints[name]
        if typing.get_origin(hint) in (types.UnionType, typing.Union):
            hint = next(a for a in typing.get_args(hint) if a is not type(None))
        hint = typing.get_origin(hint) or hint
        kinds[key] = (
            name,
            hint if isinstance(hint, type) and hint is not Any else None,
            field.default is dataclasses.MISSING,
        )
    return kinds


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

"""What a Python object says in JSON terms: dataclasses, pydantic models, times, sets, arrays and all the rest.

Only for values that are not JSON already. Nothing here raises, and nothing is used up: an iterator is named, never read,
since the agent still needs what it holds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import os
import re
import types
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Any

__all__ = ["Unordered", "plain", "plain_event", "public_attributes", "type_name"]

_TIMES = (datetime.date, datetime.time)  # a datetime is a date
_FORMED = (
    *(str, int, float, bytes, bytearray, memoryview, type(None)),
    *(enum.Enum, Mapping, Sequence, Set, *_TIMES, datetime.timedelta, os.PathLike, BaseException),
)
_FORMED_BY = ("__dataclass_fields__", "__attrs_attrs__", "model_dump", "dtype")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Unordered(list[Any]):
    """The members of a set; whoever reads this list chooses their order."""


def plain(value: object, limit: int) -> object:
    """The value as None, bool, int, float, str, bytes, list, dict or :class:`Unordered`; its members may be anything.

    Never raises: of a value whose own code fails, its public attributes are taken, or else the name of its type.

    Args:
        limit: at most this many members are taken, plus one (a ``range``, or a sequence that lies, can be endless).
    """
    try:
        return _plain(value, limit)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic inside a Rust extension is no Exception
        return public_attributes(value) or type_name(type(value))


def public_attributes(value: object) -> dict[str, object] | None:
    """The public attributes of an instance, slots included; None when it has none or they can't be read."""
    found: dict[str, object] = {}
    try:
        for base in reversed(type(value).__mro__):
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                with contextlib.suppress(AttributeError):
                    found[name] = getattr(value, name)
        found.update(getattr(value, "__dict__", {}))
        return {name: x for name, x in found.items() if not name.startswith("_")} or None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return None


def type_name(kind: type) -> str:
    """``<module.Name>``, read past any metaclass that has its own idea of names."""
    module = type.__dict__["__module__"].__get__(kind)
    name = type.__dict__["__qualname__"].__get__(kind)
    return f"<{module}.{name}>" if type(module) is str else f"<{name}>"


def _plain(value: Any, limit: int) -> object:
    kind = type(value)  # never isinstance: __class__ can lie or raise
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return memoryview(value).tobytes()
    if issubclass(kind, enum.Enum):
        return value._value_
    if issubclass(kind, dict):
        return dict.copy(value)
    if issubclass(kind, Mapping):
        return dict(islice(value.items(), limit + 1))
    if issubclass(kind, Sequence):
        return list(islice(value, limit + 1))
    if issubclass(kind, Set):
        return Unordered(islice(value, limit + 1))
    if hasattr(kind, "__dataclass_fields__"):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if hasattr(kind, "__attrs_attrs__"):
        return {f.name: getattr(value, f.name) for f in kind.__attrs_attrs__}
    if hasattr(kind, "model_dump"):
        return _model(value)
    if hasattr(kind, "dtype") and hasattr(kind, "tolist"):  # arrays and scalars of numpy, torch, pandas
        return value.tolist()
    if issubclass(kind, types.SimpleNamespace):
        return dict.copy(value.__dict__)
    if issubclass(kind, _TIMES):
        return value.isoformat()
    if issubclass(kind, datetime.timedelta):
        return value.total_seconds()
    if issubclass(kind, os.PathLike):
        return os.fspath(value)
    if issubclass(kind, BaseException):
        return f"{kind.__qualname__}: {value}"
    return _text(value, kind)


def _model(value: Any) -> object:
    """What a pydantic model (or one that looks like it) dumps."""
    try:
        dumped = value.model_dump(warnings=False)
    except TypeError:
        dumped = value.model_dump()
    # What dumps a model again could do so for ever.
    return _text(value, type(value)) if hasattr(type(dumped), "model_dump") else dumped


def _text(value: object, kind: Any) -> object:
    """Its own text if its class defines one; else its public attributes; else its type.

    Memory addresses are left out: the same object of the next run must read the same.
    """
    if kind.__str__ is not object.__str__:
        return str.__str__(str(value))
    if kind.__repr__ is not object.__repr__:
        return _ADDRESS.sub("", str.__str__(repr(value)))
    return public_attributes(value) or type_name(kind)


def plain_event(event: object) -> object:
    """An event object that has no plain form but its own text, by its public attributes; anything else as it is.

    A text may leave out what was changed; the attributes don't.
    """
    kind = type(event)
    try:
        formed = issubclass(kind, _FORMED) or any(hasattr(kind, name) for name in _FORMED_BY)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        formed = False
    return event if formed else public_attributes(event) or event

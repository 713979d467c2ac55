"""Python values as JSON and back, exactly: what a tool gave is what it gives on resume, type by type.

A node that JSON does not know is an object with the key ``__py__``: ``{"__py__": "tuple", "items": [1, 2]}``. The result is
meant to be kept as text (:func:`to_text`), since canonical JSON forgets the order of keys and that ``1.0`` is no ``1``,
which a model that is shown ``str(result)`` would notice.

Nothing is pickled. A value is made again by the constructor of its class, and only for the kinds below.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import sys
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from otel_agentrec.intercept.tools.classes import class_named, name_of

__all__ = ["NotKept", "from_text", "same", "to_text"]

Json = Any
TAG = "__py__"
PLAIN = (str, int, float, bool, type(None))


class NotKept(Exception):
    """A value that would not come back as it is; the message says which and why."""


def to_text(value: Any) -> str:
    """The JSON text of a value from which :func:`from_text` makes the same one.

    Raises:
        NotKept: it would not be the same.
    """
    try:
        text = json.dumps(_tree(value), ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError:  # half a character: \ud800 keeps it
            text = json.dumps(_tree(value))
        back = from_text(text)
    except NotKept:
        raise
    except RecursionError:
        raise NotKept(f"{_class(value)}: nested too deeply, or contains itself") from None
    except Exception as error:
        raise NotKept(f"{_class(value)}: {type(error).__name__}: {error}") from error
    if not same(value, back):
        raise NotKept(f"{_class(value)}: what is read back differs")
    return text


def from_text(text: str) -> Any:
    """The value again.

    Raises:
        ValueError, TypeError, LookupError: a class is gone or has changed, or the text is not of :func:`to_text`.
    """
    return _value(json.loads(text))


def same(a: Any, b: Any) -> bool:
    """Equal and of the same types all the way down, keys in the same order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return repr(a) == repr(b)
    if isinstance(a, dict):
        return len(a) == len(b) and all(
            same(x, y) and same(v, w) for (x, v), (y, w) in zip(a.items(), b.items(), strict=True)
        )
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, (dt.datetime, dt.time)):
        return bool(a == b) and a.fold == b.fold and type(a.tzinfo) is type(b.tzinfo)
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name, None), getattr(b, f.name, None)) for f in dataclasses.fields(a))
    return bool(a == b)


def _class(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


# --- to JSON ------------------------------------------------------------------------------------------------------------


def _tree(value: Any) -> Json:
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is list:
        return [_tree(item) for item in value]
    if kind is dict:
        if TAG not in value and all(type(key) is str for key in value):
            return {key: _tree(item) for key, item in value.items()}
        return _tagged("dict", items=[[_tree(key), _tree(item)] for key, item in value.items()])
    if isinstance(value, enum.Enum):
        return _tagged("enum", cls=_named(kind), value=_tree(value.value))
    write = _WRITERS.get(kind)
    if write is not None:
        return _tagged(kind.__name__, **write(value))
    if isinstance(value, pathlib.PurePath) and kind.__module__.startswith("pathlib"):
        return _tagged("path", cls=kind.__name__, text=str(value))
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return _tagged("namedtuple", cls=_named(kind), items=[_tree(item) for item in value])
    if _pydantic_base() is not None and isinstance(value, _pydantic_base()):
        text = value.model_dump_json(round_trip=True, by_alias=True, exclude_unset=True, warnings=False)
        return _tagged("pydantic", cls=_named(kind), value=json.loads(text))
    if dataclasses.is_dataclass(value):
        fields = {f.name: _tree(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        return _tagged("dataclass", cls=_named(kind), fields=fields)
    raise NotKept(f"{_class(value)}: no codec knows it")


def _tagged(tag: str, **more: Json) -> dict[str, Json]:
    return {TAG: tag, **more}


def _named(cls: type) -> dict[str, str]:
    name = name_of(cls)
    if name is None:
        raise NotKept(f"{cls.__module__}.{cls.__qualname__}: another process can't find this class by its name")
    return name


def _items(value: Any) -> dict[str, Json]:
    return {"items": [_tree(item) for item in value]}


def _bytes(value: bytes | bytearray) -> dict[str, Json]:
    return {"base64": base64.b64encode(value).decode()}


def _text(value: Any) -> dict[str, Json]:
    return {"text": str(value)}


def _time(value: dt.datetime | dt.time) -> dict[str, Json]:
    zone = value.tzinfo
    key = getattr(zone, "key", None)
    if zone is None or isinstance(zone, dt.timezone):
        return {"text": value.isoformat(), "fold": value.fold}
    if isinstance(key, str):
        return {"text": value.replace(tzinfo=None).isoformat(), "fold": value.fold, "zone": key}
    raise NotKept(f"{_class(value)} in a time zone of {_class(zone)}")


_WRITERS: dict[type, Callable[[Any], dict[str, Json]]] = {
    tuple: _items,
    set: _items,
    frozenset: _items,
    OrderedDict: lambda value: {"items": [[_tree(key), _tree(item)] for key, item in value.items()]},
    bytes: _bytes,
    bytearray: _bytes,
    complex: lambda value: {"items": [value.real, value.imag]},
    range: lambda value: {"items": [value.start, value.stop, value.step]},
    decimal.Decimal: _text,
    uuid.UUID: _text,
    dt.datetime: _time,
    dt.time: _time,
    dt.date: lambda value: {"text": value.isoformat()},
    dt.timedelta: lambda value: {"items": [value.days, value.seconds, value.microseconds]},
}


# --- and back -----------------------------------------------------------------------------------------------------------


def _value(tree: Json) -> Any:
    if isinstance(tree, list):
        return [_value(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if TAG not in tree:
        return {key: _value(item) for key, item in tree.items()}
    return _READERS[tree[TAG]](tree)


def _found(tree: dict[str, Json], base: type) -> Any:
    cls = class_named(tree["cls"], base)
    if cls is None:
        name = tree["cls"]
        raise LookupError(f"there is no class {name.get('module')}.{name.get('name')} in this process")
    return cls


def _each(tree: dict[str, Json]) -> list[Any]:
    return [_value(item) for item in tree["items"]]


def _pairs(tree: dict[str, Json]) -> list[tuple[Any, Any]]:
    return [(_value(key), _value(item)) for key, item in tree["items"]]


def _read_bytes(tree: dict[str, Json]) -> bytes:
    return base64.b64decode(tree["base64"], validate=True)


def _read_time(cls: Any) -> Callable[[dict[str, Json]], Any]:
    def read(tree: dict[str, Json]) -> Any:
        value = cls.fromisoformat(tree["text"]).replace(fold=tree["fold"])
        if "zone" in tree:
            from zoneinfo import ZoneInfo

            value = value.replace(tzinfo=ZoneInfo(tree["zone"]))
        return value

    return read


def _read_path(tree: dict[str, Json]) -> Any:
    cls = getattr(pathlib, tree["cls"])
    if not issubclass(cls, pathlib.PurePath):
        raise TypeError(f"{tree['cls']} is no path")
    return cls(tree["text"])


def _read_namedtuple(tree: dict[str, Json]) -> Any:
    cls = _found(tree, tuple)
    if not hasattr(cls, "_fields"):
        raise TypeError(f"{cls.__qualname__} has no fields")
    return cls(*_each(tree))


def _read_dataclass(tree: dict[str, Json]) -> Any:
    cls = _found(tree, object)
    if not hasattr(cls, "__dataclass_fields__"):
        raise TypeError(f"{cls.__qualname__} is no dataclass")
    return cls(**{name: _value(item) for name, item in tree["fields"].items()})


def _read_pydantic(tree: dict[str, Json]) -> Any:
    base = _pydantic_base()
    if base is None:
        raise LookupError("pydantic is not loaded")
    return _found(tree, base).model_validate_json(json.dumps(tree["value"]))


def _pydantic_base() -> Any:
    return getattr(sys.modules.get("pydantic"), "BaseModel", None)


_READERS: dict[str, Callable[[dict[str, Json]], Any]] = {
    "dict": lambda tree: dict(_pairs(tree)),
    "OrderedDict": lambda tree: OrderedDict(_pairs(tree)),
    "tuple": lambda tree: tuple(_each(tree)),
    "set": lambda tree: set(_each(tree)),
    "frozenset": lambda tree: frozenset(_each(tree)),
    "bytes": _read_bytes,
    "bytearray": lambda tree: bytearray(_read_bytes(tree)),
    "complex": lambda tree: complex(*tree["items"]),
    "range": lambda tree: range(*tree["items"]),
    "Decimal": lambda tree: decimal.Decimal(tree["text"]),
    "UUID": lambda tree: uuid.UUID(tree["text"]),
    "datetime": _read_time(dt.datetime),
    "time": _read_time(dt.time),
    "date": lambda tree: dt.date.fromisoformat(tree["text"]),
    "timedelta": lambda tree: dt.timedelta(*tree["items"]),
    "enum": lambda tree: _found(tree, enum.Enum)(_value(tree["value"])),
    "path": _read_path,
    "namedtuple": _read_namedtuple,
    "dataclass": _read_dataclass,
    "pydantic": _read_pydantic,
}

"""Arguments of a Python call, ``{args: […], kwargs: {…}}``, as decorators and some frameworks record tool arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects.values import loaded

__all__ = ["by_name"]

Json = Any

_KEYS = {"args", "kwargs", "sanitize_inputs_outputs"}
"""The last one is a switch of smolagents, not an argument."""


def by_name(value: Json, schema: Json = None) -> dict[str, Json] | None:
    """The arguments by name; None when ``value`` is no recorded call.

    Args:
        schema: the tool's parameters where they are known: a JSON schema, or an object of ``name: {type, …}``; may be JSON
            text. Positional arguments get their names from it.
    """
    if not isinstance(value, Mapping) or "kwargs" not in value or not value.keys() <= _KEYS:
        return None
    args, kwargs, names = value.get("args") or (), value["kwargs"], _names(schema)
    if not isinstance(kwargs, Mapping) or not isinstance(args, (list, tuple)) or "kwargs" in names:
        return None
    free = [name for name in names if name not in kwargs]
    if len(args) > len(free):
        return {"args": list(args), "kwargs": dict(kwargs)} if args else dict(kwargs)
    return {**dict(zip(free, args, strict=False)), **kwargs}


def _names(schema: Json) -> list[str]:
    schema = loaded(schema)
    if not isinstance(schema, Mapping):
        return []
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        return list(properties)
    return list(schema) if all(isinstance(v, Mapping) for v in schema.values()) else []

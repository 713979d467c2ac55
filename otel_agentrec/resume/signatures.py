"""A tool's signature: its arguments as JSON members, what is left out of them, and its result in the annotated type."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import sys
import typing
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from otel_agentrec.errors import ConfigurationError, UsageError

__all__ = ["Signature", "decoded"]

_INJECTED_NAMES = frozenset({"self", "cls", "ctx"})
_INJECTED_CLASSES = ("Context", "Runtime")


class Signature:
    """Args:
        tool: the function.
        leave_out: parameters that are no arguments of the call.
        key: the parameter that takes the idempotency key; None: there is none.

    Raises:
        ConfigurationError: the function has no such parameter.
    """

    def __init__(self, tool: Callable[..., Any], leave_out: Iterable[str] = (), key: str | None = None) -> None:
        self.key = key
        try:
            self._signature = inspect.signature(tool)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{tool!r} tells no parameters", "wrap it in a function that has some") from error
        parameters = self._signature.parameters
        has_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        for name in (*leave_out, *([key] if key is not None else [])):
            if name not in parameters and not (has_any and name == key):
                raise ConfigurationError(f"{getattr(tool, '__name__', tool)} has no parameter {name!r}")
        self._tool = tool
        self._left_out = {*leave_out, *([key] if key is not None else [])}
        self._left_out |= {name for name, p in parameters.items() if _is_injected(name, p.annotation)}
        self._hints: dict[str, Any] | None = None

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, defaults applied.

        Raises:
            TypeError: they do not fit.
        """
        if self.key is not None and self.key not in kwargs:
            bound = self._signature.bind_partial(*args, **kwargs)
        else:
            bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self._signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                given.update(value)
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                given[name] = list(value)
            else:
                given[name] = value
        return {name: value for name, value in given.items() if name not in self._left_out}

    def with_key(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], key: str
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with the idempotency key as an argument; one that the caller gives is replaced."""
        assert self.key is not None
        bound = self._signature.bind_partial(*args, **kwargs)
        if self.key in self._signature.parameters:
            bound.arguments[self.key] = key
            return bound.args, bound.kwargs
        return args, {**kwargs, self.key: key}

    def result(self, value: Any) -> Any:
        """A result in the type that the tool's annotation names, when plain JSON stands for it (a result that somebody gave
        by hand, with ``resolve``); any other comes as it is."""
        if value is None or not isinstance(value, (dict, list, str, int, float)):
            return value
        if self._hints is None:
            try:
                self._hints = typing.get_type_hints(self._tool)
            except Exception:
                self._hints = {}
        wanted = self._hints.get("return")
        return value if wanted is None else decoded(wanted, value)


def decoded(wanted: Any, value: Any) -> Any:
    """A JSON value as the annotated type: dataclass, pydantic model, Enum, datetime, date, UUID, Decimal, and lists,
    dicts and optionals of them. What fits already, or fits nothing, is returned as it is.

    Raises:
        UsageError: the type refuses the value.
    """
    try:
        return _decoded(wanted, value)
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        raise UsageError(f"{value!r} is no {getattr(wanted, '__name__', wanted)}: {error}") from error


def _from_iso(cls: Any) -> Callable[[str], Any]:
    return lambda text: cls.fromisoformat(text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text)  # Python 3.10


_TEXTS: dict[type, Callable[[str], Any]] = {
    dt.datetime: _from_iso(dt.datetime),
    dt.date: dt.date.fromisoformat,
    dt.time: _from_iso(dt.time),
    uuid.UUID: uuid.UUID,
    decimal.Decimal: decimal.Decimal,
}


def _decoded(wanted: Any, value: Any) -> Any:
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Annotated:
        return _decoded(parts[0], value)
    if origin is typing.Union or (origin is not None and getattr(origin, "__name__", "") == "UnionType"):
        return _first(parts, value)
    if origin in (list, tuple) and isinstance(value, list) and parts and parts[-1] is not Ellipsis and len(parts) == 1:
        return origin(_decoded(parts[0], item) for item in value)
    if origin is dict and isinstance(value, dict) and len(parts) == 2:
        return {name: _decoded(parts[1], item) for name, item in value.items()}
    if not isinstance(wanted, type) or origin is not None:
        return value
    if wanted in _TEXTS:
        return _TEXTS[wanted](value) if isinstance(value, str) else value
    if issubclass(wanted, enum.Enum) and not isinstance(value, wanted):
        return wanted(value)
    if isinstance(value, dict) and dataclasses.is_dataclass(wanted):
        hints = typing.get_type_hints(wanted)
        return wanted(**{name: _decoded(hints.get(name), item) for name, item in value.items()})
    pydantic: Any = sys.modules.get("pydantic")
    if isinstance(value, dict) and pydantic is not None and issubclass(wanted, pydantic.BaseModel):
        validate: Any = wanted
        return validate.model_validate(value)
    return value


def _first(parts: tuple[Any, ...], value: Any) -> Any:
    """Of a union: the first type that takes the value and makes something of it."""
    for part in parts:
        try:
            made = _decoded(part, value)
        except (TypeError, ValueError, KeyError, ArithmeticError):
            continue
        if made is not value:
            return made
    return value


def _is_injected(name: str, annotation: Any) -> bool:
    if name in _INJECTED_NAMES:
        return True
    if annotation is inspect.Parameter.empty:
        return False
    if typing.get_origin(annotation) is typing.Annotated:
        marks = typing.get_args(annotation)[1:]
        if any("Injected" in (m.__name__ if isinstance(m, type) else type(m).__name__) for m in marks):
            return True
        annotation = typing.get_args(annotation)[0]
    if isinstance(annotation, str):  # as `from __future__ import annotations` leaves it
        if "Annotated[" in annotation and "Injected" in annotation:
            return True
        text = annotation.rpartition("Annotated[")[2]
    else:
        text = getattr(typing.get_origin(annotation) or annotation, "__name__", "")
    return any(word in text.partition("[")[0] for word in _INJECTED_CLASSES)

"""Exceptions of tools as JSON, and raised again as the same class.

An exception is made again without its ``__init__`` (whose arguments nobody knows): its class, its ``args``, and those of
its attributes that can be kept. What can't be found again comes as :class:`RecordedToolError` with the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.intercept.tools.classes import class_named
from otel_agentrec.intercept.tools.values import NotKept, from_text, to_text

__all__ = ["RecordedToolError", "error_again", "error_kept"]

Json = Any
CAUSES = 4
"""Length of the chain of causes that is kept."""


class RecordedToolError(Exception):
    """A tool failed in the recorded run with an exception whose class this process does not have.

    ``original``: module and name of that class.
    """

    def __init__(self, message: str, original: str) -> None:
        super().__init__(message)
        self.original = original


def error_kept(error: BaseException, causes: int = CAUSES) -> dict[str, Json]:
    """``{type, module, message, args?, state?, cause?, group?}``; ``args`` and the values of ``state`` are texts of
    :mod:`~otel_agentrec.intercept.tools.values`. Never raises an Exception."""
    cls = type(error)
    kept: dict[str, Json] = {"type": cls.__qualname__, "module": cls.__module__, "message": _message(error)}
    inner = getattr(error, "exceptions", None)
    if isinstance(inner, tuple) and all(isinstance(one, BaseException) for one in inner):  # an ExceptionGroup
        kept["group"] = [error_kept(one, causes - 1) for one in inner] if causes else []
        kept["args"] = _text([str(error.args[0])] if error.args else [""])
    elif isinstance(error, OSError) and error.filename is not None:  # its args forget the names of files
        kept["args"] = _text([error.errno, error.strerror, error.filename, None, error.filename2])
    else:
        kept["args"] = _text(list(error.args))
    state = {name: _text(value) for name, value in getattr(error, "__dict__", {}).items()}
    kept["state"] = {name: text for name, text in state.items() if text is not None}
    if error.__cause__ is not None and causes:
        kept["cause"] = error_kept(error.__cause__, causes - 1)
    return {name: value for name, value in kept.items() if value not in (None, {})}


def error_again(kept: Mapping[str, Json]) -> Exception:
    """The exception that :func:`error_kept` was given, as a new object of the same class. Never raises.

    Only subclasses of Exception are made: a recording stops no process.
    """
    message, original = str(kept.get("message", "")), f"{kept.get('module')}.{kept.get('type')}"
    error: Exception | None = None
    cls = class_named({"module": kept.get("module"), "name": kept.get("type")}, Exception, load=True)
    if cls is not None:
        try:
            error = _made(cls, kept)
        except Exception:
            error = None
    if error is None or _message(error) != message:
        plain = _plain(cls, message)
        error = plain if plain is not None else error or RecordedToolError(message, original)
    if isinstance(kept.get("cause"), Mapping):
        error.__cause__ = error_again(kept["cause"])
    return error


def _made(cls: type[Exception], kept: Mapping[str, Json]) -> Exception:
    args = from_text(kept["args"]) if "args" in kept else [kept["message"]]
    if "group" in kept:
        args = [args[0], [error_again(one) for one in kept["group"]]]
    if cls.__module__ == "builtins":
        error: Exception = cls(*args)  # UnicodeDecodeError and its like are filled by their own __init__
    else:
        error = cls.__new__(cls, *args)
        if not isinstance(error, OSError) and "group" not in kept:
            error.args = tuple(args)
    for name, text in (kept.get("state") or {}).items():
        error.__dict__[name] = from_text(text)
    return error


def _plain(cls: type[Exception] | None, message: str) -> Exception | None:
    """``cls(message)`` when that reads as it should."""
    if cls is None:
        return None
    try:
        error = cls(message)
    except Exception:
        return None
    return error if _message(error) == message else None


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _text(value: Any) -> str | None:
    try:
        return to_text(value)
    except NotKept:
        return None

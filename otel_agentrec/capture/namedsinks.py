"""Sinks by name: what the setting ``sinks`` makes of its words, and what a recording says of the sinks it had."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from otel_agentrec.errors import ConfigurationError
from otel_agentrec.nodes.sinks import JsonlIoCaptureSink
from otel_agentrec.records import IoCaptureSink

__all__ = ["names_of", "sinks_of"]

_CALLABLE = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*(?:\.[^\W\d]\w*)*)")


def sinks_of(sinks: Iterable[IoCaptureSink | str]) -> list[IoCaptureSink]:
    """The sinks themselves; of the names among them, ``module:callable`` is called and gives one, any other is a file.

    Raises:
        ConfigurationError: the callable can't be imported or fails, or what it gives is no sink.
    """
    return [_named(sink) if isinstance(sink, str) else sink for sink in sinks]


def names_of(sinks: Iterable[object]) -> list[str]:
    """What a sink is, and its file where it has one: erasing a recording does not reach it."""
    return [
        f"{type(one).__name__} {path}" if (path := getattr(one, "path", None)) else type(one).__name__ for one in sinks
    ]


def _named(name: str) -> IoCaptureSink:
    parts = _CALLABLE.fullmatch(name)
    if parts is None:
        return JsonlIoCaptureSink(Path(name).absolute())
    module, attribute = parts.groups()
    try:
        make: Any = importlib.import_module(module)
        for part in attribute.split("."):
            make = getattr(make, part)
        sink = make()
    except Exception as error:  # the user's own code
        raise ConfigurationError(
            f"sinks={name!r}: {error}",
            "the module must be importable where the program runs, the callable take no argument",
        ) from error
    if not isinstance(sink, IoCaptureSink):
        raise ConfigurationError(f"sinks={name!r} gives no sink", "a sink has capture(record) and close()")
    return sink

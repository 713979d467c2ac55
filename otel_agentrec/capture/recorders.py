"""The recorders of this process: one per path, found or made, and what belongs to all of them."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterable
from typing import Any

from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.recorder import RECORDERS, Recorder, place_of
from otel_agentrec.capture.ways import EXPORTER, FROM_OUTSIDE, WITH_WIRE
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.journal.gate import Gate
from otel_agentrec.records import IoCaptureSink
from otel_agentrec.redaction import Redactor
from otel_agentrec.settings import Settings

__all__ = [
    "gate_of_process",
    "is_recording",
    "listeners_of_process",
    "open_recorders",
    "recorder_at",
    "recorder_in_use",
]

_BY_PATH: dict[str, Recorder] = {}
_LOCK = threading.Lock()


def recorder_at(
    settings: Settings, *, sinks: Iterable[IoCaptureSink | str] = (), way: str, from_outside: bool | None = None
) -> Recorder:
    """The recorder of this process for a path: the one that is there and not closed, else a new one.

    Where a way from outside records the process, or is about to, there is one recorder whatever the paths say.

    Raises:
        ConfigurationError: no path.
    """
    with _LOCK:
        place = place_of(settings.path) if settings.path else ""
        open_ones = [recorder for recorder in _BY_PATH.values() if not recorder.is_closed]
        whole = way in FROM_OUTSIDE if from_outside is None else from_outside
        found = next((one for one in open_ones if whole or one.is_from_outside or one.place == place), None)
        if found is None:
            found = _BY_PATH[place] = Recorder(settings, sinks=sinks, way=way, from_outside=whole)
            return found
    if found.place != place:
        found.notices.once("place", f"already recording to {found.path} through {found.way}, not to {settings.path}")
    if found.way == EXPORTER:  # whatever comes besides it gives more, and is named from now on
        found.way = way
    found.add_sinks(sinks)
    if settings.enabled and (settings.wire or (settings.wire is None and way in WITH_WIRE)):
        found.guard.run("recording the wire", found.watch_wire)
    return found


def open_recorders() -> list[Recorder]:
    """All recorders of this process that are not closed."""
    return [recorder for recorder in list(RECORDERS) if not recorder.is_closed]


def recorder_in_use() -> Recorder | None:
    """The open recorder that is meant when nobody names one: of the whole process, else the one that was opened last."""
    with _LOCK:
        known = [one for one in _BY_PATH.values() if not one.is_closed]
    candidates = known or open_recorders()
    return next((one for one in candidates if one.is_from_outside), candidates[-1] if candidates else None)


def gate_of_process() -> Gate:
    """What is passed by what leaves the process without a recorder (sinks of an ``agent_run``, content on its spans): the gate
    of an open recorder, else one as the environment says; the default rules where it says nonsense."""
    for recorder in open_recorders():
        return recorder.gate
    return _gate_of(os.environ.get("OTEL_AGENTREC_REDACT") or "default")


@functools.lru_cache(maxsize=8)
def _gate_of(setting: str) -> Gate:
    try:
        return Gate(Redactor.from_setting(setting))
    except ConfigurationError as error:
        PROCESS.swallow("the setting redact", error)
        return Gate()


def is_recording() -> bool:
    """Whether a recorder of this process is open."""
    return bool(open_recorders())


def listeners_of_process() -> list[Any]:
    """The listeners that ``configure`` was given, of all recorders that are open."""
    return [listener for recorder in open_recorders() for listener in recorder.listeners]


def _after_fork_in_child() -> None:
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

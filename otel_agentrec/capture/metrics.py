"""What recording itself does, as OTel metrics of the process; their names are fixed.

Instruments are made through the global meter provider, which hands them on to whatever provider is set later. Counters are
read from the recorders when somebody collects. Writes are timed only once there is an SDK to tell; they leave their durations
in a bounded list, and these become measurements at the next collection, never at the write: an SDK takes locks for a
measurement, and a span that the garbage collector ends inside such a lock is written by the same thread.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Histogram, Observation

from otel_agentrec._version import __version__
from otel_agentrec.capture.guard import PROCESS, Counters

__all__ = ["METER", "WRITE_DURATION", "timing", "watch", "wrote"]

METER = "otel_agentrec"
WRITE_DURATION = "agentrec.write.duration"
WRITE_DESCRIPTION = "Time to write one event to the journal"

COUNTERS: dict[str, tuple[str, str]] = {
    "records": ("{record}", "Events written to the journal"),
    "dropped": ("{record}", "Things that should have been recorded and were not"),
    "swallowed": ("{exception}", "Exceptions that were kept from reaching the program"),
    "late": ("{record}", "Events that came after the stream was sealed"),
    "evicted": ("{span}", "Open spans that were given up because too many were open"),
    "bytes": ("By", "Bytes written to the journal, events and content"),
    "forwarded": ("{span}", "Spans handed on to other processors"),
    "spans.sent": ("{span}", "Spans that an OTLP receiver took from our exporter"),
    "spans.lost": ("{span}", "Spans that it did not take"),
    "events.sent": ("{record}", "Events of the journal that an OTLP receiver took"),
    "events.lost": ("{record}", "Events of the journal that it did not take"),
}
"""Name behind ``agentrec.`` -> (unit, description). It is counted under the same name with ``_`` for a dot."""

BOUNDS = tuple(x * 10.0**e for e in range(-5, 1) for x in (1, 2.5, 5))
"""Bucket bounds of the write duration, from 10 µs to 5 s."""

MOST = 65_536
"""Durations that wait for a collection; beyond that the oldest are forgotten."""

timing = False
"""Are writes to be timed?"""
_waiting: deque[int] = deque(maxlen=MOST)
_watched: dict[int, tuple[Counters, Counter[str]]] = {}
_retired: Counter[str] = Counter()
"""Sums of recorders that are gone: a counter never falls."""
_lock = threading.Lock()
_made_by: Any = None
_instruments: list[object] = []


def wrote(nanoseconds: int) -> None:
    """An event was written in this time."""
    _waiting.append(nanoseconds)


def watch(recorder: object, own: Counters, journal: Counter[str]) -> None:
    """Count a recorder in, and make the instruments where there are none yet.

    Args:
        own: the recorder's counters.
        journal: those of its journal.
    """
    _watched[id(own)] = (own, journal)
    weakref.finalize(recorder, _retire, own, journal).atexit = False
    _make_instruments()


def _retire(own: Counters, journal: Counter[str]) -> None:
    if _watched.pop(id(own), None) is not None:
        _retired.update(_counts(own, journal))


def _counts(own: Counters, journal: Mapping[str, int]) -> dict[str, int]:
    keys = ((name, name.replace(".", "_")) for name in COUNTERS)
    return {name: own.counts.get(key, 0) + journal.get(key, 0) for name, key in keys}


def _make_instruments() -> None:
    """Once per meter provider. Those of the proxy, which stands for a provider that is set later, are never made anew."""
    global _made_by
    with _lock:
        provider = metrics.get_meter_provider()
        if _made_by is provider or _is_proxy(_made_by):
            return
        _made_by = provider
        meter = provider.get_meter(METER, __version__)
        duration = meter.create_histogram(
            WRITE_DURATION,
            "s",
            WRITE_DESCRIPTION,
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        # the first counter that is asked hands the durations over: the same collection then has them
        _instruments[:] = [duration, *(_make_counter(meter, name, duration) for name in COUNTERS)]


class _Callbacks(list[Any]):
    """The callbacks of an instrument. Only an SDK goes through them, when the real instrument is made: writes are timed
    from then on. The proxy that the API hands out before there is an SDK just keeps them."""

    def __iter__(self) -> Iterator[Any]:
        _start_timing()
        return super().__iter__()


def _start_timing() -> None:
    global timing
    timing = True


def _make_counter(meter: metrics.Meter, name: str, duration: Histogram) -> object:
    unit, description = COUNTERS[name]

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        try:
            _start_timing()
            _hand_over(duration)
            return [Observation(_total(name))]
        except Exception as error:
            PROCESS.swallow("a metric", error)
            return []

    return meter.create_observable_counter(f"agentrec.{name}", _Callbacks([observe]), unit, description)


def _is_proxy(provider: object) -> bool:
    return type(provider).__name__ == "_ProxyMeterProvider"


def _total(name: str) -> int:
    total = _retired[name] + PROCESS.counters.counts.get(name.replace(".", "_"), 0)
    return total + sum(_counts(*pair)[name] for pair in list(_watched.values()))


def _hand_over(duration: Histogram) -> None:
    for _ in range(len(_waiting)):
        try:
            nanoseconds = _waiting.popleft()
        except IndexError:  # another reader collects at the same time
            return
        duration.record(nanoseconds / 1e9)


def _after_fork_in_child() -> None:
    """The child counts from 0, as its recorders do."""
    global _lock
    _lock = threading.Lock()
    _retired.clear()
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

"""A cache that is fed with what a recorder records."""

from __future__ import annotations

from typing import Protocol

from otel_agentrec.capture.callkeys import ring_at
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.records import IoCaptureSink

__all__ = ["FedCache", "feed"]


class FedCache(IoCaptureSink, Protocol):
    """A ``ResumeCache``: a sink that makes its keys under the recording's secret."""

    def adopt(self, ring: KeyRing) -> None: ...


def feed(recorder: Recorder, cache: FedCache | None) -> None:
    """Feed a cache with the calls that a recorder records; said again, nothing changes. Never raises."""
    if cache is None or recorder.has_sink(cache):
        return
    recorder.guard.run("a resume cache", lambda: cache.adopt(ring_at(recorder.path)))
    recorder.add_sinks([cache])

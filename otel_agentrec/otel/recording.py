"""Recording as a program switches it on, with what stands above capture: the points where model calls are intercepted.

Whoever imports this module has them at hand; they are installed when a recorder that records the wire starts, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otel_agentrec.capture.configure import configure
from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from otel_agentrec.capture.wire.switch import SWITCHES, Observed
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.exchanges import sweep, under_way
from otel_agentrec.intercept.install import coverage, install
from otel_agentrec.nodes.exchange import Exchange, ModelRequest

__all__ = ["AgentRecLogProcessor", "AgentRecSpanProcessor", "configure"]


class _Observers:
    """Hands on to all that watch; the tuple is replaced as a whole, so that an end in a finaliser never waits."""

    def __init__(self) -> None:
        self.all: tuple[Observed, ...] = ()

    def started(self, request: ModelRequest) -> None:
        for one in self.all:
            one.started(request)

    def ended(self, exchange: Exchange) -> None:
        for one in self.all:
            one.ended(exchange)


_OBSERVERS = _Observers()


class _Switched:
    def __init__(self, observer: Observed) -> None:
        self._observer = observer

    def coverage(self) -> Sequence[dict[str, Any]]:
        return coverage()

    def under_way(self) -> Sequence[Exchange]:
        return under_way()

    def off(self) -> None:
        if _OBSERVERS.all == (self._observer,):
            sweep()  # responses that nobody has closed yet
        _OBSERVERS.all = tuple(one for one in _OBSERVERS.all if one is not self._observer)
        if not _OBSERVERS.all and ACTIVE.wire is _OBSERVERS:
            ACTIVE.wire = None


def _switch_on(observer: Observed, paths: str | None) -> _Switched:
    _OBSERVERS.all = (*_OBSERVERS.all, observer)
    ACTIVE.wire = _OBSERVERS
    install(paths)
    return _Switched(observer)


if _switch_on not in SWITCHES:
    SWITCHES.append(_switch_on)

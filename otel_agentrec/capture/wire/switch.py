"""What switches the points of interception on. They stand on a floor above this one: they register themselves here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["SWITCHES", "Observed", "Switched"]


class Observed(Protocol):
    """A recorder's end of the wire: see ``WireObserver`` in ``intercept/protocol.py``."""

    def started(self, request: Any) -> None: ...

    def ended(self, exchange: Any) -> None: ...


class Switched(Protocol):
    """Points that are switched on for one observer."""

    def coverage(self) -> Sequence[dict[str, Any]]:
        """A row ``{library, version, level, covered, reason?}`` per point."""
        ...

    def under_way(self) -> Sequence[Any]:
        """What has come of exchanges that have not ended: :class:`~otel_agentrec.nodes.exchange.Exchange`, as ``gone``."""
        ...

    def off(self) -> None: ...


SWITCHES: list[Callable[[Observed, str | None], Switched]] = []
"""At most one: it has the observer told of every model call of this process from now on. The second argument is the setting
``wire_paths``."""

"""A copy of a span that ended, with other attributes, made when somebody first looks at it.

The program's thread only hands it on; whoever encodes it, mostly the thread of a batch processor, has the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status

__all__ = ["Said", "StampedSpan", "said_by"]


class Said(NamedTuple):
    """What a span says that may hold a secret, and is looked at late."""

    name: str
    attributes: Mapping[str, Any]
    events: Sequence[Event]
    links: Sequence[Link]
    status: Status
    resource: Resource


def said_by(span: ReadableSpan, attributes: Mapping[str, Any]) -> Said:
    """What a span says itself, but for its attributes."""
    return Said(span.name, attributes, span.events, span.links, span.status, span.resource)


_LATER = tuple(f"_{name}" for name in Said._fields)


class StampedSpan(ReadableSpan):
    """``span``, but for what ``make`` says. All other fields that OTLP has are the original's, also the counts of what its limits
    dropped.

    Args:
        make: called once, on the thread that first asks for any of it; it must not raise.
        context, scope: in place of the span's own.
        unseen: called when nobody ever asked, and nobody can any more; in a finaliser: it must not wait for anything.
    """

    def __init__(
        self,
        span: ReadableSpan,
        make: Callable[[], Said],
        unseen: Callable[[], object] = lambda: None,
        *,
        context: SpanContext | None = None,
        scope: InstrumentationScope | None = None,
    ) -> None:
        own = span.instrumentation_scope
        scope = own if scope is None else scope
        super().__init__(
            "",
            span.context if context is None else context,
            span.parent,
            span.resource,
            kind=span.kind,
            instrumentation_info=getattr(span, "_instrumentation_info", None) if scope is own else None,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=scope,
        )
        for name in _LATER:
            del self.__dict__[name]
        self._make: Callable[[], Said] | None = make
        self._unseen = unseen
        self._dropped = span.dropped_attributes, span.dropped_events, span.dropped_links

    def __del__(self) -> None:
        if self.__dict__.get("_make") is not None:
            self._unseen()

    def __getattr__(self, name: str) -> Any:
        """For what is not there yet."""
        if name not in _LATER:
            raise AttributeError(name)
        make = self._make
        if make is not None:  # else another thread has just done it
            self.__dict__.update(zip(_LATER, make(), strict=True))
            self._make = None
        return self.__dict__[name]

    @property
    def dropped_attributes(self) -> int:
        return self._dropped[0]

    @property
    def dropped_events(self) -> int:
        return self._dropped[1]

    @property
    def dropped_links(self) -> int:
        return self._dropped[2]

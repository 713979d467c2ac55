"""A copy of a span that ended, with other attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, Status

__all__ = ["StampedSpan"]


class StampedSpan(ReadableSpan):
    """What ``span`` is, but for its attributes. All other fields that OTLP has are the original's, also the counts of what its
    limits dropped.

    Args:
        attributes: in place of its own; they are not copied.
        name, events, links, status, resource: in place of its own where given.
    """

    def __init__(
        self,
        span: ReadableSpan,
        attributes: Mapping[str, Any],
        *,
        name: str | None = None,
        events: Sequence[Event] | None = None,
        links: Sequence[Link] | None = None,
        status: Status | None = None,
        resource: Resource | None = None,
    ) -> None:
        super().__init__(
            span.name if name is None else name,
            span.context,
            span.parent,
            span.resource if resource is None else resource,
            attributes,
            span.events if events is None else events,
            span.links if links is None else links,
            span.kind,
            getattr(span, "_instrumentation_info", None),
            span.status if status is None else status,
            span.start_time,
            span.end_time,
            span.instrumentation_scope,
        )
        self._dropped = span.dropped_attributes, span.dropped_events, span.dropped_links

    @property
    def dropped_attributes(self) -> int:
        return self._dropped[0]

    @property
    def dropped_events(self) -> int:
        return self._dropped[1]

    @property
    def dropped_links(self) -> int:
        return self._dropped[2]

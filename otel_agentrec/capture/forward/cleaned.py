"""Spans that leave the process pass the same gate as what is recorded: a secret that the recording lacks does not leave either."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, Status

from otel_agentrec.capture.forward.stamped import StampedSpan
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.redaction import Redactor
from otel_agentrec.redaction.marker import withheld

__all__ = ["Cleaner"]

Json = Any
MAX_RESOURCES = 64


class Cleaner:
    """Args:
    redactor: the recording's rules.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._resources: OrderedDict[int, tuple[Resource, Resource]] = OrderedDict()

    def attributes(self, attributes: dict[str, Json]) -> dict[str, Json]:
        """Without their secrets; the same object where there are none."""
        if not attributes or self._is_clean(attributes):
            return attributes
        if not self._redactor.has_rules:
            new = self._redactor.value(attributes)
            return new if isinstance(new, dict) else _only_numbers(attributes)
        return {key: self._by_rules(key, value) for key, value in attributes.items()}

    def span(self, span: ReadableSpan, attributes: dict[str, Json]) -> StampedSpan:
        """A copy of a span with these attributes, which are clean already."""
        redactor = self._redactor
        if redactor.is_off:
            return StampedSpan(span, attributes)
        status = span.status
        description = status.description
        said = description if description is None or self._is_clean_text(description) else redactor.text(description)
        return StampedSpan(
            span,
            attributes,
            name=span.name if self._is_clean_text(span.name) else redactor.text(span.name),
            events=self._events(span.events),
            links=self._links(span.links),
            status=status if said is description else Status(status.status_code, said),
            resource=self._resource(span.resource),
        )

    def _by_rules(self, key: str, value: Json) -> Json:
        new = self._redactor.value({key: list(value) if isinstance(value, tuple) else value})
        return new.get(key, withheld()) if isinstance(new, dict) else withheld()

    def _events(self, events: Sequence[Event]) -> Sequence[Event]:
        if all(self._is_clean(event.attributes or {}) and self._is_clean_text(event.name) for event in events):
            return events
        return [_Event(event, self._redactor.text(event.name), self._mapping(event.attributes)) for event in events]

    def _links(self, links: Sequence[Link]) -> Sequence[Link]:
        if all(self._is_clean(link.attributes or {}) for link in links):
            return links
        return [_Link(link, self._mapping(link.attributes)) for link in links]

    def _resource(self, resource: Resource) -> Resource:
        """Many spans share one."""
        known = self._resources.get(id(resource))
        if known is None or known[0] is not resource:
            attributes = dict(resource.attributes)
            clean = self.attributes(attributes)
            new = resource if clean is attributes else Resource(clean, resource.schema_url)
            known = self._resources[id(resource)] = (resource, new)
            while len(self._resources) > MAX_RESOURCES:
                self._resources.popitem(last=False)
        return known[1]

    def _mapping(self, attributes: Mapping[str, Json] | None) -> dict[str, Json]:
        return self.attributes(dict(attributes or {}))

    def _is_clean(self, attributes: Mapping[str, Json]) -> bool:
        if self._redactor.is_off:
            return True
        parts = [
            b'"%s":"%s"' % (key.encode("utf-8", "surrogatepass"), _bytes(value)) for key, value in attributes.items()
        ]
        return self._redactor.is_clean(b",".join(parts))

    def _is_clean_text(self, text: Json) -> bool:
        return not isinstance(text, str) or self._redactor.is_clean(text.encode("utf-8", "surrogatepass"))


class _Event(Event):
    """An event with other attributes."""

    def __init__(self, event: Event, name: str, attributes: dict[str, Json]) -> None:
        super().__init__(name, attributes, event.timestamp)
        self._dropped = event.dropped_attributes

    @property
    def dropped_attributes(self) -> int:
        return self._dropped


class _Link(Link):
    def __init__(self, link: Link, attributes: dict[str, Json]) -> None:
        super().__init__(link.context, attributes)
        self._dropped = link.dropped_attributes

    @property
    def dropped_attributes(self) -> int:
        return self._dropped


def _bytes(value: Json) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, bytes) else b"" if isinstance(value, (int, float)) else canonical_any(value)


def _only_numbers(attributes: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in attributes.items() if isinstance(value, (bool, int, float))}

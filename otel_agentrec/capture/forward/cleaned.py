"""Spans that leave the process pass the same gate as what is recorded: a secret that the recording lacks does not leave either."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, TraceState

from otel_agentrec.capture.forward.stamped import Said, said_by
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.redaction import Redactor
from otel_agentrec.redaction.marker import withheld

__all__ = ["Cleaner"]

Json = Any
MAX_KNOWN = 64
"""Resources, and scopes, whose clean form is kept."""


class Cleaner:
    """Args:
    redactor: the recording's rules.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._resources: OrderedDict[int, tuple[Resource, Resource]] = OrderedDict()
        self._scopes: OrderedDict[int, tuple[InstrumentationScope, InstrumentationScope]] = OrderedDict()

    def said(self, span: ReadableSpan, attributes: dict[str, Json]) -> Said:
        """What a span says, with these attributes, without secrets anywhere in it."""
        said = said_by(span, attributes)
        if self._redactor.is_off:
            return said
        said = said._replace(resource=self.resource(span.resource))
        if self._redactor.is_clean(b",".join(_parts(said))):  # one look at all of it is the cheapest
            return said
        redacted, status = self._redactor.text, said.status
        text = status.description
        return said._replace(
            name=redacted(said.name),
            attributes=self._mapping(attributes),
            events=[_Event(event, redacted(event.name), self._mapping(event.attributes)) for event in said.events],
            links=[_Link(link, self.context(link.context), self._mapping(link.attributes)) for link in said.links],
            status=status if text is None else Status(status.status_code, redacted(text)),
        )

    def nothing(self, span: ReadableSpan) -> Said:
        """For a span that could not be looked at: as it is, it may hold what must not leave."""
        return Said(withheld(), {}, (), (), Status(span.status.status_code), Resource.get_empty())

    def _mapping(self, attributes: Mapping[str, Json] | None) -> dict[str, Json]:
        held = dict(attributes or {})
        if not held or self._redactor.is_clean(b",".join(_attribute_parts(held))):
            return held
        if self._redactor.has_rules:
            return {key: self._by_rules(key, value) for key, value in held.items()}
        new = self._redactor.value(held)
        return new if isinstance(new, dict) else _only_numbers(held)

    def _by_rules(self, key: str, value: Json) -> Json:
        new = self._redactor.value({key: list(value) if isinstance(value, tuple) else value})
        return new.get(key, withheld()) if isinstance(new, dict) else withheld()

    def resource(self, resource: Resource) -> Resource:
        """Many spans share one."""
        known = self._resources.get(id(resource))
        if known is None or known[0] is not resource:
            held = dict(resource.attributes)
            clean = self._mapping(held)
            new = resource if clean == held else Resource(clean, resource.schema_url)
            known = self._resources[id(resource)] = (resource, new)
            while len(self._resources) > MAX_KNOWN:
                self._resources.popitem(last=False)
        return known[1]

    def scope(self, scope: InstrumentationScope | None) -> InstrumentationScope | None:
        """Whose span it is, as it may leave; mostly the same object. Many spans share one."""
        if scope is None or self._redactor.is_off:
            return scope
        known = self._scopes.get(id(scope))
        if known is None or known[0] is not scope:
            known = self._scopes[id(scope)] = (scope, self._clean_scope(scope))
            while len(self._scopes) > MAX_KNOWN:
                self._scopes.popitem(last=False)
        return known[1]

    def _clean_scope(self, scope: InstrumentationScope) -> InstrumentationScope:
        redacted, held = self._redactor.text, dict(scope.attributes or {})
        said = redacted(scope.name), redacted(scope.version or ""), self._mapping(held)
        if said == (scope.name, scope.version or "", held):
            return scope
        return InstrumentationScope(said[0], said[1] or scope.version, scope.schema_url, said[2])

    def context(self, context: SpanContext) -> SpanContext:
        """The ids of a span, as they may leave; mostly the same object. What came with a request may stand in its state: an entry
        with a secret is left out, for a marker is no valid value."""
        state = context.trace_state
        if not state or self._redactor.is_off:
            return context
        clean = [(key, value) for key, value in state.items() if self._mapping({key: value}) == {key: value}]
        if len(clean) == len(state):
            return context
        return SpanContext(context.trace_id, context.span_id, context.is_remote, context.trace_flags, TraceState(clean))


class _Event(Event):
    """An event with other attributes."""

    def __init__(self, event: Event, name: str, attributes: dict[str, Json]) -> None:
        super().__init__(name, attributes, event.timestamp)
        self._dropped = event.dropped_attributes

    @property
    def dropped_attributes(self) -> int:
        return self._dropped


class _Link(Link):
    def __init__(self, link: Link, context: SpanContext, attributes: dict[str, Json]) -> None:
        super().__init__(context, attributes)
        self._dropped = link.dropped_attributes

    @property
    def dropped_attributes(self) -> int:
        return self._dropped


def _parts(said: Said) -> list[bytes]:
    """All that a span says, as texts beside their names."""
    parts = _attribute_parts(said.attributes)
    parts.append(_bytes(said.name))
    if said.status.description:
        parts.append(_bytes(said.status.description))
    for event in said.events:
        parts.append(_bytes(event.name))
        parts += _attribute_parts(event.attributes or {})
    for link in said.links:
        parts += _attribute_parts(link.attributes or {})
        parts += _attribute_parts(link.context.trace_state or {})
    return parts


def _attribute_parts(attributes: Mapping[str, Json]) -> list[bytes]:
    return [b'"%s":"%s"' % (_bytes(key), _bytes(value)) for key, value in attributes.items()]


def _bytes(value: Json) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, bytes) else b"" if isinstance(value, (int, float)) else canonical_any(value)


def _only_numbers(attributes: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in attributes.items() if isinstance(value, (bool, int, float))}

"""The open-span table of a process: what is known of spans that have started and not ended.

A span that the garbage collector takes before it ended still gives a partial record: the table holds the span weakly, but its
attribute mapping and its event list strongly. Foreign spans (HTTP, databases …) only leave a pointer to the nearest span
above them that may be an agent step, so that the path of a step below them can be told.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan

from otel_agentrec.capture.ambient import Above, session_above, session_in
from otel_agentrec.capture.attempts import Attempt
from otel_agentrec.capture.spans import LogView, SpanView, from_sdk

if TYPE_CHECKING:
    from otel_agentrec.capture.wire.calls import Attempt as WireAttempt
    from otel_agentrec.capture.wire.calls import SpanTold

__all__ = [
    "Key",
    "OpenSpan",
    "OpenTable",
    "Place",
    "RecentKeys",
    "can_wait",
    "frozen",
    "is_large",
    "is_slow",
    "keys_of",
    "take_oldest",
]

Key = tuple[int, int]
"""(trace id, span id) as the SDK's integers."""

MAX_OPEN = 16_384
"""Open spans that are held; beyond it the oldest is evicted."""
MAX_FOREIGN = 65_536
MAX_PATH = 64
MAX_ATTEMPTS = 256
MAX_ON_LOOP = 256 * 1024
"""Characters of attributes beyond which a span that ends on an event loop's thread is written by another thread."""
_IMMUTABLE = (str, bytes, int, float, type(None))
_PLAIN = frozenset((*_IMMUTABLE, bool))
"""Nearly all values are of these very types, which is told faster than of what else they are instances."""
MAX_LOGS = 16_384
"""Log records joined to one span; a long history is one record per message."""


class Place(NamedTuple):
    """What the start of a step told of itself: an agent's or tool's name, a tool's call id, ids that were given."""

    name: str | None
    call_id: str | None = None
    run: str | None = None
    session: str | None = None


class OpenSpan:
    """One span that has started.

    ``is_step``: it is known to be a step of an agent; ``kind``: its journal Kind, None while it has not told; ``above``: the
    nearest span above it that is not foreign, open or not; ``started``: its start was journalled; ``outermost``: it is an
    agent with no agent above it; ``forked_from``: it was open when this process was forked; ``place``: what its start told
    of its place.
    """

    __slots__ = (
        "_attributes",
        "_events",
        "_ref",
        "_remains",
        "above",
        "attempts",
        "calls",
        "claims",
        "completion",
        "forked_from",
        "interrupted",
        "is_left",
        "is_open",
        "is_root",
        "is_step",
        "key",
        "kind",
        "logs",
        "outermost",
        "owner",
        "owner_of",
        "place",
        "scope",
        "session",
        "span_id",
        "started",
        "told",
    )

    def __init__(self, span: Any, key: Key, above: OpenSpan | None, owner: object) -> None:
        self.key = key
        self.span_id = f"{key[1]:016x}"
        self.above = above
        self.owner = owner
        self.kind: str | None = None
        self.is_step = False
        self.is_open = True
        self.is_root = span.parent is None
        self.started = False
        self.interrupted = False
        self.outermost = True
        self.place: Place | None = None
        self.forked_from: dict[str, Any] | None = None
        self.attempts: list[Attempt] | None = None
        self.logs: list[LogView] | None = None
        self.completion: Mapping[str, Any] | None = None
        """Facts that the completion hook was told."""
        scope = span.instrumentation_scope
        self.scope: str | None = scope.name if scope is not None else None
        self.session: str | None = None
        """As its start told it."""
        self.calls: list[WireAttempt] | None = None
        """Attempts on the wire that wait for its end."""
        self.is_left = False
        """All is known of it that ever will be."""
        self.claims = 0
        """How many attempts were made while it, or a model call in it, was the current span."""
        self.owner_of: WireAttempt | None = None
        """The attempt that was found to be this call by what was said."""
        self.told: SpanTold | None = None
        """What it told at its end, as long as an attempt waits for it."""
        self._ref: weakref.ref[Any] | None = None
        self._attributes = getattr(span, "_attributes", None)
        self._events = getattr(span, "_events", None)
        self._remains: tuple[Any, ...] | None = (
            span.name,
            span.context,
            span.parent,
            span.resource,
            span.kind,
            span.instrumentation_scope,
            span.start_time,
        )

    def watch(self, span: Any, abandoned: Callable[[Key], None]) -> None:
        """Call ``abandoned(key)`` when the span is collected."""
        key = self.key
        try:
            self._ref = weakref.ref(span, lambda _: abandoned(key))
        except TypeError:  # a span class without weak references: it can't be watched
            self._ref = None

    def partial(self) -> SpanView | None:
        """The view of the span as far as it is known now; ``end_ns`` is None. None after :meth:`release`."""
        span = self._ref() if self._ref is not None else None
        if span is not None:
            return from_sdk(span)
        if self._remains is None:
            return None
        name, context, parent, resource, kind, scope, start = self._remains
        return from_sdk(
            ReadableSpan(
                name=name,
                context=context,
                parent=parent,
                resource=resource,
                attributes=self._attributes,
                events=self._events or (),
                kind=kind,
                start_time=start,
                instrumentation_scope=scope,
            )
        )

    @property
    def span(self) -> Any:
        """The span itself, while the program holds it; else None."""
        return self._ref() if self._ref is not None else None

    @property
    def name(self) -> str | None:
        """Its name; None once nothing of it is held."""
        span = self.span
        if span is not None:
            return str(span.name)
        return str(self._remains[0]) if self._remains is not None else None

    def keys(self) -> Iterable[str]:
        """The names of its attributes now."""
        return keys_of(self._attributes)

    def ancestors(self) -> Iterator[OpenSpan]:
        """The spans above that are not foreign, nearest first."""
        above = self.above
        while above is not None:
            yield above
            above = above.above

    def session_above(self, further: str | None) -> str | None:
        """The session that a span above tells which is no step; ``further``: the attribute that the settings name."""
        return session_above(
            Above(one.is_step, one.session or session_in(one._attributes, further, one.scope or ""))
            for one in self.ancestors()
        )

    def path(self) -> list[str]:
        """Span ids of the agent steps above, nearest first."""
        return [one.span_id for one in itertools.islice((a for a in self.ancestors() if a.is_step), MAX_PATH)]

    def is_under(self, kind: str) -> bool:
        """Whether a step of this kind is above."""
        return any(one.kind == kind for one in self.ancestors())

    def nearest_step(self) -> OpenSpan | None:
        """This span if it is an agent step, else the nearest one above."""
        return self if self.is_step else next((one for one in self.ancestors() if one.is_step), None)

    def add_attempt(self, attempt: Attempt) -> None:
        if self.attempts is None:
            self.attempts = []
        if len(self.attempts) < MAX_ATTEMPTS:
            self.attempts.append(attempt)

    def add_log(self, log: LogView) -> bool:
        """Join a log record; False when the span already has its share."""
        if self.logs is None:
            self.logs = []
        if len(self.logs) >= MAX_LOGS:
            return False
        self.logs.append(log)
        return True

    def release(self) -> None:
        """Let go of everything but the place in the tree, which spans below may still ask for."""
        self._ref = self._attributes = self._events = self._remains = None
        self.attempts = self.logs = self.completion = None


class OpenTable:
    """Open spans by key, in the order of their start. Single steps on dicts only: safe between threads and in finalisers."""

    def __init__(self, max_open: int = MAX_OPEN, max_foreign: int = MAX_FOREIGN) -> None:
        self._open: dict[Key, OpenSpan] = {}
        self.foreign: dict[Key, OpenSpan] = {}
        """Open foreign spans, each with the nearest span above it that is not foreign."""
        self._max_open = max_open
        self._max_foreign = max_foreign

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, key: Key) -> bool:
        return key in self._open

    def get(self, key: Key) -> OpenSpan | None:
        return self._open.get(key)

    def nearest(self, key: Key | None) -> OpenSpan | None:
        """The open span of this key, or for a foreign span the nearest one above it."""
        if key is None:
            return None
        return self._open.get(key) or self.foreign.get(key)

    def add(self, entry: OpenSpan) -> OpenSpan | None:
        """Add; returns the oldest entry when there was no room, taken out."""
        self._open[entry.key] = entry
        return take_oldest(self._open) if len(self._open) > self._max_open else None

    def add_foreign(self, key: Key, above: OpenSpan) -> None:
        self.foreign[key] = above
        if len(self.foreign) > self._max_foreign:
            take_oldest(self.foreign)

    def pop(self, key: Key) -> OpenSpan | None:
        return self._open.pop(key, None)

    def pop_foreign(self, key: Key) -> OpenSpan | None:
        return self.foreign.pop(key, None)

    def __iter__(self) -> Iterator[OpenSpan]:
        return iter(list(self._open.values()))

    def after_fork(self, forked_from: dict[str, Any]) -> None:
        """In the child: what is open belongs to the parent. It stays only as ancestors of what the child starts."""
        for entry in list(self._open.values()):
            entry.forked_from = forked_from
            entry.logs = None


class RecentKeys:
    """The last ``size`` keys that were put in."""

    __slots__ = ("_keys", "_size")

    def __init__(self, size: int) -> None:
        self._keys: dict[Key, None] = {}
        self._size = size

    def grow(self, size: int) -> None:
        self._size = max(size, self._size)

    def add(self, key: Key) -> None:
        self._keys[key] = None
        if len(self._keys) > self._size:
            take_oldest(self._keys)

    def __contains__(self, key: Key) -> bool:
        return key in self._keys


def take_oldest(table: dict[Key, Any]) -> Any:
    for _ in range(8):  # another thread may take it first
        try:
            return table.pop(next(iter(table)))
        except (KeyError, StopIteration, RuntimeError):
            continue
    return None


def keys_of(attributes: Any) -> Iterable[str]:
    """The names of a span's attributes, in one step that no other thread can interrupt."""
    inner = getattr(attributes, "_dict", attributes)
    return tuple(inner) if inner else ()


def is_large(span: Any) -> bool:
    """Whether writing a span that ended would hold up an event loop."""
    return sum(len(value) for value in _values_of(span) if isinstance(value, (str, bytes))) > MAX_ON_LOOP


def is_slow(span: Any) -> bool:
    """Whether a span that ended is better written by another thread than by that of an event loop, and may be."""
    return is_large(span) and can_wait(span)


def can_wait(span: Any) -> bool:
    """Whether a span that ended holds nothing that the program could still change: it may be written by another thread."""
    others = [value for value in _values_of(span) if type(value) not in _PLAIN]
    return all(map(_is_immutable, others))


def _is_immutable(value: object) -> bool:
    if isinstance(value, tuple):
        return _PLAIN.issuperset(map(type, value)) or all(isinstance(item, _IMMUTABLE) for item in value)
    return isinstance(value, _IMMUTABLE)


def _values_of(span: Any) -> tuple[Any, ...]:
    """The attribute values of an SDK span, without the cost of its locked view."""
    inner = getattr(getattr(span, "_attributes", None), "_dict", None)
    return tuple(inner.values()) if isinstance(inner, dict) else tuple((span.attributes or {}).values())


def frozen(log: LogView) -> LogView:
    """The same with values that the program can't change any more."""
    return log._replace(body=_copy(log.body), attributes={key: _copy(value) for key, value in log.attributes.items()})


def _copy(value: Any, depth: int = 0) -> Any:
    if depth < 64:
        if isinstance(value, dict):
            return {key: _copy(item, depth + 1) for key, item in list(value.items())}
        if isinstance(value, (list, tuple)):
            return [_copy(item, depth + 1) for item in list(value)]
    return value

"""One attempt of a model call on its way into the journal, and what of a span is remembered for it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from otel_agentrec.capture.wire.facts import add_question
from otel_agentrec.journal.facts import Facts
from otel_agentrec.nodes.answers import Answer
from otel_agentrec.nodes.exchange import Exchange, ModelRequest

if TYPE_CHECKING:
    from otel_agentrec.capture.opening import OpenSpan

__all__ = ["Attempt", "SpanTold"]

Json = Any


@dataclass(slots=True)
class SpanTold:
    """What a model span told when it ended. ``scope`` and ``session`` as its own event had them."""

    trace_id: str
    span_id: str
    parent_id: str | None
    scope: str
    facts: Facts


@dataclass(slots=True, eq=False)
class Attempt:
    """``entry``: the span that was current, or for a foreign one the nearest above it; ``named``: the one that the request
    names in ``traceparent``; ``candidates``: other spans that were open and may be the call; ``around``: OTel's context of
    the current span."""

    request: ModelRequest
    entry: OpenSpan | None = None
    named: OpenSpan | None = None
    candidates: Sequence[OpenSpan] = ()
    around: Any = None
    waits_for: list[OpenSpan] = field(default_factory=list)
    """Whose ends it is told of."""
    # when its body ended
    exchange: Exchange | None = None
    body: Json = None
    answer: Answer = field(default_factory=Answer)
    facts: Facts | None = None
    is_question_read: bool = False
    wire_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    digest: bytes = b""
    number: int = 1
    before: Attempt | None = None
    """The failed attempt that this one repeats."""
    followed: bool = False
    """Another attempt of the same call came after it."""
    since: float = 0.0
    """Monotonic time at which its body ended."""
    # what was decided
    rung: str | None = None
    owner: OpenSpan | None = None
    rung_written: bool = False
    done: bool = False

    def whole_facts(self) -> Facts | None:
        """The facts with what is said in the request; None before its body ended."""
        if self.facts is not None and not self.is_question_read:
            self.is_question_read = True
            add_question(self.facts, self.request.api, self.body)
        return self.facts

    @property
    def first(self) -> Attempt:
        at = self
        while at.before is not None:
            at = at.before
        return at

    @property
    def chain(self) -> list[Attempt]:
        """This attempt and those before it, the first one first."""
        out = [self]
        while out[-1].before is not None:
            out.append(out[-1].before)
        return out[::-1]

    @property
    def failed(self) -> bool:
        """The kind of failure that clients repeat a request after."""
        if self.exchange is None:
            return False
        response = self.exchange.response
        return response.status is None or response.status >= 400 or response.error is not None

"""From an attempt to its record: which attempts are one call, whose call it was, and what its record lacks."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from otel_agentrec.capture.completions import Completion
from otel_agentrec.capture.emit_block import SCOPE
from otel_agentrec.capture.opening import Key, OpenSpan
from otel_agentrec.capture.program import stands_alone, take
from otel_agentrec.capture.spans import SpanView
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.capture.wire import ladder, own
from otel_agentrec.capture.wire.calls import Attempt
from otel_agentrec.capture.wire.facts import GENERATING
from otel_agentrec.journal.facts import Facts, Kind

if TYPE_CHECKING:
    from otel_agentrec.capture.recorder import Recorder
    from otel_agentrec.capture.tracking import Tracker

__all__ = ["Settler"]

RETRY_SECONDS = 120.0
"""A failed attempt that nothing followed for so long was the last one of its call."""
UNDECIDED_SECONDS = 600.0
"""After so long a call is decided by what is known."""
MAX_UNDECIDED = 4_096

_FILLED = (
    "model", "response_model", "response_id", "finish_reasons", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "calls", "messages", "output_messages", "streamed", "provider",
    "system_instructions", "tools", "parameters",
)  # fmt: skip
"""Facts that the wire tells where a span does not."""
_WORTH = ("messages", "output_messages", "response_id", "finish_reasons", "input_tokens", "output_tokens", "calls")
"""Of them, those for which an event is written."""
_CONTENT = ("messages", "output_messages", "system_instructions", "tools", "parameters")


class Settler:
    """Attempts whose bodies have ended, until each has its place. All calls come from one thread at a time.

    Args:
        take: calls a function as one turn of the recorder.
        later: has a function called outside of any turn.
    """

    def __init__(
        self, recorder: Recorder, tracker: Tracker, take: Callable[..., object], later: Callable[..., object]
    ) -> None:
        self._recorder, self._tracker, self._take, self._later = recorder, tracker, take, later
        self._guard = recorder.guard
        self._content = recorder.settings.content != "off"
        self._is_deferred = recorder.settings.durability == "deferred"
        self._undecided: dict[Attempt, None] = {}
        self._failed: dict[tuple[Any, bytes], list[Attempt]] = {}

    @property
    def waits(self) -> bool:
        """Whether an attempt is not settled."""
        return bool(self._undecided)

    def add(self, attempt: Attempt) -> None:
        """Its event is written: settle it as soon as that can be."""
        self._undecided[attempt] = None
        self._decide(attempt)
        if len(self._undecided) > MAX_UNDECIDED:
            self._decide(next(iter(self._undecided)), final=True)

    def span_ended(self, entry: OpenSpan) -> None:
        """A span ended that attempts may wait for."""
        for attempt in list(entry.calls or ()):
            if attempt in self._undecided:
                self._decide(attempt)

    def look_again(self) -> None:
        """Time has passed."""
        now = time.monotonic()
        for attempt in list(self._undecided):
            self._decide(attempt, final=now - attempt.since > UNDECIDED_SECONDS)

    def finish(self) -> None:
        """Nothing more will come."""
        for attempt in list(self._undecided):
            self._decide(attempt, True)

    def follow(self, attempt: Attempt) -> None:
        """Find the failed attempt that this one repeats: of the same span, with the same request, ended before it began."""
        place = attempt.entry.key if attempt.entry is not None else attempt.request.span
        failed = self._failed.get((place, attempt.digest), [])
        before = next(
            (a for a in failed if a.exchange is not None and a.exchange.ended_ns <= attempt.request.started_ns), None
        )
        if before is not None:
            failed.remove(before)
            before.followed = True
            attempt.before, attempt.number = before, before.number + 1
        if attempt.failed:
            failed.append(attempt)
        if failed:
            self._failed[place, attempt.digest] = failed[-64:]
        else:
            self._failed.pop((place, attempt.digest), None)
        if len(self._failed) > MAX_UNDECIDED:
            self._failed.pop(next(iter(self._failed)))

    def _decide(self, attempt: Attempt, final: bool = False) -> None:
        """Settle an attempt as soon as it can be."""
        if attempt.followed:  # settled with the one that came after it
            self._undecided.pop(attempt, None)
            return
        if not attempt.rung_written or attempt.owner is None:
            verdict = ladder.decide(attempt, final=final)
            if verdict.rung is None:
                return
            attempt.rung, attempt.owner = verdict.rung, verdict.owner
        else:
            verdict = ladder.Verdict(attempt.rung, attempt.owner)
        owner = verdict.owner
        if owner is not None:
            if not owner.is_left and not final:
                return  # what it lacks shows at its end
            owner.owner_of = owner.owner_of or attempt
            self._amend(attempt, owner)
        elif verdict.is_alone and attempt.request.api in GENERATING:
            if attempt.failed and not final and self._may_follow(attempt):
                return
            self._undecided.pop(attempt, None)
            # not in this turn: the span comes back to the recorder through its processors
            if final:
                self._make_own(attempt, False)
            else:
                self._later(self._make_own, attempt, True)
            return
        self._settle(attempt)

    def _may_follow(self, attempt: Attempt) -> bool:
        """Whether a failed attempt may still be repeated."""
        entry = attempt.entry
        if entry is not None and entry.is_left:
            return False
        return time.monotonic() - attempt.since < RETRY_SECONDS

    def _settle(self, attempt: Attempt) -> None:
        for one in attempt.chain:
            self._undecided.pop(one, None)
            one.done = True
            for entry in one.waits_for:  # in place: others may be added meanwhile
                with contextlib.suppress(ValueError, AttributeError):
                    entry.calls.remove(one)  # type: ignore[union-attr]
                if not entry.calls and entry.is_left:
                    entry.told = None
            one.waits_for.clear()
            one.candidates, one.body, one.answer = (), None, type(one.answer)()
            if one is not attempt:
                one.facts = None

    def _amend(self, attempt: Attempt, owner: OpenSpan) -> None:
        """Tell the span's record of its attempts, where the attempts' own events don't, and what the span did not tell."""
        facts = self._lacking(attempt, owner.told.facts if owner.told is not None else None)
        untold = [a.wire_id for a in attempt.chain if not (a.rung_written and a.owner is owner)]
        origin = _origin(attempt)
        if facts is None and not untold and origin is None:
            return
        told = owner.told
        view = SpanView(
            f"{owner.key[0]:032x}",
            owner.span_id,
            told.parent_id if told is not None else None,
            "",
            scope=owner.scope or "",
        )
        lacking = facts or Facts()
        lacking.session_id = told.facts.session_id if told is not None else owner.session
        if origin is not None:
            self._answered(view, origin)
        if facts is not None or untold:
            self._tracker.wire_told(view, lacking, untold, attempt.rung)

    def _lacking(self, attempt: Attempt, told: Facts | None) -> Facts | None:
        """The facts that the wire tells and the span did not; None when nothing worth an event is among them."""
        if attempt.facts is None or told is None or attempt.failed:
            return None
        mine = attempt.whole_facts() if told.messages is None else attempt.facts
        found: dict[str, Any] = {}
        for name in _FILLED:
            value = getattr(mine, name)
            if value is None or getattr(told, name) is not None or (name in _CONTENT and not self._content):
                continue
            if name == "output_messages" and told.output_text is not None:
                continue
            found[name] = value
        if told.input_tokens is not None or told.output_tokens is not None:
            found = {name: value for name, value in found.items() if not name.endswith("_tokens")}
        return Facts(**found) if any(name in found for name in _WORTH) else None

    def _make_own(self, attempt: Attempt, emit: bool) -> None:
        """No span tells of this call: make one, and with it the record."""
        facts, key = attempt.whole_facts(), None
        if facts is None or attempt.done:
            return
        if emit and (attempt.request.span is None or attempt.around is not None):
            key = self._guard.run("a span of our own", own.emit, attempt, facts, self._content)
            if key is not None and self._is_deferred:
                self._recorder.force_flush()
        self._take(self._record_own, attempt, facts, key)

    def _record_own(self, attempt: Attempt, facts: Facts, key: Key | None) -> None:
        above = attempt.request.span
        trace_id = f"{key[0]:032x}" if key else above.trace_id if above is not None else secrets.token_hex(16)
        span_id = f"{key[1]:016x}" if key else secrets.token_hex(8)
        if key is None or not self._tracker.has_seen(key):
            view = own.view_of(attempt, facts, trace_id, span_id)
            is_alone = above is None or (attempt.entry is not None and stands_alone(attempt.entry))
            take(self._tracker.program, is_alone, Kind.MODEL, facts)
            if not self._content:
                for name in (*_CONTENT, "error_message"):
                    setattr(facts, name, None)
            seen = (int(trace_id, 16), int(span_id, 16))
            self._tracker.completed(Completion(seen, {}, False, view, (Kind.MODEL, facts)))
        view = SpanView(trace_id, span_id, None, "", scope=SCOPE)
        self._tracker.wire_told(view, Facts(), [a.wire_id for a in attempt.chain], "none")
        origin = _origin(attempt)
        if origin is not None:
            self._answered(view, origin)
        self._settle(attempt)

    def _answered(self, view: SpanView, origin: dict[str, Any]) -> None:
        trace = {"traceId": view.trace_id, "spanId": view.span_id}
        told = {"node": view.span_id, "from": origin}
        self._recorder.edge.write(StepEvent("NODE_ANSWERED", told, trace=trace))


def _origin(attempt: Attempt) -> dict[str, Any] | None:
    """Where the answer to a call comes from that was not made."""
    exchange = attempt.exchange
    if exchange is None or not exchange.answered:
        return None
    return dict(exchange.response.origin or {})

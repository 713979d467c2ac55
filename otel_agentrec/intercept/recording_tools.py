"""The answerer of tool calls while a program is recorded: every effect is journalled before it begins, and runs.

One thing is answered all the same: a call that repeats one whose outcome is unknown (it was cut off in this very process)
is refused, unless it can be settled (docs/resume.md). Whoever answers from a recording builds on this class.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.capture.effects import EffectLog, effect_log
from otel_agentrec.capture.outcomes import is_unknown_error
from otel_agentrec.capture.placing import CallPlace, place_of_call
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.capture.recorders import recorder_in_use
from otel_agentrec.capture.toolspan import ToolSpan
from otel_agentrec.errors import LedgerUnavailable, RunStopped, UsageError
from otel_agentrec.intercept.declared import Declared, declared, effect_of
from otel_agentrec.intercept.protocol import PASS, Pass, ToolCall, ToolOutcome
from otel_agentrec.intercept.stopped import STOPPED
from otel_agentrec.intercept.tools.codecs import ResultUnreadable, is_kept, outcome_of
from otel_agentrec.intercept.unknown import Again, Outcome, UnknownEffect, unknown_outcome
from otel_agentrec.settings import Settings

__all__ = ["RUNNING", "Asked", "RecordingTools", "Running"]

Json = Any
MAX_UNKNOWN = 4_096
_SKEW = 60.0
"""Seconds that a clock may be behind. One that was set back further can't tell how old an idempotency key is."""


@dataclass(slots=True)
class Asked:
    """A call that was asked about: where it stands, and what was declared of it."""

    call: ToolCall
    log: EffectLog
    place: CallPlace
    said: Declared
    effect: bool | str
    key: str | None
    root: str
    span: ToolSpan | None = None


@dataclass(eq=False, slots=True)
class Running:
    """An effect that runs: the ``token`` of its call."""

    asked: Asked
    effect_id: str
    idempotency_key: str | None
    started_ms: int
    running: bool = True
    trace: dict[str, str] | None = field(default=None)


RUNNING: ContextVar[tuple[Running, ...]] = ContextVar("otel_agentrec_effects_around", default=())
"""The effects around the code that runs now, the innermost last."""


class RecordingTools:
    """Journals every tool call as an effect. See :class:`~otel_agentrec.intercept.protocol.ToolAnswerer`.

    Args:
        recorder: where to; default: the recorder that is in use when a call comes.
    """

    def __init__(self, recorder: Recorder | None = None) -> None:
        self._recorder = recorder
        self._unknown: dict[tuple[str, str, str | None], UnknownEffect] = {}

    # --- what a point calls -------------------------------------------------------------------------------------------

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        """Let the call run, its intent on disk.

        Raises:
            LedgerUnavailable: its intent is not on disk.
            UnknownOutcomeError: it was begun before, and nobody knows what came of it.
            RunStopped: its run was stopped for any reason.
        """
        log = self._log(call)
        if log is None:
            return PASS
        asked = self._asked(call, log)
        try:
            STOPPED.check(asked.root)
            found = self.found(asked)
            if isinstance(found, ToolOutcome):
                return found
            return self._start(asked, found)
        except RunStopped as error:
            if asked.span is not None:
                asked.span.cut_off(error)
            if asked.root not in STOPPED:
                log.stopped(asked.place, error)
            raise STOPPED.stop(asked.root, error) from error.__cause__

    def returned(self, call: ToolCall, outcome: ToolOutcome) -> None:
        """What the call gave is on disk when this returns.

        Raises:
            LedgerUnavailable: it is not.
        """
        running = call.token
        if not isinstance(running, Running):
            return
        asked = running.asked
        _ended(running)
        try:
            self._end(running, outcome)
        except RunStopped as error:
            self._lost(running, "its result could not be made durable")
            if asked.span is not None:
                asked.span.cut_off(error)
            raise STOPPED.stop(asked.root, error) from error.__cause__

    def cancelled(self, call: ToolCall, error: BaseException) -> None:
        """The call was cut off: nothing is written."""
        running = call.token
        if not isinstance(running, Running):
            return
        _ended(running)
        self._lost(running, f"cut off by {type(error).__name__}")
        if running.asked.span is not None:
            running.asked.span.cut_off(error)

    # --- what answerers that know more override -----------------------------------------------------------------------

    def root_of(self, asked: Asked) -> str:
        """The id of the first attempt of the run that the call belongs to."""
        return asked.place.run

    def found(self, asked: Asked) -> ToolOutcome | UnknownEffect | None:
        """What is known of the call: an outcome to hand out; an effect that is begun once more; None: it is new."""
        unknown = self._unknown.get((asked.root, asked.call.name, asked.key))
        if unknown is None or asked.effect is not True:
            return None
        settled = self.settle(asked.log, unknown)
        if settled is None:
            raise unknown_outcome([unknown], asked.log.recorder.path, asked.log.recorder.redactor.text)
        self._unknown.pop((asked.root, asked.call.name, asked.key), None)
        return settled if isinstance(settled, ToolOutcome) else unknown

    # --- both ---------------------------------------------------------------------------------------------------------

    def settle(self, log: EffectLog, effect: UnknownEffect) -> ToolOutcome | Again | None:
        """Settle an effect with an unknown outcome by what its tool declares: its result, or whether it is begun once more;
        None: nobody can tell.

        Raises:
            LedgerUnavailable: it is settled, and that can't be made durable.
        """
        said = declared(effect.name)
        outcome = said.reconcile(effect) if said.reconcile is not None else None
        if outcome is not None and not isinstance(outcome, Outcome):
            raise UsageError(
                f"reconcile of {effect.name} gave a {type(outcome).__name__}",
                "return Outcome.done(result), Outcome.not_done(), or None when it can't tell",
            )
        if outcome is not None and outcome.is_done:
            kept = outcome_of(outcome.result)
            log.resolved(effect.effect_id, "done", kept.value, kept.codec, by="reconcile")
            return kept
        if outcome is not None:
            log.resolved(effect.effect_id, "not_done", by="reconcile")
            return Again.NOT_DONE
        age = time.time() - effect.started_ms / 1000
        counts = effect.idempotency_key is not None and said.idempotency_key and -_SKEW < age < said.idempotency_ttl
        return Again.KEY if counts else None

    def answered(self, asked: Asked, outcome: ToolOutcome, from_: dict[str, Json]) -> ToolOutcome:
        """Journal that a call is answered from a recording, under a span as if it had run."""
        span = asked.span or ToolSpan(asked.place, asked.call.name, asked.call.arguments, hook=asked.call.hook)
        asked.span = span
        asked.log.answered(asked.place, span.trace, from_)
        _close(span, outcome)
        return outcome

    def _log(self, call: ToolCall) -> EffectLog | None:
        recorder = self._recorder if self._recorder is not None else recorder_in_use()
        if recorder is not None and not recorder.is_closed:
            return effect_log(recorder)
        if not (recorder.settings.enabled if recorder is not None else Settings.load().enabled):
            return None
        if effect_of(call.kind, declared(call.name)) is not True:
            return None
        if recorder is not None:
            raise LedgerUnavailable(f"{call.name} would have an effect, and the recording {recorder.path} is closed")
        raise LedgerUnavailable(
            f"{call.name} has an effect, and nothing records it",
            "configure('./agentrec') before it is called, or otel-agentrec run; OTEL_AGENTREC_ENABLED=false runs without",
        )

    def _asked(self, call: ToolCall, log: EffectLog) -> Asked:
        said = declared(call.name)
        place = place_of_call(log.recorder, call.name, call.call_id)
        key = log.key(call.name, call.arguments, said.inert)
        asked = Asked(call, log, place, said, effect_of(call.kind, said), key, place.run)
        asked.root = self.root_of(asked)
        return asked

    def _start(self, asked: Asked, again: UnknownEffect | None) -> ToolCall:
        call, log, said = asked.call, asked.log, asked.said
        asked.span = ToolSpan(asked.place, call.name, call.arguments, hook=call.hook)
        minted = again.idempotency_key if again is not None else None
        if minted is None and said.idempotency_key:
            minted = mint()
        effect_id = log.started(
            asked.place,
            call.name,
            call.arguments,
            root=asked.root,
            effect=asked.effect,
            hook=call.hook,
            key=asked.key,
            idempotency_key=minted,
            effect_id=again.effect_id if again is not None else None,
            trace=asked.span.trace,
        )
        begun = again.started_ms if again is not None else time.time_ns() // 1_000_000
        running = Running(asked, effect_id, minted, begun)
        RUNNING.set((*(one for one in RUNNING.get() if one.running), running))
        return _with_token(call, running)

    def _end(self, running: Running, outcome: ToolOutcome) -> None:
        asked, log = running.asked, running.asked.log
        if outcome.error is not None:
            if asked.effect is True and is_unknown_error(outcome.error):
                self._lost(running, f"{outcome.error.get('type')}: nobody waited for its end")
                _close(asked.span, outcome)
                return
            log.failed(running.effect_id, dict(outcome.error), outcome.codec)
        else:
            log.done(running.effect_id, outcome.value, outcome.codec)
            if asked.said.is_kept and asked.effect is True and not is_kept(outcome):
                raise ResultUnreadable(
                    f"{asked.call.name} gave what can't be kept, so no resume could hand it out: {outcome.value['reason']}",
                    "its effect has happened; let the tool return JSON, a dataclass or a pydantic model",
                )
        _close(asked.span, outcome)

    def _lost(self, running: Running, why: str) -> None:
        """Nobody knows what came of it: it is not run again in this process either."""
        asked = running.asked
        asked.log.cut_off(running.effect_id)
        if asked.effect is not True:
            return
        unknown = UnknownEffect(
            running.effect_id,
            asked.call.name,
            asked.call.arguments,
            running.started_ms,
            asked.place.call_id,
            running.idempotency_key,
            why,
        )
        if len(self._unknown) < MAX_UNKNOWN:
            self._unknown[asked.root, asked.call.name, asked.key] = unknown


def _ended(running: Running) -> None:
    """Contexts are copied, and outlive a call, so an effect says itself when it ended."""
    running.running = False
    RUNNING.set(tuple(one for one in RUNNING.get() if one.running))


def mint() -> str:
    """A new idempotency key."""
    return str(uuid.uuid4())


def _with_token(call: ToolCall, running: Running) -> ToolCall:
    return dataclasses.replace(call, token=running)


def _close(span: ToolSpan | None, outcome: ToolOutcome) -> None:
    if span is None:
        return
    if outcome.error is not None:
        kind, module = str(outcome.error.get("type")), outcome.error.get("module")
        name = kind if module in (None, "builtins") else f"{module}.{kind}"
        span.raised(name, str(outcome.error.get("message") or ""))
    else:
        span.returned(outcome.value if is_kept(outcome) else None)

"""The answerer of tool calls when a run is resumed: what was done is answered, what nobody knows stops the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from otel_agentrec.capture.effects import EffectLog
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.errors import AgentRecError, LedgerUnavailable
from otel_agentrec.intercept.declared import declared
from otel_agentrec.intercept.protocol import ToolOutcome
from otel_agentrec.intercept.recording_tools import Asked, RecordingTools
from otel_agentrec.intercept.unknown import Again, UnknownEffect, unknown_outcome
from otel_agentrec.nodes.effects import DONE, FAILED, NOT_BEGUN, UNKNOWN, Effect
from otel_agentrec.resume.attempt import Attempt, unknown_of

__all__ = ["ResumingTools", "origin_of", "recorded_outcome"]

Json = Any


class ResumingTools(RecordingTools):
    """Answers the tool calls of an attempt from what earlier attempts recorded; calls of other runs are new (or another one's: see
    :class:`~otel_agentrec.resume.program.Program`).

    Args:
        attempt: the run that is gone on with.
        may_run: asked before a tool of the attempt runs for real that was not begun before; raises when it must not (what
            the lane still holds of recorded model answers is asked first).
    """

    def __init__(
        self, attempt: Attempt, recorder: Recorder | None = None, may_run: Callable[[Asked], None] | None = None
    ) -> None:
        super().__init__(recorder)
        self.attempt = attempt
        self._may_run = may_run

    def root_of(self, asked: Asked) -> str:
        try:
            return self.attempt.root if self.attempt.is_of(asked.place, asked.log) else asked.place.run
        except AgentRecError as error:
            raise LedgerUnavailable(str(error), error.hint) from error

    def found(self, asked: Asked) -> ToolOutcome | UnknownEffect | None:
        known = super().found(asked)
        if known is not None or asked.root != self.attempt.root or asked.place.run != self.attempt.run:
            return known
        call, ledger = asked.call, self.attempt.ledger
        effect = ledger.take(call.name, asked.place.lane.text, asked.key, asked.place.call_id, asked.said.inert)
        if effect is None:
            if self._may_run is not None:
                self._may_run(asked)
            self.before_real(asked.log)
            return None
        if effect.state in (DONE, FAILED) and effect.lost is None:
            return self.answered(asked, recorded_outcome(effect), origin_of(effect))
        if effect.state == NOT_BEGUN or asked.effect is not True:
            self.before_real(asked.log)
            return unknown_of(effect)
        try:
            settled = self._settled(asked.log, effect)
            if settled is None:
                raise self._stop(asked.log, effect)
            if effect.state in (UNKNOWN, NOT_BEGUN):  # begun once more, with its key or because it did not happen
                self.before_real(asked.log)
                return unknown_of(effect)
        except BaseException:
            ledger.give_back(effect)
            raise
        return self.answered(asked, recorded_outcome(effect), origin_of(effect))

    def before_real(self, log: EffectLog) -> None:
        """Before anything of the attempt happens for real: nothing that earlier attempts have begun is unknown, of this run
        or of another one of the program.

        Raises:
            UnknownOutcomeError: names all effects that are.
        """
        together = self.attempt.first.together
        left = [effect for one in together for effect in one.check_unknown(lambda e: self._settled(log, e) is not None)]
        if left:
            raise self._error(log, left)

    def _stop(self, log: EffectLog, effect: Effect) -> BaseException:
        unsettled = [one for attempt in self.attempt.first.together for one in attempt.known().unsettled()]
        left = [one for one in unsettled if one is effect or self._settled(log, one) is None]
        left.sort(key=lambda one: one is not effect)
        return self._error(log, left)

    def _error(self, log: EffectLog, effects: list[Effect]) -> BaseException:
        return unknown_outcome([unknown_of(e) for e in effects], log.recorder.path, log.recorder.redactor.text)

    def _settled(self, log: EffectLog, effect: Effect) -> Effect | None:
        """The effect, if it is settled now: done with a result, not begun, or unknown with a key that still counts."""
        if not effect.needs_settling or declared(effect.name).effect in (False, "container"):
            return effect
        settled = self.settle(log, unknown_of(effect))
        if isinstance(settled, ToolOutcome):
            effect.state, effect.output, effect.codec, effect.lost = DONE, settled.value, settled.codec, None
        elif settled is Again.NOT_DONE:
            effect.state, effect.lost = NOT_BEGUN, None
        elif settled is None or effect.state != UNKNOWN:
            return None
        return effect


def recorded_outcome(effect: Effect) -> ToolOutcome:
    """What an effect that is done or failed gave, to be handed out."""
    if effect.state == FAILED:
        return ToolOutcome(codec=effect.codec, error=effect.error)
    return ToolOutcome(effect.output, effect.codec)


def origin_of(effect: Effect) -> dict[str, Json]:
    """Where an effect stands that answers a call: ``{run, effectId, stream?, seq?, span?}``."""
    told = {
        "run": effect.run,
        "effectId": effect.id,
        "stream": effect.stream or None,
        "seq": effect.seq if effect.seq >= 0 else None,
    }
    if effect.span is not None:
        told["span"] = effect.span[1]
    return {key: value for key, value in told.items() if value is not None}

"""The course that a resumed run keeps to: what is recorded of it is answered, and nothing else happens before its end.

One lane after the other comes to its frontier: as long as recorded answers of its model are left, nothing of it happens for
real. A model call that finds none of them, or a tool that was not recorded, has left the recorded course: the run stops, or
goes on for real where ``on_divergence=live`` allows it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from otel_agentrec.capture.effects import EffectLog, effect_log
from otel_agentrec.capture.placing import CallPlace, place_of_call
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.capture.recorders import recorder_in_use
from otel_agentrec.errors import AgentRecError, LedgerUnavailable, ResumeDivergence, RunStopped
from otel_agentrec.intercept.protocol import ToolOutcome
from otel_agentrec.intercept.recording_tools import Asked, RecordingTools
from otel_agentrec.intercept.stopped import STOPPED
from otel_agentrec.intercept.unknown import UnknownEffect
from otel_agentrec.nodes.effects import NOT_BEGUN
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.resume.attempt import Attempt
from otel_agentrec.resume.requests import Request
from otel_agentrec.resume.resuming_tools import ResumingTools
from otel_agentrec.resume.tape import Answered, Miss, Recorded, Tape
from otel_agentrec.resume.whymiss import MissReport

__all__ = ["Course", "here"]

R = TypeVar("R")
Json = Any


class Course(ResumingTools):
    """Answers the model calls and the tool calls of one attempt. Any thread may ask.

    Args:
        attempt: the run that is gone on with.
        live: go on for real in a lane that has left the recorded course; the run stops there otherwise.
        inert: paths of requests that can't change an answer.
        recorder: that of this process; default: the one that is in use when a call comes.
    """

    def __init__(
        self, attempt: Attempt, *, live: bool = False, inert: Iterable[str] = (), recorder: Recorder | None = None
    ) -> None:
        super().__init__(attempt, recorder, self._may_run_tool)
        attempt.keeps_claim = live or not attempt.is_over
        self.answered_calls = 0
        """Model calls that were answered from the recording."""
        self._live = live
        self._inert = tuple(inert)
        self._tape = Tape((), KeyRing.random(), self._inert)
        self._left: set[str] = set()
        self._lanes = threading.Lock()

    # --- models -------------------------------------------------------------------------------------------------------

    def ask(
        self,
        read: Callable[[], Request],
        hand_out: Callable[[Recorded], R],
        at: tuple[EffectLog, CallPlace] | None = None,
    ) -> R | None:
        """What ``hand_out`` makes of the recorded answer; None where the call is to be made.

        Args:
            read: gives the request.
            at: where the call stands, where it is known to belong to the attempt.

        Raises:
            ResumeDivergence: the run has left the recorded course.
            UnknownOutcomeError: the call would be the first one that is made, and there are effects of unknown outcome.
            RunStopped: the run was stopped for any reason; what ``hand_out`` raises of that kind stops it.
        """
        log, place = at or here(self._recorder)
        try:
            is_ours = self.attempt.is_of(place, log)
        except AgentRecError as error:
            raise STOPPED.stop(self.attempt.root, LedgerUnavailable(str(error), error.hint)) from error
        if not is_ours:
            return None
        root = self.attempt.root
        STOPPED.check(root)
        try:
            return self._answer(place.lane.text, log, read, hand_out)
        except RunStopped as error:
            if root not in STOPPED:
                log.stopped(place, error)
            raise STOPPED.stop(root, error) from error.__cause__

    def _answer(
        self, lane: str, log: EffectLog, read: Callable[[], Request], hand_out: Callable[[Recorded], R]
    ) -> R | None:
        request = read()
        found = self.tape(lane).model(lane, request)
        if isinstance(found, Answered):
            self.answered_calls += 1
            return hand_out(found.call)
        # of a run that came to its end the last answers may not have come to the disk
        ends = self.attempt.is_over and lane not in self._left and not self._tape.knows(lane, request)
        if not found.frontier or ends:
            self._diverged(lane, found)
        if lane in self._left:
            self._say(log, lane, "the model is asked")
        self.before_real(log)
        return None

    def tape(self, lane: str) -> Tape:
        """The recorded model calls, of which one in this lane is asked for."""
        return self._tape

    def knows(self, place: CallPlace, request: Request) -> bool:
        """Whether this very request of a model is recorded in the lane of the call."""
        return self.tape(place.lane.text).knows(place.lane.text, request)

    def knows_tool(self, asked: Asked) -> bool:
        """Whether this very call of a tool is."""
        return self.attempt.known().knows(asked.call.name, asked.place.lane.text, asked.key, asked.said.inert)

    def _diverged(self, lane: str, miss: Miss) -> None:
        if not self._live:
            if miss.unfit is not None:
                what = f"the model is asked in {_named(lane)} what is recorded, but {miss.unfit}: it is not handed out"
                raise ResumeDivergence(what, _hint(None))
            raise ResumeDivergence(_told("the model is asked", lane, miss.report), _hint(miss.report))
        self._leave(lane)

    def _leave(self, lane: str) -> None:
        with self._lanes:
            self._tape.leave(lane)
            self._left.add(lane)

    # --- tools --------------------------------------------------------------------------------------------------------

    def found(self, asked: Asked) -> ToolOutcome | UnknownEffect | None:
        lane = asked.place.lane.text
        if lane not in self._left or asked.root != self.attempt.root or asked.place.run != self.attempt.run:
            return super().found(asked)
        known = RecordingTools.found(self, asked)
        if known is not None:
            return known
        left = [
            effect
            for effect in self.attempt.ledger.left(asked.call.name, lane)
            if effect.effect not in (False, "container") and effect.state != NOT_BEGUN
        ]
        if left and asked.effect is True:
            error = self._error(asked.log, left)
            error.args = (
                f"after the run has left the recorded course, {asked.call.name} may be what was done before: {error}",
            )
            raise error
        self._say(asked.log, lane, f"the tool {asked.call.name} runs")
        self.before_real(asked.log)
        return None

    def _may_run_tool(self, asked: Asked) -> None:
        lane = asked.place.lane.text
        if self._tape.frontier(lane) and not self.attempt.is_over:
            return
        if not self._live:
            following = next(
                (f"asked its model next ({call.label})" for call in self._tape.waiting(lane)), "is finished"
            )
            raise ResumeDivergence(
                f"the tool {asked.call.name} is called in {_named(lane)} as it was not in the recorded run, which {following}",
                _hint(None),
            )
        self._leave(lane)
        self._say(asked.log, lane, f"the tool {asked.call.name} runs")

    @staticmethod
    def _say(log: EffectLog, lane: str, what: str) -> None:
        log.recorder.notices.say(f"resume: {_named(lane)} has left the recorded course; {what} for real")


def here(recorder: Recorder | None = None) -> tuple[EffectLog, CallPlace]:
    """Where a call of a model stands that this thread or task makes.

    Raises:
        LedgerUnavailable: nothing records it.
    """
    recorder = recorder if recorder is not None else recorder_in_use()
    if recorder is None or recorder.is_closed:
        raise LedgerUnavailable("a run is resumed, and nothing records it", "otel-agentrec run --resume records it")
    return effect_log(recorder), place_of_call(recorder)


def _named(lane: str) -> str:
    return lane or "the run"


def _told(what: str, lane: str, report: MissReport) -> str:
    step = f" (step {report.step})" if report.step is not None else ""
    lines = "; ".join(line.strip() for line in report.lines())
    return f"{what} in {_named(lane)} for something else than in the recorded run{step}: {lines}"


def _hint(report: MissReport | None) -> str:
    inert = " ".join(f"--inert '{entry}'" for entry in report.heal) if report is not None else ""
    first = f"what can't change the answer may differ: {inert}; " if inert else ""
    return f"{first}--on-divergence=live goes on for real from here"

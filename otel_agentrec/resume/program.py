"""A program whose one process held several runs is started again: which of its runs goes on with which recorded one.

One recorded run is chosen; the others of its process are its siblings. A run that begins in the new process is matched when it
first asks about a call: to a recorded one of the same agent (and session) that no run was matched to yet; of several to the
first one in which this very call is recorded, else to one in which none is, else to the first one. A request that the new process serves tells of no order,
so its run is matched to the chosen one, or to one in which the call is recorded. A run that matches none is new, but must not
do what a recorded one did that was not gone on with.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from otel_agentrec.capture.effects import EffectLog
from otel_agentrec.capture.placing import CallPlace
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.errors import AgentRecError, LedgerUnavailable, ResumeDivergence, RunStopped
from otel_agentrec.intercept.protocol import ToolOutcome
from otel_agentrec.intercept.recording_tools import Asked, RecordingTools
from otel_agentrec.intercept.stopped import STOPPED
from otel_agentrec.intercept.unknown import UnknownEffect
from otel_agentrec.nodes.effects import NOT_BEGUN
from otel_agentrec.resume.attempt import Attempt
from otel_agentrec.resume.course import Course, here
from otel_agentrec.resume.requests import Request

__all__ = ["Program"]

C = TypeVar("C", bound=Course)
MAX_SERVED = 4_096


class Program(RecordingTools, Generic[C]):
    """Answers the tool calls of a program that is resumed, and tells who answers its model calls. Any thread may ask.

    Args:
        attempt: at the run that is chosen.
        course: makes the course of an attempt.
        recorder: that of this process; default: the one that is in use when a call comes.
    """

    def __init__(self, attempt: Attempt, course: Callable[[Attempt], C], recorder: Recorder | None = None) -> None:
        super().__init__(recorder)
        self.attempt = attempt
        self.courses = [course(one) for one in attempt.together]
        """One for each recorded run, the earliest first."""
        self._chosen = next(one for one in self.courses if one.attempt is attempt)
        self._by_run: dict[str, C] = {}
        self._guessed: set[str] = set()
        """Runs that were matched though their first call was not recorded."""
        self._served: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def has_begun(self) -> bool:
        """Whether a run of this process goes on with a recorded one."""
        return bool(self._by_run)

    # --- whose call it is ---------------------------------------------------------------------------------------------

    def of_model(self, request: Request) -> tuple[C | None, tuple[EffectLog, CallPlace]]:
        """Who answers a call of a model that this thread or task makes, and where it stands; None: it is new, and to be made.

        Raises:
            LedgerUnavailable: nothing records it, or a recorded run can't be gone on with.
            UnknownOutcomeError: the call is new, and there are effects of unknown outcome.
        """
        log, place = here(self._recorder)
        course = self._known(place)
        if course is None:
            try:
                course = self._matched(place, log, lambda one: one.knows(place, request))
            except AgentRecError as error:
                raise STOPPED.stop(self.attempt.root, LedgerUnavailable(str(error), error.hint)) from error
        if course is None and len(self.courses) > 1:
            STOPPED.check(place.run)
            try:
                self._chosen.before_real(log)
            except RunStopped as error:
                log.stopped(place, error)
                raise STOPPED.stop(place.run, error) from error.__cause__
        return course, (log, place)

    def root_of(self, asked: Asked) -> str:
        try:
            course = self._known(asked.place) or self._matched(
                asked.place, asked.log, lambda one: one.knows_tool(asked)
            )
        except AgentRecError as error:
            raise LedgerUnavailable(str(error), error.hint) from error
        return course.root_of(asked) if course is not None else asked.place.run

    def _known(self, place: CallPlace) -> C | None:
        return self._by_run.get(place.run)

    def _matched(self, place: CallPlace, log: EffectLog, knows: Callable[[C], bool]) -> C | None:
        """Who answers the calls of a run that has not asked before."""
        with self._lock:
            course = self._known(place)
            if course is not None or place.run in self._served:
                return course
            free = [one for one in self.courses if one.attempt.run is None and one.attempt.may_be(place)]
            course = self._best(free, place, knows)
            if course is None:
                if free:  # what is served asks anew each time, and is one run's call or none's from the beginning
                    self._served[place.run] = None
                    while len(self._served) > MAX_SERVED:
                        self._served.popitem(last=False)
                return None
            if not course.attempt.is_of(place, log):
                return None
            self._by_run[place.run] = course
            return course

    def _best(self, free: list[C], place: CallPlace, knows: Callable[[C], bool]) -> C | None:
        if free == [self._chosen] or (len(free) == 1 and not place.is_served):
            return free[0]
        for one in free:
            if knows(one):
                return one
        if place.is_served:
            return self._chosen if self._chosen in free else None
        if not free:
            return None
        self._guessed.add(place.run)
        lane = (
            place.lane.text
        )  # one that had recorded nothing may have been about to ask this; one that had, asked another thing
        blank = (one for one in free if not one.tape(lane).waiting(lane))
        return next(blank, free[0])

    # --- tools --------------------------------------------------------------------------------------------------------

    def found(self, asked: Asked) -> ToolOutcome | UnknownEffect | None:
        known = super().found(asked)
        if known is not None:
            return known
        course = self._known(asked.place)
        if course is not None:
            found = course.found(asked)
            if found is None and asked.effect is True and asked.place.run in self._guessed:
                self._refuse_done(asked, course)
            return found
        if asked.effect is True and len(self.courses) > 1:
            self._refuse_done(asked)
            self._chosen.before_real(asked.log)
        return None

    def _refuse_done(self, asked: Asked, ours: C | None = None) -> None:
        """A run that is new, or may not be the one that it was taken for, must not do what another recorded one had done and
        was not asked for again.

        Raises:
            ResumeDivergence: it would.
        """
        for course in (one for one in self.courses if one is not ours):
            ledger = course.attempt.known()
            alike = ledger.alike(asked.call.name, asked.key, asked.said.inert)
            left = {id(effect) for effect in ledger.left(asked.call.name)}
            for effect in alike:
                if id(effect) in left and effect.effect not in (False, "container") and effect.state != NOT_BEGUN:
                    agent = asked.place.agent or "no agent"
                    raise ResumeDivergence(
                        f"{asked.call.name} is called for real in a run of {agent}, and was called before "
                        f"in run {course.attempt.root}, which has not asked for it again (effect {effect.id})",
                        "a program that is resumed must begin its runs as it did; where this call is another one, start the "
                        "program without --resume",
                    )

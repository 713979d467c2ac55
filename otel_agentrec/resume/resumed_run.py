"""An unchanged program that is resumed: who answers its model calls on the wire, and its tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from otel_agentrec.capture.effects import EffectLog
from otel_agentrec.capture.placing import CallPlace
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.intercept.protocol import PASS, ModelRequest, Pass, RecordedResponse
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.nodes.wire import record_of_wire
from otel_agentrec.resume.asked_tools import asked_tools, refuse_unseen, told_tools
from otel_agentrec.resume.attempt import Attempt
from otel_agentrec.resume.course import Course
from otel_agentrec.resume.program import Program
from otel_agentrec.resume.requests import Request, WireRequest, asked_model
from otel_agentrec.resume.tape import Recorded, Tape
from otel_agentrec.resume.wire_tape import recorded_calls

__all__ = ["ResumedModels", "ResumedRun"]


class ResumedRun(Course):
    """Answers the model calls and the tool calls of one attempt. Any thread may ask.

    Args:
        attempt, live, recorder: see :class:`~otel_agentrec.resume.course.Course`.
        rerun_tools: names of tools that may run though nobody intercepts them; or only ``all``.
        inert: paths of request bodies that can't change an answer.
        collapse: answer a call that its client had to make again (429s) with its last answer only.
    """

    def __init__(
        self,
        attempt: Attempt,
        *,
        live: bool = False,
        rerun_tools: Iterable[str] = (),
        inert: Iterable[str] = (),
        collapse: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(attempt, live=live, inert=inert, recorder=recorder)
        self._rerun = frozenset(rerun_tools)
        self._collapse = collapse
        self._view: View | None = None
        self._runs: list[str] = []
        self._unkept: tuple[str, ...] = ()
        """Tools that an answer asked for of which only telemetry tells, so that it can't be handed out."""
        attempt.on_join.append(lambda _: self._read())

    def answer_model(self, request: Request, at: tuple[EffectLog, CallPlace]) -> RecordedResponse | Pass:
        """The recorded answer; PASS where the call is to be made. ``at``: where it stands.

        Raises:
            ToolNotIntercepted: the answer asks for a tool that would run for real.
            RunStopped: see :meth:`~otel_agentrec.resume.course.Course.ask`.
        """
        found = self.ask(lambda: request, self._handed_out, at)
        return PASS if found is None else found

    def _handed_out(self, call: Recorded) -> RecordedResponse:
        assert self._view is not None
        wire = call.answer
        told = record_of_wire(self._view, wire)
        refuse_unseen(asked_tools(told), self._rerun)
        origin = {
            "run": self._view.run_of_wire(wire),
            "wireId": wire.wire_id,
            "stream": wire.place.stream,
            "seq": wire.place.seq,
            "span": wire.span or None,
        }
        return replace(told.response, origin={key: value for key, value in origin.items() if value is not None})

    def before_real(self, log: EffectLog) -> None:
        what = "the run had asked, in an answer that is not kept as it came, for the tool"
        refuse_unseen(self._unkept, self._rerun, what)
        super().before_real(log)

    def knows(self, place: CallPlace, request: Request) -> bool:
        self._read()
        return super().knows(place, request)

    def _read(self) -> None:
        """Read what is recorded of the run, unless that was done."""
        before, attempt = self.attempt.before.read(), self.attempt
        runs, ring = attempt.runs, KeyRing.of(attempt.directory)
        if self._view is before.view and self._runs == runs:
            return
        wires, records = before.wires(runs), before.records(runs)
        calls = recorded_calls(
            before.view,
            runs,
            attempt.known().effects,
            ring,
            self._inert,
            collapse=self._collapse,
            is_over=attempt.is_over,
            wires=wires,
            known=records,
        )
        kept = {wire.wire_id for wire in wires}
        lost = [one for one in records if kept.isdisjoint(one.wire_ids) and "prompt" not in one.keys]
        self._unkept = tuple(dict.fromkeys(name for record in lost for name in told_tools(record)))
        self._view, self._runs, self._tape = before.view, runs, Tape(calls, ring, self._inert)


class ResumedModels:
    """The model calls of a program that is resumed.

    Args:
        program: whose runs they are.
    """

    def __init__(self, program: Program[ResumedRun]) -> None:
        self._program = program

    def answer(self, request: ModelRequest) -> RecordedResponse | Pass:
        wire = WireRequest(request.method, request.path, request.body, request.api, request.headers.get("content-type"))
        asked = asked_model(wire)
        course, at = self._program.of_model(asked)
        return PASS if course is None else course.answer_model(asked, at)

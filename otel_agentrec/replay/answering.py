"""Who answers a replayed program: its model calls from the recorded requests, its tool calls from the recorded effects.

Identity is lane, canonical request and occurrence, never the order of arrival. Nothing is real: a call without a recorded
answer stops the run, and every further call of it is stopped in the same way.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from opentelemetry import trace

from otel_agentrec.capture.placing import place_of_call
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.errors import (
    AnswerUnavailable,
    RecordingEnds,
    ReplayDivergence,
    RunStopped,
    ToolNotIntercepted,
)
from otel_agentrec.intercept.declared import is_declared
from otel_agentrec.intercept.install import covered_tools
from otel_agentrec.intercept.protocol import ModelRequest, Pass, RecordedResponse, ToolCall, ToolOutcome
from otel_agentrec.intercept.recording_tools import Asked, RecordingTools
from otel_agentrec.intercept.unknown import UnknownEffect
from otel_agentrec.nodes.effects import DONE, FAILED, Effect
from otel_agentrec.nodes.exactjson import NoKey
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.keys import arguments_value, tool_key
from otel_agentrec.nodes.wire import record_of_wire
from otel_agentrec.nodes.wires import Wire
from otel_agentrec.replay.divergence import Divergence, diverged
from otel_agentrec.replay.recorded_run import RecordedRun
from otel_agentrec.replay.report import CANNOT, DIVERGED, ENDS, SAME, ReplayReport
from otel_agentrec.replay.report import FAILED as FAILED_RUN
from otel_agentrec.resume.jsondiff import differences
from otel_agentrec.resume.ledger import Ledger
from otel_agentrec.resume.requests import Request, WireRequest, asked_model
from otel_agentrec.resume.resuming_tools import origin_of, recorded_outcome
from otel_agentrec.resume.tape import Answered, Miss, Outcome, Recorded, Tape
from otel_agentrec.resume.whymiss import Known, MissReport, explain

__all__ = ["ALL", "Replay"]

Json = Any
ALL = "all"


class Replay:
    """One replay: ``models`` and ``tools`` answer, ``report`` says what came of it. Any thread may ask.

    Args:
        run: what is answered from.
        recorder: knows the spans that are open, which tell the lane of a call; not the one of the recording.
        rerun_tools: names of tools that may run though no outcome of them is recorded; or only ``all``.
        as_http_error: a model call that diverges is answered with status 400 instead of being stopped.
        claim: called before the first answer; raises when this process must not answer.
    """

    def __init__(
        self,
        run: RecordedRun,
        recorder: Recorder,
        *,
        rerun_tools: Iterable[str] = (),
        as_http_error: bool = False,
        claim: Callable[[], None] | None = None,
    ) -> None:
        self.run = run
        self.rerun = frozenset(rerun_tools)
        self.report = ReplayReport(
            recording=str(run.directory),
            runs=list(run.runs),
            recorded={"models": len(run.calls), "tools": len(run.effects)},
            unseen=[name for name in run.unseen if ALL not in self.rerun and name not in self.rerun],
        )
        self.models = _Models(self, recorder, as_http_error)
        self.tools = _Tools(self, recorder)
        self.on_stop: list[Callable[[ReplayReport], None]] = []
        """Told when the replay was stopped."""
        self.redact = recorder.redactor.text
        self._claim = claim
        self._stopped: RunStopped | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Before every answer. Raises what stopped the replay, if anything did."""
        first = self._stopped
        if first is not None:
            raise _again(first)
        if self._claim is not None:
            with self._lock:
                claim, self._claim = self._claim, None
            if claim is not None:
                try:
                    claim()
                except RunStopped as error:
                    raise self.stop(error) from None

    def stop(self, error: RunStopped) -> RunStopped:
        """Remember what stopped the replay: the first reason counts. Returns what to raise."""
        with self._lock:
            first = self._stopped
            if first is not None:
                return _again(first)
            self._stopped = error
        report = self.report
        report.error, report.reason, report.hint = error, str(error), error.hint or None
        report.outcome = CANNOT
        if isinstance(error, ReplayDivergence):
            report.outcome = DIVERGED
            told = error.divergence if error.divergence is not None else Divergence("network", str(error))
            report.divergence = told.to_json()
        elif isinstance(error, RecordingEnds):
            report.outcome = ENDS
        for tell in self.on_stop:
            tell(report)
        return error

    def failed(self, error: BaseException) -> None:
        """The program failed by itself."""
        if self.report.error is None:
            self.report.outcome, self.report.error = FAILED_RUN, error
            self.report.reason = f"{type(error).__name__}: {error}"

    def finish(self) -> ReplayReport:
        """The program has come to its end: what it did not ask for is left over, and a divergence."""
        report = self.report
        if report.outcome not in (SAME, FAILED_RUN):
            return report  # what comes after the first divergence says nothing
        report.left_over = [*self.models.left_over(), *self.tools.left_over()]
        if report.left_over and report.outcome == SAME:
            report.outcome = DIVERGED
            report.reason = "the program came to its end, and the recorded run did more"
        return report

    def ends(self, lane: str, what: str) -> RecordingEnds:
        """The error of a program that asks for more than a recording holds which was cut off."""
        where = f" of {lane}" if lane else ""
        return RecordingEnds(f"recording_ends: {what}{where}, and the recording was cut off before that")


def _again(first: RunStopped) -> RunStopped:
    again = type(first).__new__(type(first))
    again.args = first.args
    again.__dict__.update(first.__dict__)
    return again


class _Models:
    """See :class:`~otel_agentrec.intercept.protocol.ModelAnswerer`."""

    def __init__(self, replay: Replay, recorder: Recorder, as_http_error: bool) -> None:
        run = replay.run
        self._replay, self._recorder, self._as_http_error = replay, recorder, as_http_error
        self._tape = Tape(run.calls, run.ring, run.inert)

    def answer(self, request: ModelRequest) -> RecordedResponse | Pass:
        """The recorded answer.

        Raises:
            ReplayDivergence: nothing that is recorded, or nothing that is left, is this request.
            RecordingEnds: the recording was cut off before this call.
            ToolNotIntercepted: the answer asks for a tool that would run for real.
        """
        replay = self._replay
        try:
            replay.begin()
            lane = self._lane()
            key = replay.run.quick.key(request)
            known = self._tape.with_key(lane, key) if key is not None else None
            if isinstance(known, Recorded):
                return self._handed_out(known.answer)
            asked = asked_model(
                WireRequest(
                    request.method, request.path, request.body, request.api, request.headers.get("content-type")
                )
            )
            found = self._tape.model(lane, asked)
            if isinstance(found, Answered):
                return self._handed_out(found.call.answer)
            raise self._missed(lane, asked, found)
        except RunStopped as error:
            stopped = replay.stop(error)
            if self._as_http_error and isinstance(stopped, ReplayDivergence):
                return _as_response(stopped)
            raise stopped from None

    def _lane(self) -> str:
        edge = self._recorder.edge
        if not trace.get_current_span().get_span_context().is_valid:
            edge.settle()
            if not len(edge.open_spans):  # nothing is around: no need to look for it
                return ""
        return place_of_call(self._recorder).lane.text

    def left_over(self) -> list[dict[str, Json]]:
        """Recorded requests that were not asked for."""
        calls = [call for call in self._tape.left_over() if call.outcome is not Outcome.OPEN]
        return [_told("model", call.name or _kind_of(call), call.step, call.label, call.lane) for call in calls]

    def _handed_out(self, wire: Wire) -> RecordedResponse:
        run = self._replay.run
        ready = run.ready[wire.wire_id]
        if ready.tools:
            self._check_tools(ready.tools)
        self._replay.report.models += 1
        if ready.response is not None:
            return ready.response
        return replace(record_of_wire(run.view, wire).response, origin=ready.origin)

    def _check_tools(self, asked: tuple[str, ...]) -> None:
        """Stop before an answer is handed out that asks for a tool which would run unseen."""
        rerun = self._replay.rerun
        names = [name for name in asked if name not in rerun and not is_declared(name)]
        if names and ALL not in rerun and not covered_tools():
            raise ToolNotIntercepted(
                f"the recorded answer asks for the tool {names[0]}, which nobody intercepts: it would run for real",
                f"decorate it with @resumable_tool, or, where that does no harm, allow it: --rerun-tools {','.join(names)}",
            )

    def _missed(self, lane: str, asked: Request, miss: Miss) -> RunStopped:
        if miss.unfit is not None:
            return AnswerUnavailable(
                f"the model is asked what is recorded, but {miss.unfit}",
                "an answer that was changed is never handed out",
            )
        replay, report = self._replay, miss.report
        waiting = self._tape.waiting(lane)
        if replay.run.ends_open and not waiting:
            return replay.ends(lane, "the model is asked once more")
        found, step, nearest = report.differences, report.step, report.nearest
        following = waiting[0] if waiting else None
        if not found and following is not None and following.request is not None:
            found = tuple(differences(following.request.compared, asked.compared))
            step, nearest = following.step, following.label
        elsewhere = tuple(self._tape.elsewhere(lane, asked))
        return diverged(
            Divergence("model", report.reason, lane, step, nearest, found, report.heal, elsewhere), self._replay.redact
        )


class _Tools(RecordingTools):
    """See :class:`~otel_agentrec.intercept.protocol.ToolAnswerer`."""

    def __init__(self, replay: Replay, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._replay = replay
        self._ledger = Ledger(replay.run.effects, replay.run.ring)

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        """The recorded outcome; a tool inside which calls are recorded runs again.

        Raises:
            ReplayDivergence: the recorded run did not call it so.
            RecordingEnds: the recording was cut off before its end.
            AnswerUnavailable: what it gave is not there any more.
        """
        try:
            self._replay.begin()
            return super().answer(call)
        except RunStopped as error:
            raise self._replay.stop(error) from None

    def found(self, asked: Asked) -> ToolOutcome | UnknownEffect | None:
        replay, call, lane = self._replay, asked.call, asked.place.lane.text
        try:
            key = tool_key(replay.run.ring, call.name, call.arguments, asked.said.inert)
        except NoKey:
            key = None
        effect = self._ledger.take(call.name, lane, key, asked.place.call_id, asked.said.inert)
        may_run = ALL in replay.rerun or call.name in replay.rerun
        if effect is None:
            if may_run:
                self._runs(call.name)
                return None
            raise self._missed(asked, lane, key)
        if effect.id in replay.run.inner or effect.effect == "container" or asked.effect == "container":
            self._runs(call.name)
            return None
        if effect.state in (DONE, FAILED) and effect.lost is None:
            replay.report.tools += 1
            return self.answered(asked, recorded_outcome(effect), origin_of(effect))
        if may_run:
            self._runs(call.name)
            return None
        if effect.lost is not None:
            raise AnswerUnavailable(
                f"{call.name} is recorded (effect {effect.id}), but something of it is {effect.lost}",
                f"record the run again, or let it run where that does no harm: --rerun-tools {call.name}",
            )
        if replay.run.ends_open:
            raise replay.ends(lane, f"{call.name} was begun (effect {effect.id})")
        raise AnswerUnavailable(
            f"{call.name} was cut off when it was recorded (effect {effect.id}), and nobody knows what it did",
            f"let it run where that does no harm: --rerun-tools {call.name}",
        )

    def left_over(self) -> list[dict[str, Json]]:
        """Recorded tool calls that were not asked for."""
        left = [effect for effect in self._ledger.left() if effect.state in (DONE, FAILED)]
        return [_told("tool", effect.name, None, effect.id, effect.lane) for effect in left]

    def _runs(self, name: str) -> None:
        if name not in self._replay.report.reran:
            self._replay.report.reran.append(name)

    def _missed(self, asked: Asked, lane: str, key: str | None) -> RunStopped:
        replay, call = self._replay, asked.call
        near = self._ledger.left(lane=lane)
        if replay.run.ends_open and not near:
            return replay.ends(lane, f"{call.name} is called")
        report = _explained(call, self._ledger.effects, near, asked.said.inert)
        elsewhere = tuple(self._ledger.elsewhere(call.name, lane, key, asked.said.inert))
        return diverged(
            Divergence("tool", report.reason, lane, None, report.nearest, report.differences, (), elsewhere),
            replay.redact,
        )


def _explained(call: ToolCall, effects: list[Effect], left: list[Effect], inert: tuple[str, ...]) -> MissReport:
    unused = {id(effect) for effect in left}
    known = [
        Known(effect.id, f"tool {effect.name}", arguments_value(effect.arguments), None, id(effect) not in unused)
        for effect in effects
        if effect.arguments_lost is None
    ]
    try:
        return explain(arguments_value(call.arguments), f"tool {call.name}", known, inert_of(inert))
    except (NoKey, RecursionError):
        return MissReport(False, f"the arguments of {call.name} can't be written out whole, so nothing is the same")


def _kind_of(call: Recorded) -> str:
    return call.request.kind if call.request is not None else "call"


def _told(kind: str, name: str, step: int | None, node: str, lane: str) -> dict[str, Json]:
    return {"kind": kind, "name": name, "step": step, "node": node, "lane": lane}


def _as_response(error: ReplayDivergence) -> RecordedResponse:
    """The divergence as an answer that no SDK tries again."""
    body = json.dumps({"error": {"type": "replay_divergence", "message": str(error)}}).encode()
    headers = (("content-type", "application/json"), ("x-should-retry", "false"))
    return RecordedResponse(400, headers, ((0, body),), decoded=True)

"""A run that a program resumes itself, with clients that know its prompts: who answers them, and its tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from otel_agentrec.capture.effects import EffectLog
from otel_agentrec.capture.placing import CallPlace
from otel_agentrec.clients.answers import result_of_record
from otel_agentrec.intercept.tools.raised import RecordedToolError, error_again
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.prompts import AgentModelResult
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.resume.asked_tools import refuse_unseen
from otel_agentrec.resume.attempt import Attempt
from otel_agentrec.resume.course import Course
from otel_agentrec.resume.recorded import recorded_calls
from otel_agentrec.resume.requests import Request
from otel_agentrec.resume.results import lost_answer
from otel_agentrec.resume.tape import Outcome, Recorded, Tape

__all__ = ["PromptedRun", "RecordedModelError"]

Json = Any


class RecordedModelError(Exception):
    """A model call failed in the recorded run with an exception whose class this process does not have."""


class PromptedRun(Course):
    """The tool calls of an attempt, and the prompts of its :class:`~otel_agentrec.resume.clients.ResumableModelClient`.

    Only a lane in which such a client was asked has a course to keep to: of a program that asks its model in another way
    no answers are handed out, so that it never comes to their end.

    Args:
        attempt, live: see :class:`~otel_agentrec.resume.course.Course`.
        rerun_tools: names of tools that may run though nobody intercepts them; or only ``all``.
    """

    def __init__(self, attempt: Attempt, *, live: bool = False, rerun_tools: Iterable[str] = ()) -> None:
        super().__init__(attempt, live=live)
        self._rerun = frozenset(rerun_tools)
        attempt.on_join.append(lambda _: self._forget())
        self._calls: list[Recorded] | None = None
        self._kept: set[str] = set()

    def answer_prompt(
        self, prompt: Request, at: tuple[EffectLog, CallPlace]
    ) -> tuple[AgentModelResult, dict[str, Json]] | None:
        """The recorded result of a prompt, and where it stands; None where the model is to be asked. ``at``: where the call
        stands.

        Raises:
            Exception: the recorded call failed, and the run went past that: the same error.
            ToolNotIntercepted: the answer asks for a tool that would run for real.
            RunStopped: see :meth:`~otel_agentrec.resume.course.Course.ask`.
        """
        found = self.ask(lambda: prompt, self._handed_out, at)
        if found is None:
            return None
        record, result = found
        if result is None:
            raise _error(record)
        return result, {"run": record.run_id, "node": record.node_id}

    def _handed_out(self, call: Recorded) -> tuple[NodeIoRecord, AgentModelResult | None]:
        """The record, and its result; None where the call failed."""
        record: NodeIoRecord = call.answer
        if call.outcome is Outcome.FAILED:
            return record, None
        result = result_of_record(record)
        refuse_unseen((asked.name for asked in result.tool_calls or ()), self._rerun)
        return record, result

    def tape(self, lane: str) -> Tape:
        self._read()
        with self._lanes:
            self._kept.add(lane)
        return self._tape

    def declare(self, inert: tuple[str, ...]) -> None:
        """Paths of prompts that can't change an answer; those of the first call count."""
        if self._calls is None:
            self._inert = inert

    def knows(self, place: CallPlace, request: Request) -> bool:
        self._read()
        return self._tape.knows(place.lane.text, request)

    def _may_run_tool(self, asked: Any) -> None:
        if self.attempt.is_over:
            self._read()
        if asked.place.lane.text in self._kept or self.attempt.is_over:
            super()._may_run_tool(asked)

    def _read(self) -> None:
        with self._lanes:
            if self._calls is None:
                self._calls = self._recorded()
                self._tape = Tape(self._calls, KeyRing.of(self.attempt.directory), self._inert)

    def _forget(self) -> None:
        """What was read before the claim was had is read again."""
        with self._lanes:
            self._calls = None

    def _recorded(self) -> list[Recorded]:
        """The model calls of the earlier attempts."""
        before, runs = self.attempt.before.read(), self.attempt.runs
        ring = KeyRing.of(self.attempt.directory)
        found = recorded_calls(before.recording, self.attempt.root, ring, self._inert, before.view, runs=runs)
        models = [call for call in found if call.kind is NodeType.MODEL]
        if self.attempt.is_over:
            models = [replace(call, past=True) for call in models]
        return [
            replace(call, unfit=None if call.outcome is Outcome.FAILED else lost_answer(call.answer)) for call in models
        ]


def _error(record: NodeIoRecord) -> Exception:
    told: Any = record.error if isinstance(record.error, dict) else {"message": record.error}
    module, _, name = str(told.get("type") or "").rpartition(".")
    message = str(told.get("message") or name)
    error = error_again({"type": name, "module": module or "builtins", "message": message})
    return RecordedModelError(f"{name}: {message}") if isinstance(error, RecordedToolError) else error

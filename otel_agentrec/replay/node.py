"""One recorded call once more: ``mock`` answers from the recording and reaches nothing, ``live`` asks the real thing again.

replayer = NodeReplayer("agentrec")
record = replayer.record("model@…")
same = replayer.replay_model_mock(record)
fresh = replayer.replay_model_live(record, OpenAIChatClient(OpenAI()))
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from otel_agentrec.audit.verify import verify as verify_recording
from otel_agentrec.clients.answers import chunks_of_result, result_of_record
from otel_agentrec.errors import RecordedError, RecordingTampered
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.find import find_record
from otel_agentrec.nodes.fold import View, fold
from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.nodes.wire_payload import answer_in
from otel_agentrec.prompts import (
    AgentModelResult,
    AgentPrompt,
    AgentToolCall,
    AgentToolResult,
    AsyncModelClient,
    ModelClient,
    ModelStreamListener,
)
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.replay.compare import Comparison, Trial, compared

__all__ = ["NodeReplayer"]

Json = Any


class NodeReplayer:
    """Replays node records, from memory or from disk.

    Args:
        recording: the recording that the records come from. It is verified before the first replay, and every record that
            is replayed is compared with what stands there. Without one there is no chain to check a record against.
        verify: False replays what can't be trusted.

    Raises (every method):
        ValueError: the record is of another node type, or what is needed of it was not recorded.
        RecordingTampered: the recording was changed, or the record is not the one that stands there.
    """

    def __init__(self, recording: str | os.PathLike[str] | Recording | None = None, *, verify: bool = True) -> None:
        self._recording = recording if isinstance(recording, Recording) or recording is None else Recording(recording)
        self._verify = verify
        self._view: View | None = None
        self._run: tuple[str | None, dict[str, NodeIoRecord]] | None = None
        """The run that was asked for last, with its records by id."""

    def record(self, wanted: str) -> NodeIoRecord:
        """The record of the recording with this record id or node id, or the only one whose id begins so.

        Raises:
            ValueError: there is no recording.
            UsageError: there is no such record, or more than one.
        """
        found = find_record(self._folded(), wanted)
        return next(r for r in self._folded().records(found.run_id) if r.record_id == found.record_id)

    def replay_model_mock(self, record: NodeIoRecord, listener: ModelStreamListener | None = None) -> AgentModelResult:
        """The answer as it was; no model is asked.

        The provider's payload is preferred, the recorded text stands in for it; ``outputs`` that are only text count as text.
        ``chunks`` are there where the stream was recorded on the wire and the replayer was given the recording.

        Args:
            listener: hears the answer as a stream, each piece marked ``replayed``.

        Raises:
            RecordedError: the call failed, or no answer was recorded; what it had said by then is its ``partial``.
        """
        _check(record, NodeType.MODEL, "replay_model_mock")
        self._trust(record)
        _whole([record.outputs, record.output_text, record.tool_calls, record.reasoning_text], record, "answer")
        result = result_of_record(record, self._events(record))
        if listener is not None:
            for chunk in chunks_of_result(result):
                listener.on_chunk(replace(chunk, replayed=True))
        nothing = result.raw_response is None and not result.tool_calls and not result.reasoning_text
        if record.status == "error" or record.status == "interrupted" or (nothing and record.error):
            raise _failure(record, None if nothing else result)
        return result

    @overload
    def replay_model_live(self, record: NodeIoRecord, client: ModelClient) -> AgentModelResult: ...

    @overload
    def replay_model_live(self, record: NodeIoRecord, client: AsyncModelClient) -> Awaitable[AgentModelResult]: ...

    def replay_model_live(
        self, record: NodeIoRecord, client: ModelClient | AsyncModelClient
    ) -> AgentModelResult | Awaitable[AgentModelResult]:
        """Put the recorded prompt to a model again. What the client raises passes through.

        Raises:
            ValueError: ``inputs`` hold no whole AgentPrompt.
        """
        return client.create(self._prompt(record, "replay_model_live"))

    def compare_live(
        self,
        record: NodeIoRecord,
        clients: Mapping[str, ModelClient],
        *,
        repeats: int = 1,
        told: Callable[[Trial], object] | None = None,
    ) -> Comparison:
        """Put the recorded prompt to several models, ``repeats`` times each. What a client raises is its result.

        Args:
            told: hears each trial as it comes.

        Raises:
            ValueError: ``inputs`` hold no whole AgentPrompt; ``repeats`` is below 1.
        """
        if repeats < 1:
            raise ValueError(f"repeats is at least 1, not {repeats}")
        prompt = self._prompt(record, "compare_live")
        try:
            recorded = self.replay_model_mock(record)
        except (RecordedError, ValueError):
            recorded = None
        return compared(prompt, recorded, clients, repeats, told)

    def replay_tool_mock(self, record: NodeIoRecord) -> AgentToolResult:
        """The result as it was; no tool runs. A tool that failed gives a result that says so.

        Raises:
            RecordedError: no result was recorded: nobody knows what came of the call.
        """
        _check(record, NodeType.TOOL, "replay_tool_mock")
        self._trust(record)
        _whole([record.outputs, record.error], record, "result")
        call, outputs = _call_of(record), record.outputs
        held = AgentToolResult.held_in(outputs, call.name)
        if held is not None:
            return held if held.call_id is not None else replace(held, call_id=call.call_id)
        if record.status in ("interrupted", "partial") and outputs is None:
            raise _failure(record, None)
        error = (record.error or {}).get("message") or (record.error or {}).get("type")
        failed = record.status == "error"
        return AgentToolResult(
            call.name, call.call_id, outputs, ok=not failed, error=(error or "failed") if failed else None
        )

    def replay_tool_live(self, record: NodeIoRecord, reinvoke: Callable[[AgentToolCall], Any] | Any) -> Any:
        """Call the tool again, for real.

        Args:
            reinvoke: a function from the recorded call to a result (an :class:`AgentToolResult`, or the bare output), or a
                ``ToolExecutor``; one that can be awaited gives a result that can be awaited.

        Returns:
            An :class:`AgentToolResult`.
        """
        _check(record, NodeType.TOOL, "replay_tool_live")
        self._trust(record)
        call = _call_of(record)
        _whole(call.arguments, record, "call")
        output = getattr(reinvoke, "execute", reinvoke)(call)
        return _awaited(call, output) if inspect.isawaitable(output) else _result(call, output)

    def prompt(self, record: NodeIoRecord) -> AgentPrompt:
        """The recorded prompt, as a live replay asks it.

        Raises:
            ValueError: ``inputs`` hold no whole AgentPrompt.
        """
        return self._prompt(record, "a live replay")

    def _prompt(self, record: NodeIoRecord, method: str) -> AgentPrompt:
        _check(record, NodeType.MODEL, method)
        self._trust(record)
        try:
            prompt = AgentPrompt.from_inputs(record.inputs)
        except ValueError as error:
            raise ValueError(f"{method} can't ask again for {record.node_id}: {error}") from None
        _whole(prompt.to_json(), record, "AgentPrompt")
        return prompt

    def _events(self, record: NodeIoRecord) -> Sequence[Json]:
        """The provider's events of an answer that came as a stream, where they were recorded on the wire."""
        if self._recording is None or not record.wire_ids:
            return ()
        view, ids = self._folded(), set(record.wire_ids)
        wire = next((w for w in reversed(list(view.wires)) if w.wire_id in ids and w.is_answer), None)
        return answer_in(view.event(wire.place).payload).pieces if wire is not None else ()

    def _folded(self) -> View:
        if self._recording is None:
            raise ValueError("this NodeReplayer was given no recording to find a record in")
        if self._view is None:
            if self._verify:
                report = verify_recording(self._recording)
                if not report.is_valid:
                    raise RecordingTampered(
                        f"{self._recording.path} is not as it was written: {report.kind} in {report.file}"
                    )
            self._view = fold(self._recording)
        return self._view

    def _trust(self, record: NodeIoRecord) -> None:
        """Raise unless the record is what stands in the recording."""
        if not self._verify or self._recording is None:
            return
        if self._run is None or self._run[0] != record.run_id:
            self._run = (record.run_id, {r.record_id: r for r in self._folded().records(record.run_id)})
        there = self._run[1].get(record.record_id)
        if there is None:
            raise RecordingTampered(
                f"{self._recording.path} holds no record {record.record_id}", "give the recording that it comes from"
            )
        mine, theirs = record.to_json(), there.to_json()
        changed = [key for key in mine if key not in _LATER and mine[key] != theirs[key]]
        if changed:
            raise RecordingTampered(
                f"record {record.record_id} is not as it was recorded: {', '.join(changed)} differ",
                "read it from the recording again",
            )


_LATER = frozenset({"evaluations", "copiesSeen", "mergedSpanIds", "journal", "flags", "keys"})
"""What may be added to a record after it was read."""


def _check(record: NodeIoRecord, wanted: NodeType, method: str) -> None:
    kind = getattr(record, "node_type", None)
    if kind is not wanted:
        told = kind.value if isinstance(kind, NodeType) else type(record).__name__
        raise ValueError(
            f"{method} needs a {wanted.value} record, and {getattr(record, 'node_id', record)!r} is {told}"
        )


def _whole(value: Json, record: NodeIoRecord, what: str) -> None:
    lost = lost_in(value)
    if lost is not None:
        raise ValueError(f"the {what} of {record.node_id} can't be replayed: a part of it is {lost}")


def _call_of(record: NodeIoRecord) -> AgentToolCall:
    if isinstance(record.inputs, AgentToolCall):
        return record.inputs
    inputs = record.inputs if isinstance(record.inputs, Mapping) else {}
    name = inputs.get("name") or record.tool_name or ""
    return AgentToolCall(name, inputs.get("arguments"), inputs.get("callId") or record.tool_call_id)


def _result(call: AgentToolCall, output: Any) -> AgentToolResult:
    return output if isinstance(output, AgentToolResult) else AgentToolResult(call.name, call.call_id, output, ok=True)


async def _awaited(call: AgentToolCall, output: Awaitable[Any]) -> AgentToolResult:
    return _result(call, await output)


def _failure(record: NodeIoRecord, partial: AgentModelResult | None) -> RecordedError:
    error = record.error or {}
    if record.status == "interrupted" or not error:
        return RecordedError(None, f"{record.node_id} was {record.status}: no answer was recorded", partial)
    return RecordedError(error.get("type"), str(error.get("message") or ""), partial)

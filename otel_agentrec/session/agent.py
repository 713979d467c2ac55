"""A chat agent whose memory is its log (ai4j section 4, ToyAgent)::

    session = AgentSession("user-42", OpenAIChatClient(OpenAI()), log="./agentrec", model="gpt-5")
    session.run("My name is Star.").output_text

Without ``log`` the events stand in memory, and a session store keeps the session::

    store.save(session.snapshot())
    session.restore(store.load("user-42"))
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from otel_agentrec.errors import AgentRecError, RecordingTampered, UsageError
from otel_agentrec.journal.draft import Envelope, NewEvent
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.memory import InMemoryEventStore
from otel_agentrec.prompts import (
    AgentModelResult,
    AgentPrompt,
    AgentToolCall,
    AgentToolResult,
    ModelClient,
    ModelStreamListener,
    ToolExecutor,
)
from otel_agentrec.session.log import SessionLog
from otel_agentrec.session.policy import CONVERSATION, Message, Policy, with_compaction, with_tools
from otel_agentrec.session.snapshot import AgentSessionSnapshot

__all__ = ["AGENT", "AgentSession", "TooManySteps"]

Json = Any
AGENT: Policy = with_compaction(with_tools(CONVERSATION))
"""What an agent's model is given: what was said, its tool calls with their results, summaries in place of what they replace."""


class TooManySteps(AgentRecError):
    """The model asked for tools again and again; what it did stands in the log."""

    default_hint = "raise max_steps, or look at the session: otel-agentrec session show RECORDING ID"


class AgentSession:
    """One conversation with a model. Everything it knows it reads from its log, turn by turn.

    Args:
        session_id: any text that is not empty.
        model_client: asks the model.
        log: a recording directory, or a SessionLog; None: in memory.
        tool_executor: runs the tools that the model asks for.
        model, instructions, tools, settings: go into every prompt; ``settings`` are further fields of AgentPrompt.
        policy: what enters the context.
        budget: tokens of the context; older turns are left out of it.
        max_steps: model calls per turn.
    """

    def __init__(
        self,
        session_id: str,
        model_client: ModelClient,
        *,
        log: SessionLog | str | os.PathLike[str] | None = None,
        tool_executor: ToolExecutor | None = None,
        model: str | None = None,
        instructions: str | None = None,
        tools: Sequence[Json] | None = None,
        settings: dict[str, Json] | None = None,
        policy: Policy = AGENT,
        budget: int | None = None,
        max_steps: int = 20,
    ) -> None:
        self._memory = InMemoryEventStore() if log is None else None
        self.log = log if isinstance(log, SessionLog) else SessionLog.open(self._memory or log or "", session_id)
        if self.log.session_id != session_id:
            raise UsageError(f"the log is that of session {self.log.session_id}, not {session_id}")
        self.session_id = session_id
        self.model_client = model_client
        self.tool_executor = tool_executor
        self._prompt = AgentPrompt(model=model, instructions=instructions, tools=tools, **(settings or {}))
        self._policy = policy
        self._budget = budget
        self._max_steps = max_steps

    @property
    def memory(self) -> list[Message]:
        """The messages that the model would be given now: a projection of the log, made anew each time."""
        return self.log.project(self._policy, budget=self._budget)

    def run(self, text: Json, listener: ModelStreamListener | None = None) -> AgentModelResult:
        """One turn: the user says ``text``, the model answers, its tools are run until it asks for none.

        Each step is in the log before the next one begins. ``listener`` hears the model's answers as they come.

        Raises:
            UsageError: the model asks for a tool, and there is no tool_executor.
            TooManySteps: it asked for tools in ``max_steps`` answers.
            Exception: what model client or tool raise; the log then says ERROR, or ends with a call without a result.
        """
        self.log.user(text)
        for _ in range(self._max_steps):
            result = self._ask(listener)
            if result.output_text is not None or not result.tool_calls:
                self.log.reply(result.output_text or "")
            if not result.tool_calls:
                self.log.turn_completed()
                return result
            for call in result.tool_calls:
                self.log.tool_call(call.name, call.arguments, call.call_id)
            for call in result.tool_calls:
                self._call(call)
        raise TooManySteps(f"session {self.session_id}: no answer after {self._max_steps} model calls")

    def prompt(self) -> AgentPrompt:
        """What the model would be asked now."""
        fields = {name: getattr(self._prompt, name) for name in AgentPrompt.__dataclass_fields__}
        return AgentPrompt(**{**fields, "items": self.memory})

    def prompt_at(self, seq: int) -> AgentPrompt:
        """What the model was asked when the log ended at event ``seq``, with this session's policy and budget.

        See :meth:`SessionLog.asked_at` for the numbers at which it was.
        """
        given = self.log.request_at(seq, self._policy, budget=self._budget)
        header = given["header"]
        instructions = header.get("instructions")
        if isinstance(instructions, list) and [p.get("type") for p in instructions] == ["text"]:
            instructions = instructions[0].get("content")
        told = {"instructions": instructions, "tools": header.get("tools"), "items": given["messages"]}
        return AgentPrompt.from_json({**(header.get("parameters") or {}), **told})

    def answer_at(self, seq: int) -> AgentModelResult:
        """What the model answered when it was asked after event ``seq``, from the log: no model is asked.

        Raises:
            UsageError: it was not asked then, or did not answer.
        """
        text: str | None = None
        calls: list[AgentToolCall] = []
        for event in self.log.events(seq + 1):
            payload = event.payload
            if event.type == "AGENT_REPLY_APPENDED" and text is None and not calls:
                text = payload.get("content")
            elif event.type == "TOOL_CALLED":
                calls.append(AgentToolCall(payload["name"], payload.get("arguments"), payload.get("callId")))
            else:
                break
        if text is None and not calls:
            raise UsageError(
                f"session {self.session_id}: the model gave no answer after event {seq}",
                f"it was asked after {', '.join(map(str, self.log.asked_at()[-8:])) or 'none'}",
            )
        return AgentModelResult(text, tool_calls=calls)

    def snapshot(self) -> AgentSessionSnapshot:
        """The whole session as one value, to be kept by a session store."""
        kept = InMemoryEventStore()
        copies: list[NewEvent] = []
        for event in self.log.events(1):
            where = Envelope(event.run, event.session, event.turn, event.step, event.trace)
            copies.append(NewEvent(event.type, event.payload, where, event.id or None, event.hash, event.ts))
        if copies:
            kept.append(self.log.stream, copies, 0)
        compactions = [c.payload for c in copies if c.type == "CONTEXT_COMPACTED"]
        lines = kept.lines(self.log.stream)
        return AgentSessionSnapshot(self.session_id, self.memory, lines, compactions, len(lines))

    def restore(self, snapshot: AgentSessionSnapshot) -> None:
        """Go on from a snapshot, after checking its hashes.

        A session in memory becomes the snapshot. One with a log of its own keeps it where that is at least as long, and
        goes on to the snapshot's end where it is shorter.

        Raises:
            UsageError: it is a snapshot of another session.
            RecordingTampered: the snapshot was changed, or tells another story than the log; nothing was changed.
        """
        if snapshot.session_id != self.session_id:
            raise UsageError(f"this is a snapshot of session {snapshot.session_id}, not of {self.session_id}")
        kept = InMemoryEventStore()
        kept.restore(self.log.stream, snapshot.events)
        if self._memory is not None:
            self._memory.restore(self.log.stream, snapshot.events)
            return
        told = list(kept.read(self.log.stream, 1))
        have = list(self.log.events(1))
        for one, other in zip(told, have, strict=False):
            if _said(one) != _said(other):
                raise RecordingTampered(
                    f"the snapshot of session {self.session_id} and its log differ at event {one.seq}",
                    "the log is the truth: leave the snapshot, or give the session another log",
                )
        copies = [
            NewEvent(e.type, e.payload, Envelope(e.run, e.session, e.turn, e.step, e.trace), None, e.copy_of, e.ts)
            for e in told[len(have) :]
        ]
        if copies:
            self.log.store.append(self.log.stream, copies, len(have) + 1 if have else 0)

    def _ask(self, listener: ModelStreamListener | None) -> AgentModelResult:
        prompt = self.prompt()
        parameters = {
            key: value for key, value in prompt.to_json().items() if key not in ("items", "instructions", "tools")
        }
        self.log.header(
            instructions=[{"type": "text", "content": prompt.instructions}] if prompt.instructions else None,
            tools=list(prompt.tools) if prompt.tools else None,
            parameters=parameters or None,
            policy=self._policy,
        )
        try:
            if listener is not None:
                return self.model_client.create_stream(prompt, listener)
            return self.model_client.create(prompt)
        except Exception as e:
            self.log.append("ERROR", error_type=type(e).__qualname__, message=str(e))
            raise

    def _call(self, call: AgentToolCall) -> None:
        if self.tool_executor is None:
            raise UsageError(f"the model asks for {call.name}, and the session has no tools", "give it a tool_executor")
        try:
            output = self.tool_executor.execute(call)
        except Exception as e:
            self.log.tool_result(None, call.call_id, name=call.name, error=f"{type(e).__qualname__}: {e}")
            raise
        if isinstance(output, AgentToolResult):
            output = output.output if output.error is None else output.error
        self.log.tool_result(output, call.call_id, name=call.name)


def _said(event: Event) -> tuple[str, Json]:
    return event.type, event.payload

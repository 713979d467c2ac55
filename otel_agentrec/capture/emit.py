"""Steps of a hand-written agent, emitted as spans and told to listeners::

    with agent_run("planner", session_id="s1", listeners=[log]) as run:
        with run.step() as step:
            with step.model_call("What is up?", model="gpt-5") as call:
                call.response(client.chat.completions.create(...))
            with step.tool_call("search", {"q": "…"}, call_id="c1") as call:
                call.result(search("…"))
        run.final_output("All well.")

Every block works with ``with`` and with ``async with``. Spans carry current ``gen_ai.*`` names; content goes to the recorder
beside them, and onto them only when OTel's content switch is on. Nothing here raises into the agent: what goes wrong with
telemetry or in a listener is counted, what the agent raises passes through.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind, TracerProvider

from otel_agentrec.capture.emit_block import Block, Guarded, facts_of_error, on_span
from otel_agentrec.capture.emit_calls import ModelCall, ToolCall
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.listeners import Listeners
from otel_agentrec.capture.payloads import plain_copy
from otel_agentrec.capture.prompts import Prompt, prompt_of
from otel_agentrec.capture.recorders import listeners_of_process
from otel_agentrec.journal.facts import Kind

if TYPE_CHECKING:
    pass

__all__ = ["AgentRun", "AgentStep", "agent_run"]

_current: ContextVar[AgentRun | None] = ContextVar("otel_agentrec_run", default=None)


def agent_run(
    name: str,
    *,
    session_id: str | None = None,
    run_id: str | None = None,
    turn_id: str | None = None,
    input: Any = None,
    listeners: Iterable[Any] = (),
    tracer_provider: TracerProvider | None = None,
) -> AgentRun:
    """A run of an agent, to be used as a ``with`` or ``async with`` block. Inside another run it is a handoff.

    Args:
        name: the agent's name.
        session_id: the conversation; a nested run inherits it.
        run_id, turn_id: default: ids of the outermost agent's span.
        input: what the agent was asked: text or messages.
        listeners: each gets every event as ``on_event(event)``, in order; an object with ``capture(record)`` is a sink and
            gets node records. What they raise is counted. A nested run's events go to the listeners around it too.
        tracer_provider: default: the global one.
    """
    return AgentRun(name, session_id, run_id, turn_id, input, list(listeners), tracer_provider)


class AgentRun(Block):
    """A run of an agent; see :func:`agent_run`. ``run_id``, ``session_id`` and ``turn_id`` are known inside its block."""

    _kind = Kind.AGENT
    _operation = "invoke_agent"

    def __init__(
        self,
        name: str,
        session_id: str | None,
        run_id: str | None,
        turn_id: str | None,
        input: Any,
        listeners: list[Any],
        tracer_provider: TracerProvider | None,
    ) -> None:
        super().__init__()
        self._run = self
        self.name = name
        self.session_id = session_id
        self.run_id = run_id
        self.turn_id = turn_id
        self.tracer_provider = tracer_provider
        self._given = (run_id, turn_id)
        self._input = input
        self._own_listeners = listeners
        self._listeners = Listeners(())
        self._steps = itertools.count(1)
        self._above: AgentRun | None = None
        self._token: Token[AgentRun | None] | None = None
        self._told_error: BaseException | None = None

    def step(self) -> AgentStep:
        """The next step: one model call and the tool calls it asked for. Counted from 1, nested agents included."""
        return AgentStep(self, next(self._steps))

    def agent(self, name: str, *, input: Any = None, listeners: Iterable[Any] = ()) -> AgentRun:
        """Another agent that this one hands over to."""
        other = agent_run(name, input=input, listeners=listeners, tracer_provider=self.tracer_provider)
        other._above = self
        return other

    def final_output(self, output: Any) -> None:
        """What the agent answers in the end."""
        PROCESS.run("agent_run", self._take_output, output)

    def event(self, type: str, message: str | None = None, payload: Any = None, step: int | None = None) -> None:
        """Tell listeners of anything else: TEAM_MESSAGE, MEMORY_COMPRESS, SANDBOX_BOUND …"""
        PROCESS.run("agent_run", self._tell, type, step, message, payload)

    def _begin(self) -> None:
        above = self._above = self._above or _current.get()
        if above is not None:
            self._steps = above._steps
            self.session_id = self.session_id or above.session_id
            self.tracer_provider = self.tracer_provider or above.tracer_provider
            self._given = (self.run_id or above._given[0], self.turn_id or above._given[1])
            self.run_id, self.turn_id = self.run_id or above.run_id, self.turn_id or above.turn_id
        around = above._listeners.all if above is not None else listeners_of_process()
        self._listeners = Listeners([*around, *self._own_listeners])
        self._facts["agent_name"] = self.name
        if self._input is not None:
            self._facts["messages"] = prompt_of(self._input, None).messages
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self.name,
            **self._place(),
            **on_span("gen_ai.input.messages", self._facts.get("messages")),
        }
        self._open(f"invoke_agent {self.name}", SpanKind.INTERNAL, attributes, above)
        self.run_id = self.run_id or self.trace_id
        self.turn_id = self.turn_id or self.span_id
        self._token = _current.set(self)
        if above is not None:
            above._tell("HANDOFF_START", None, self.name, {"from": above.name, "to": self.name})

    def _place(self) -> dict[str, Any]:
        """Attributes by which a span says where it belongs, as far as that was given."""
        run_id, turn_id = self._given
        place = {"gen_ai.conversation.id": self.session_id, "agentrec.run.id": run_id, "agentrec.turn.id": turn_id}
        return {key: value for key, value in place.items() if value is not None}

    def _take_output(self, output: Any) -> None:
        plain = plain_copy(output)
        text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, default=str)
        self._facts["output_messages"] = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
        self._span.set_attributes(on_span("gen_ai.output.messages", self._facts["output_messages"]))
        self._note("FINAL_OUTPUT")
        self._tell("FINAL_OUTPUT", None, text, plain)

    def _finish(self, error: BaseException | None) -> None:
        if self._token is not None:
            _reset(_current, self._token)
        if error is not None:
            self._tell_error(error, None)
        self._close(error)
        if self._above is not None:
            self._above._tell("HANDOFF_END", None, self.name, {"from": self._above.name, "to": self.name})
        else:
            self._listeners.finish()

    def _tell_error(self, error: BaseException, step: int | None) -> None:
        """Once per exception, where it was raised; not again at each block that it leaves."""
        root = self
        while root._above is not None:
            root = root._above
        if root._told_error is not error:
            root._told_error = error
            facts = facts_of_error(error)
            self._tell("ERROR", step, facts["error_message"], {"type": facts["error_type"]})

    def _note(self, type: str) -> None:
        self._span.add_event(f"agentrec.{type.lower()}")

    def _tell(self, type: str, step: int | None, message: str | None, payload: Any) -> None:
        if self._listeners:
            self._listeners.tell(
                {
                    "eventId": str(uuid.uuid4()),
                    "runId": self.run_id,
                    "sessionId": self.session_id,
                    "turnId": self.turn_id,
                    "type": type,
                    "step": step,
                    "message": message,
                    "payload": payload,
                }
            )


class AgentStep(Guarded):
    """One step of a run: a model call and the tool calls it asked for. ``number`` counts from 1."""

    def __init__(self, run: AgentRun, number: int) -> None:
        self.run = run
        self.number = number

    def model_call(
        self,
        prompt: Any,
        *,
        model: str | None = None,
        provider: str | None = None,
        instructions: Any = None,
        tools: Any = None,
        parameters: Mapping[str, Any] | None = None,
        stream: bool | None = None,
    ) -> ModelCall:
        """A call of a model, to be used as a block.

        Args:
            prompt: text, a list of messages (OpenAI's, Anthropic's, or ``{role, parts}``), or a whole request with ``model``,
                ``messages``, ``tools`` … as a dict or an object.
        """
        said = PROCESS.run("agent_run", prompt_of, prompt, model) or Prompt(None, model)
        said.provider = provider
        said.stream = stream if stream is not None else said.stream
        PROCESS.run("agent_run", said.add, instructions, tools, parameters)
        is_whole = instructions is None and tools is None and parameters is None
        return ModelCall(self, said, prompt if is_whole else None)

    def tool_call(self, name: str, arguments: Any = None, *, call_id: str | None = None) -> ToolCall:
        """A call of a tool, to be used as a block.

        Args:
            arguments: a dict, or the JSON text that the model gave.
            call_id: the id under which the model asked for it.
        """
        return ToolCall(self, name, arguments, call_id)

    def tell(self, type: str, message: str | None = None, payload: Any = None) -> None:
        self.run._tell(type, self.number, message, payload)

    def _begin(self) -> None:
        self.tell("STEP_START")

    def _finish(self, error: BaseException | None) -> None:
        if error is not None:
            self.run._tell_error(error, self.number)
        self.run._note("STEP_END")
        self.tell("STEP_END")


def _reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    try:
        variable.reset(token)
    except ValueError:  # an async generator was closed in another context
        pass

"""The calls of a hand-written agent: one of a model, one of a tool, each a block with a span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind

from otel_agentrec.capture.callkeys import asked_whole
from otel_agentrec.capture.chunks import ChatChunks
from otel_agentrec.capture.emit_block import Block, facts_of_error, on_span
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.payloads import facts_of_answer, facts_of_result, plain_copy
from otel_agentrec.capture.prompts import Prompt
from otel_agentrec.journal.facts import Kind
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentToolResult

if TYPE_CHECKING:
    from otel_agentrec.capture.emit import AgentStep

__all__ = ["ModelCall", "ToolCall"]


class _Call(Block):
    """What a model call and a tool call share."""

    def __init__(self, step: AgentStep) -> None:
        super().__init__()
        self._step = step
        self._run = step.run

    def _placed(self) -> dict[str, Any]:
        return {**super()._placed(), "step": self._step.number}

    def _attributes(self, attributes: dict[str, Any]) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": self._operation,
            **attributes,
            **self._run._place(),
            "agentrec.step": self._step.number,
        }

    def _note(self, type: str, attributes: dict[str, Any] | None = None) -> None:
        self._span.add_event(f"agentrec.{type.lower()}", attributes)

    def _end(self, error: BaseException | None) -> None:
        if error is not None:
            self._run._tell_error(error, self._step.number)
        self._close(error)


class ModelCall(_Call):
    """A call of a model; see :meth:`AgentStep.model_call`."""

    _kind = Kind.MODEL
    _operation = "chat"

    def __init__(self, step: AgentStep, prompt: Prompt, asked: object = None) -> None:
        """``asked``: the prompt as it was given, where it is the whole request."""
        super().__init__(step)
        self._asked = asked
        self._prompt = prompt
        self._text: list[str] = []
        self._reasoning: list[list[str]] = []
        self._raw: Any = None
        self._block: int | None = None
        self._chunks = ChatChunks()

    def delta(self, text: str | None = None, raw: Any = None) -> None:
        """A piece of a streamed answer; ``raw``: the provider's chunk.

        Chunks of OpenAI's chat completions are put together: text (where ``text`` is not given apart), calls of tools, usage,
        finish reason. If the stream ends before its answer does, the call is ``partial``.
        """
        PROCESS.run("agent_run", self._take, text, raw, False)

    def response(self, raw: Any = None, text: str | None = None) -> None:
        """The answer: its text, or the provider's object or dict (tokens, tool calls and ids are read from it), or both; or the
        :class:`AgentModelResult` of a client."""
        if isinstance(raw, AgentModelResult):
            PROCESS.run("agent_run", self._take_result, raw)
            return
        if isinstance(raw, str) and text is None:
            self._text.clear()  # the whole of what deltas may have told before
            raw, text = None, raw
        PROCESS.run("agent_run", self._take, text, raw, True)

    def on_chunk(self, chunk: AgentModelChunk) -> None:
        """A piece of an answer, so that the call can be the listener of a client's ``create_stream``."""
        PROCESS.run("agent_run", self._take_chunk, chunk)

    def reasoning(self, text: str, new_block: bool = False) -> None:
        """A piece of the model's reasoning. Pieces of one block are joined as they are, blocks with a line break."""
        PROCESS.run("agent_run", self._take_reasoning, text, new_block)

    def retry(self, error: BaseException | str | None = None, status_code: int | None = None) -> None:
        """An attempt failed and is made again."""
        PROCESS.run("agent_run", self._take_retry, error, status_code)

    def _begin(self) -> None:
        said = self._prompt
        self._facts = {key: value for key, value in said.facts().items() if value is not None}
        asked = asked_whole(self._asked)
        if asked is not None:  # else a client inside may tell
            self._facts["asked"] = asked
        attributes = {
            "gen_ai.provider.name": said.provider,
            "gen_ai.request.model": said.model,
            "gen_ai.request.stream": said.stream,
            **said.request_attributes(),
            **on_span("gen_ai.input.messages", said.messages),
            **on_span("gen_ai.system_instructions", said.instructions),
            **on_span("gen_ai.tool.definitions", said.tools),
        }
        name = f"chat {said.model}" if said.model else "chat"
        self._open(name, SpanKind.CLIENT, self._attributes(attributes), self._run)
        self._note("MODEL_REQUEST")
        self._step.tell("MODEL_REQUEST", None, said.whole)

    def _take(self, text: str | None, raw: Any, is_whole: bool) -> None:
        plain = plain_copy(raw) if raw is not None else None
        if not is_whole and isinstance(plain, dict) and ChatChunks.fits(plain):
            added = self._chunks.add(plain)
            text = added if text is None else text
            self._facts.update(output_messages=self._said_so_far, calls=self._calls_so_far)
        if text:
            self._text.append(text)
            self._facts["output_text"] = self._text_so_far
        if plain is not None:
            told = facts_of_answer(plain)
            if is_whole:
                self._raw = plain
            else:  # a chunk that tells of usage alone must not empty the answer
                told = {key: value for key, value in told.items() if key not in ("output_messages", "calls")}
            self._facts.update(told)
        if is_whole or len(self._text) == 1:
            self._note("MODEL_RESPONSE")
        self._hand_over()
        self._step.tell("MODEL_RESPONSE", text, plain)

    def _take_result(self, result: AgentModelResult) -> None:
        raw, text, reasoning = result.raw_response, result.output_text, result.reasoning_text
        if reasoning and not self._reasoning:
            self._take_reasoning(reasoning, True)
        told = facts_of_result(result)  # before the raw answer, which knows better, and after chunks, which do too
        self._facts.update({name: value for name, value in told.items() if not callable(self._facts.get(name))})
        self._take(text if text and not self._text else None, None if isinstance(raw, str) else raw, True)

    def _take_chunk(self, chunk: AgentModelChunk) -> None:
        if chunk.channel == "text" and not chunk.index and chunk.text:
            self._take(chunk.text, None, False)
        elif chunk.channel == "reasoning" and chunk.text:
            self._take_reasoning(chunk.text, chunk.index != self._block)
            self._block = chunk.index
        elif chunk.channel == "restart":
            self._text.clear()
            self._reasoning.clear()

    def _take_reasoning(self, text: str, new_block: bool) -> None:
        if new_block or not self._reasoning:
            self._reasoning.append([])
            self._note("MODEL_REASONING")
        self._reasoning[-1].append(text)
        self._facts["reasoning_text"] = self._reasoning_so_far
        self._hand_over()
        self._step.tell("MODEL_REASONING", text, None)

    def _take_retry(self, error: BaseException | str | None, status_code: int | None) -> None:
        kind = error if isinstance(error, str) else facts_of_error(error)["error_type"] if error is not None else None
        status_code = status_code if status_code is not None else getattr(error, "status_code", None)
        told = {"statusCode": status_code if isinstance(status_code, int) else None, "errorType": kind}
        retries = [*self._facts.get("retries", []), {key: value for key, value in told.items() if value is not None}]
        self._facts.update(retries=retries, retry_count=len(retries))
        self._note("MODEL_RETRY")
        self._hand_over()
        self._step.tell("MODEL_RETRY", str(error) if error is not None else None, retries[-1])

    def _text_so_far(self) -> str:
        return "".join(self._text)

    def _reasoning_so_far(self) -> str:
        return "\n".join("".join(block) for block in self._reasoning)

    def _said_so_far(self) -> Any:
        return facts_of_answer(self._chunks.merged()).get("output_messages")

    def _calls_so_far(self) -> Any:
        return facts_of_answer(self._chunks.merged()).get("calls")

    def _take_chunks(self, failed: bool) -> None:
        """What the chunks of a stream came to, unless the whole answer was given."""
        merged = self._chunks.merged()
        if merged is None:
            return
        for name in ("output_messages", "calls"):
            if callable(self._facts.get(name)):
                del self._facts[name]
        if self._raw is None:
            self._raw = merged
            self._facts.update(facts_of_answer(merged))
            if not self._chunks.complete and not failed:
                self._facts["status"] = "partial"

    def _finish(self, error: BaseException | None) -> None:
        self._take_chunks(error is not None)
        facts, text = self._facts, self._text_so_far()
        facts["output_raw"] = self._raw
        said = facts.get("output_messages")
        if not said and text:
            said = facts["output_messages"] = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
        facts["output_text"] = text if text and _text_of(said) != text else None
        facts["reasoning_text"] = self._reasoning_so_far() or None
        self._span.set_attributes(
            {
                key: value
                for key, value in {
                    "gen_ai.response.id": facts.get("response_id"),
                    "gen_ai.response.model": facts.get("response_model"),
                    "gen_ai.response.finish_reasons": facts.get("finish_reasons"),
                    "gen_ai.usage.input_tokens": facts.get("input_tokens"),
                    "gen_ai.usage.output_tokens": facts.get("output_tokens"),
                    "gen_ai.usage.cache_read.input_tokens": facts.get("cache_read_tokens"),
                    "gen_ai.usage.cache_write.input_tokens": facts.get("cache_write_tokens"),
                    "gen_ai.usage.reasoning.output_tokens": facts.get("reasoning_tokens"),
                    **on_span("gen_ai.output.messages", said),
                }.items()
                if value is not None
            }
        )
        self._end(error)


class ToolCall(_Call):
    """A call of a tool; see :meth:`AgentStep.tool_call`."""

    _kind = Kind.TOOL
    _operation = "execute_tool"

    def __init__(self, step: AgentStep, name: str, arguments: Any, call_id: str | None) -> None:
        super().__init__(step)
        self.name = name
        self.call_id = call_id
        self._arguments = plain_copy(arguments)

    def result(self, value: Any, *, error: str | None = None) -> None:
        """What the tool gave back, or its :class:`AgentToolResult`. ``error``: it failed, and says so to the model instead of
        raising."""
        trace = None
        if isinstance(value, AgentToolResult):
            failed = (value.error or str(value.output)) if value.failed else None
            value, error, trace = value.output, error or failed, value.trace
        PROCESS.run("agent_run", self._take, value, error, trace)

    def _begin(self) -> None:
        self._facts = {"tool_name": self.name, "tool_call_id": self.call_id, "arguments": self._arguments}
        attributes = {
            "gen_ai.tool.name": self.name,
            "gen_ai.tool.call.id": self.call_id,
            "gen_ai.tool.type": "function",
            **on_span("gen_ai.tool.call.arguments", self._arguments),
        }
        self._open(f"execute_tool {self.name}", SpanKind.INTERNAL, self._attributes(attributes), self._run)
        self._note("TOOL_CALL")
        call = {"name": self.name, "arguments": self._arguments, "callId": self.call_id}
        self._step.tell("TOOL_CALL", self.name, call)

    def _take(self, value: Any, error: str | None, trace: Any) -> None:
        plain = plain_copy(value)
        told = {"name": self.name, "callId": self.call_id, "output": plain, "error": error}
        if trace is not None:
            told["trace"] = plain_copy(trace)
        self._facts["result"] = kept = plain if trace is None else told
        if error is not None:
            self._facts.update(status="error", error_type="tool_error", error_message=error)
        self._span.set_attributes(on_span("gen_ai.tool.call.result", kept))
        self._note("TOOL_RESULT")
        self._hand_over()
        self._step.tell("TOOL_RESULT", plain if isinstance(plain, str) else None, told)

    def _finish(self, error: BaseException | None) -> None:
        self._end(error)


def _text_of(messages: Any) -> str:
    """The text of an answer."""
    return "".join(
        part["content"]
        for message in messages or ()
        if isinstance(message, dict)
        for part in message.get("parts") or ()
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("content"), str)
    )

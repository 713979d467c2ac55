"""The seed's plain types: what a model or a tool is asked, what it answers, and the protocols of what is asked.

The names are ai4j's (``AgentPrompt``, ``AgentModelResult``, ``AgentToolCall``, ``AgentToolResult``, ``AgentModelClient``,
``ToolExecutor``), snake_case in Python and camelCase in JSON. An absent value is ``None`` and left out of JSON, so that a
field that comes later changes no content key.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from otel_agentrec.records import camel

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "AgentModelChunk",
    "AgentModelResult",
    "AgentPrompt",
    "AgentToolCall",
    "AgentToolResult",
    "AsyncModelClient",
    "AsyncToolExecutor",
    "ModelClient",
    "ModelStreamListener",
    "ToolExecutor",
]

Json = Any


class _Plain:
    """A dataclass that JSON can hold."""

    __slots__ = ()

    def to_json(self) -> dict[str, Json]:
        """Its fields with camelCase keys; what is ``None`` is left out. Values are handed out as they are, not copied."""
        out: dict[str, Json] = {}
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if value is not None:
                out[camel(f.name)] = _json(value)
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Read back what :meth:`to_json` gave; snake_case keys are read too, unknown ones ignored."""
        values: dict[str, Any] = {}
        for f in dataclasses.fields(cls):  # type: ignore[arg-type]
            for key in (camel(f.name), f.name):
                if data.get(key) is not None:
                    values[f.name] = data[key]
                    break
        return cls(**values)


@dataclass(frozen=True, slots=True)
class AgentPrompt(_Plain):
    """The whole request of one model call, as a :class:`ModelClient` takes it.

    Args:
        model: the model's name.
        items: the conversation. Text is taken as one message of the user. An item is a message in the form of the
            provider that is asked (it then reaches it unchanged), or ``{role, parts}`` in the message schema of the OTel
            GenAI conventions, which every client translates.
        system_prompt, instructions: what the model is told beside the conversation, in this order: text, or a list of parts.
        tools: definitions, as the provider has them or ``{type: "function", name, description, parameters}``.
        tool_choice: ``"auto"``, ``"none"``, ``"required"``, a tool's name, or the provider's own object.
        reasoning: the provider's own object (``{"effort": "low"}``, Anthropic's ``{"type": "enabled", "budget_tokens": n}``).
        stream: whether the answer is asked for as a stream. The call decides (``create`` or ``create_stream``); it cannot
            change the answer and is no part of the content key.
        extra_body: anything else that the provider's API takes, by its names.
    """

    model: str | None = None
    items: Sequence[Json] = ()
    system_prompt: Json = None
    instructions: Json = None
    tools: Sequence[Json] | None = None
    tool_choice: Json = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    reasoning: Json = None
    store: bool | None = None
    stream: bool | None = None
    user: str | None = None
    extra_body: Mapping[str, Json] | None = None

    def __post_init__(self) -> None:
        items: Sequence[Json] = self.items
        held = [{"role": "user", "content": items}] if isinstance(items, str) else list(items)
        object.__setattr__(self, "items", held)

    @classmethod
    def from_inputs(cls, inputs: object) -> AgentPrompt:
        """The prompt that a MODEL record's ``inputs`` hold, in memory or loaded from disk.

        Args:
            inputs: an ``AgentPrompt``; the JSON of one (as the seed's own files have it); or what this package records:
                ``{model, messages, systemInstructions, tools, parameters}``.

        Raises:
            ValueError: it is none of these, or something in it was not recorded, cut or erased.
        """
        if isinstance(inputs, AgentPrompt):
            return inputs
        if not isinstance(inputs, Mapping):
            raise ValueError(f"inputs hold no AgentPrompt but {type(inputs).__name__}")
        if isinstance(inputs.get("items"), (list, tuple, str)):
            return cls.from_json(inputs)
        messages = inputs.get("messages")
        if not isinstance(messages, (list, tuple)):
            raise ValueError("inputs hold no AgentPrompt: neither items nor messages were recorded")
        if (lost := _lost(inputs)) is not None:
            raise ValueError(f"inputs hold no whole AgentPrompt: {lost} stands where content was not kept")
        first, second = _told(inputs.get("systemInstructions"))
        known, extra = _settings(inputs.get("parameters"))
        return cls(
            model=inputs.get("model"),
            items=messages,
            system_prompt=first,
            instructions=second,
            tools=inputs.get("tools"),
            extra_body=extra or None,
            **known,
        )


@dataclass(frozen=True, slots=True)
class AgentToolCall(_Plain):
    """A call that a model asks for. ``arguments``: as the model gave them, JSON text or an object."""

    name: str
    arguments: Json = None
    call_id: str | None = None

    @property
    def parsed(self) -> Json:
        """The arguments as a value. Text that is no JSON stays text; no arguments at all are ``{}``."""
        if isinstance(self.arguments, str):
            if not self.arguments.strip():
                return {}
            try:
                return json.loads(self.arguments)
            except (ValueError, RecursionError):
                return self.arguments
        return {} if self.arguments is None else self.arguments


_RESULT_KEYS = frozenset({"name", "callId", "output", "trace", "ok", "error"})


@dataclass(frozen=True, slots=True)
class AgentToolResult(_Plain):
    """What a tool gave. ``trace``: what it tells of its own work (hits of a search …); ``error``: why it failed."""

    name: str
    call_id: str | None = None
    output: Json = None
    trace: Json = None
    ok: bool | None = None
    error: str | None = None

    @property
    def failed(self) -> bool:
        """As ai4j has it: not ``ok``, an ``error``, or an output that begins with ``TOOL_ERROR``."""
        return (
            self.ok is False
            or bool(self.error and self.error.strip())
            or (isinstance(self.output, str) and self.output.startswith("TOOL_ERROR"))
        )

    @classmethod
    def held_in(cls, outputs: object, name: str | None) -> AgentToolResult | None:
        """The whole result that a TOOL record's ``outputs`` hold: the object itself, or its JSON (as the seed's own files have
        it, and where a tool told its ``trace``). None: they are the bare output."""
        if isinstance(outputs, AgentToolResult):
            return outputs
        if not isinstance(outputs, Mapping) or not {"name", "output"} <= outputs.keys() <= _RESULT_KEYS:
            return None
        return cls.from_json({"name": name, **outputs}) if outputs["name"] == name else None

    def to_item(self) -> dict[str, Json]:
        """The message that tells a model of it, for the ``items`` of the next prompt; every client translates it."""
        output = self.error if self.output is None and self.error else self.output
        part = {"type": "tool_call_response", "id": self.call_id, "response": output}
        return {"role": "tool", "parts": [part]}


@dataclass(frozen=True, slots=True)
class AgentModelChunk(_Plain):
    """One piece of a streamed answer.

    ``channel`` says what the piece is:

    ==============  ====================================================================================================
    ``text``        ``text`` goes on with what the model says
    ``reasoning``   ``text`` goes on with its reasoning; another ``index`` is another block
    ``tool_call``   ``text`` goes on with the arguments of call ``index``; ``name`` and ``call_id`` come with its first piece
    ``usage``       ``data``: the provider's token counts
    ``finish``      ``text``: why the answer ended
    ``event``       ``data``: anything else that the provider sent
    ``restart``     the recorded stream broke off (``text``: what it had said): the answer begins anew with the next piece
    ==============  ====================================================================================================

    ``replayed``: the piece comes from a recording or a cache; no model was asked.
    """

    channel: str
    text: str | None = None
    index: int | None = None
    name: str | None = None
    call_id: str | None = None
    data: Json = None
    replayed: bool | None = None


@dataclass(frozen=True, slots=True)
class AgentModelResult(_Plain):
    """What a model answered.

    Args:
        output_text: all it said, None when it said nothing.
        raw_response: the provider's own answer as plain data; of a stream the merged one.
        tool_calls: what it asks for, in its order.
        reasoning_text: blocks joined with a newline.
        usage: the provider's token counts.
        finish_reasons: as the provider names them.
        memory_items: what belongs into the ``items`` of the next prompt, in the provider's form.
        chunks: the pieces of a streamed answer, None when it was none.
    """

    output_text: str | None = None
    raw_response: Json = None
    tool_calls: Sequence[AgentToolCall] = ()
    reasoning_text: str | None = None
    usage: Mapping[str, Json] | None = None
    finish_reasons: Sequence[str] = ()
    memory_items: Sequence[Json] = ()
    chunks: Sequence[AgentModelChunk] | None = field(default=None)

    def __post_init__(self) -> None:
        calls = [c if isinstance(c, AgentToolCall) else AgentToolCall.from_json(c) for c in self.tool_calls]
        object.__setattr__(self, "tool_calls", calls)
        object.__setattr__(self, "finish_reasons", list(self.finish_reasons))
        object.__setattr__(self, "memory_items", list(self.memory_items))
        if self.chunks is not None:
            chunks = [c if isinstance(c, AgentModelChunk) else AgentModelChunk.from_json(c) for c in self.chunks]
            object.__setattr__(self, "chunks", chunks)


@runtime_checkable
class ModelStreamListener(Protocol):
    """Hears a streamed answer. An async client awaits what ``on_chunk`` returns, if that can be awaited."""

    def on_chunk(self, chunk: AgentModelChunk) -> object: ...


class ModelClient(Protocol):
    """Asks a model. What the provider's SDK raises reaches the caller as it is."""

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        """The whole answer."""
        ...

    def create_stream(self, prompt: AgentPrompt, listener: ModelStreamListener | None = None) -> AgentModelResult:
        """The same as a stream: ``listener`` hears each piece, the merged answer is returned."""
        ...


class AsyncModelClient(Protocol):
    """:class:`ModelClient` for event loops."""

    async def create(self, prompt: AgentPrompt) -> AgentModelResult: ...

    async def create_stream(
        self, prompt: AgentPrompt, listener: ModelStreamListener | None = None
    ) -> AgentModelResult: ...


class ToolExecutor(Protocol):
    """Runs the tool that a call names."""

    def execute(self, call: AgentToolCall) -> Json:
        """The tool's output."""
        ...


class AsyncToolExecutor(Protocol):
    """:class:`ToolExecutor` for event loops."""

    async def execute(self, call: AgentToolCall) -> Json: ...


def _json(value: Any) -> Json:
    if isinstance(value, _Plain):
        return value.to_json()
    if isinstance(value, (list, tuple)):
        return [_json(v) for v in value]
    return value


_LOST = ("$cut", "$erased", "$missing", "$off")
"""What the journal puts where it holds no content."""


def _lost(value: Json) -> str | None:
    """The first mark of lost content in a value."""
    todo = [value]
    while todo:
        held = todo.pop()
        if isinstance(held, Mapping):
            mark = next(iter(held)) if len(held) == 1 else None
            if mark in _LOST:
                return str(mark)
            todo.extend(held.values())
        elif isinstance(held, (list, tuple)):
            todo.extend(held)
    return None


def _told(parts: Json) -> tuple[Json, Json]:
    """System instructions -> system prompt and instructions, each as text where it is nothing else."""
    held = [parts] if isinstance(parts, (str, Mapping)) else list(parts or ())
    if not held:
        return None, None
    if len(held) <= 2 and all(_is_text(p) for p in held):
        texts = [p if isinstance(p, str) else p["content"] for p in held]
        return texts[0], texts[1] if len(texts) == 2 else None
    return held, None


def _is_text(part: Json) -> bool:
    return isinstance(part, str) or (
        isinstance(part, Mapping) and part.keys() <= {"type", "content"} and isinstance(part.get("content"), str)
    )


_FIELDS = {f.name for f in dataclasses.fields(AgentPrompt)} - {"model", "items", "tools", "extra_body"}
_SETTINGS = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    **{name: name for name in _FIELDS},
    **{camel(name): name for name in _FIELDS},
}
"""Names of recorded parameters -> fields of a prompt."""


def _settings(parameters: Json) -> tuple[dict[str, Any], dict[str, Json]]:
    """-> fields of a prompt, and what else the API was given.

    Parameters are recorded under the names of the GenAI conventions; one with a dot is the name of an attribute and no
    parameter of any API.
    """
    known: dict[str, Any] = {}
    extra: dict[str, Json] = {}
    for name, value in (parameters or {}).items():
        if name in ("extra_body", "extraBody") and isinstance(value, Mapping):
            extra.update(value)
        elif name == "choice.count":
            extra["n"] = value
        elif name in _SETTINGS:
            known.setdefault(_SETTINGS[name], value)
        elif "." not in name:
            extra[name] = value
    return known, extra

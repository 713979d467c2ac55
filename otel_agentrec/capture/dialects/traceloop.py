"""OpenLLMetry, the instrumentations and decorators of Traceloop: the GenAI conventions with additions.

Agents, tasks and tools come from decorators (``traceloop.span.kind``, ``traceloop.entity.*``). Model calls use the GenAI
attributes; until 0.50 what was said stood in flattened keys, and most names were others (``llm.*``). In events mode it stands
in log records instead, which name no span, or the one around the call.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

from otel_agentrec.capture.dialects import genai, langchain, pythoncall, pythonrepr, raw
from otel_agentrec.capture.dialects import traceloop_messages as flat
from otel_agentrec.capture.dialects.dialect import Dialect, Reading
from otel_agentrec.capture.dialects.messages import finish_reasons_of, part
from otel_agentrec.capture.dialects.values import loaded, text, was_cut
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.jsontext import parse

__all__ = ["DIALECT"]

Json = Any
Attributes = MutableMapping[str, Any]

NAME = "traceloop"

_KIND = "traceloop.span.kind"
_ENTITY = "traceloop.entity."
_INPUT, _OUTPUT = f"{_ENTITY}input", f"{_ENTITY}output"
_OPERATION = "gen_ai.operation.name"
_ARGUMENTS, _RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"

_OF_KIND = {"workflow": "invoke_workflow", "agent": "invoke_agent", "tool": "execute_tool"}
"""``traceloop.span.kind`` -> operation; any other kind is the name of a step."""
_OF_REQUEST = {
    "chat": "chat",
    "completion": "text_completion",
    "embedding": "embeddings",
    "rerank": "rerank",
    "unknown": "chat",
}
"""``llm.request.type`` -> operation."""
_OF_NAME = {
    "chat": "chat",
    "completion": "text_completion",
    "completions": "text_completion",
    "converse": "chat",
    "embeddings": "embeddings",
    "generate": "text_completion",
    "generate_content": "chat",
    "response": "chat",
    "responses": "chat",
    "task": "task",
    **_OF_KIND,
}
"""Last part of a span's name -> operation, where nothing else tells it (yet: most attributes are set after the start)."""
_RENAMED_OPERATIONS = {"response": "chat"}

_PACKAGES = (
    "alephalpha",
    "anthropic",
    "bedrock",
    "cohere",
    "crewai",
    "google_generativeai",
    "groq",
    "haystack",
    "langchain",
    "llamaindex",
    "mistralai",
    "ollama",
    "openai.v0",
    "openai.v1",
    "openai_agents",
    "replicate",
    "sagemaker",
    "together",
    "transformers",
    "voyageai",
    "watsonx",
    "writer",
)
SCOPES = ("traceloop.tracer", *(f"opentelemetry.instrumentation.{name}" for name in _PACKAGES))

_RENAMED = {
    "gen_ai.is_streaming": "gen_ai.request.stream",
    "llm.is_streaming": "gen_ai.request.stream",
    "llm.chat.stop_sequences": "gen_ai.request.stop_sequences",
    "llm.frequency_penalty": "gen_ai.request.frequency_penalty",
    "llm.presence_penalty": "gen_ai.request.presence_penalty",
    "llm.request.max_tokens": "gen_ai.request.max_tokens",
    "llm.request.model": "gen_ai.request.model",
    "llm.request.reasoning_effort": "gen_ai.request.reasoning_effort",
    "llm.request.repetition_penalty": "gen_ai.request.repetition_penalty",
    "llm.response.model": "gen_ai.response.model",
    "llm.temperature": "gen_ai.request.temperature",
    "llm.top_k": "gen_ai.request.top_k",
    "llm.top_p": "gen_ai.request.top_p",
    "llm.usage.total_tokens": "gen_ai.usage.total_tokens",
    "llm.vendor": "gen_ai.system",
}
_REASONS = (
    "gen_ai.response.finish_reason",
    "gen_ai.response.stop_reason",
    "llm.response.finish_reason",
    "llm.response.stop_reason",
)
_PROVIDERS = {"aws": "aws.bedrock", "azure": "az.ai.openai", "google": "gcp.gen_ai", "mistralai": "mistral_ai"}
"""Older names of providers, in lower case -> those of today."""
_MODEL_NAME = "traceloop.association.properties.ls_model_name"
_SPOKEN = ("gen_ai.prompt.", "gen_ai.completion.", "llm.prompts.", "llm.completions.")
_NO_VALUES: tuple[Any, ...] = ("None", "", [], ())


def read(span: SpanView, logs: Sequence[LogView] = ()) -> Reading | None:
    """What a span is in this convention, and its facts; None when it does not speak it."""
    told = span.attributes
    if not _speaks(span):
        return None
    operation, inferred = _operation(span)
    rest = {key: value for key, value in told.items() if key not in ("llm.request.type", _KIND, _OPERATION)}
    if operation is not None:
        rest[_OPERATION] = operation
    kind = genai.KIND_OF_OPERATION.get(operation or "")
    failed = False
    _rename(rest)
    if kind == Kind.TOOL:
        failed = _bring_tool(span, rest)
    elif kind == Kind.AGENT:
        _bring_agent(rest)
    else:
        _bring_messages(rest)
    reading = genai.read_as(NAME, span._replace(attributes=rest), logs, flat.message, own=True)
    if reading is None:
        return None
    facts = reading[1]
    if inferred:
        facts.flags.append("operation_inferred")
    if failed and facts.status != "error":
        facts.status, facts.error_message = "error", text(facts.result)
    return reading


def _speaks(span: SpanView) -> bool:
    """What the SDK puts on all spans below a decorator (``traceloop.workflow.name`` …) says nothing of what a span is."""
    told = span.attributes
    if span.scope in _SCOPES or _KIND in told or "llm.request.type" in told:
        return True
    return any(key.startswith((_ENTITY, *_SPOKEN)) and not key.startswith(f"{_ENTITY}path") for key in told)


def _operation(span: SpanView) -> tuple[str | None, bool]:
    """-> (operation, whether only the span's name tells it). None: what the span is shows in its other attributes, if at
    all."""
    told = span.attributes
    operation = text(told.get(_OPERATION))
    if operation is not None:
        return _RENAMED_OPERATIONS.get(operation, operation), False
    kind = text(told.get(_KIND))
    if kind is not None and kind != "unknown":
        return _OF_KIND.get(kind, kind), False
    request = text(told.get("llm.request.type"))
    if request is not None:
        return _OF_REQUEST.get(request, request), False
    word = span.name.rpartition(".")[2]
    if word in _OF_NAME and span.scope in _SCOPES:
        return _OF_NAME[word], True
    if any(key.startswith(_SPOKEN) for key in told):
        return "chat", True
    return None, False


def _rename(rest: Attributes) -> None:
    for old, new in _RENAMED.items():
        if old in rest:
            value = rest.pop(old)
            rest.setdefault(new, value)
    for key in [key for key, value in rest.items() if key.startswith(("gen_ai.re", "llm.")) and _is_nothing(value)]:
        del rest[key]
    system = text(rest.get("gen_ai.system"))
    if system is not None and system != system.lower():
        rest["gen_ai.system"] = _PROVIDERS.get(system.lower(), system.lower())
    if "gen_ai.response.finish_reasons" not in rest:
        reason = next((told for key in _REASONS if (told := text(rest.pop(key, None)))), None)
        if reason is not None:
            rest["gen_ai.response.finish_reasons"] = [reason]


def _is_nothing(value: Json) -> bool:
    """What stands for a parameter that was not given."""
    return isinstance(value, (str, list, tuple)) and value in _NO_VALUES


# --- model calls --------------------------------------------------------------------------------------------------------


def _bring_messages(rest: Attributes) -> None:
    """Flattened messages and tools to the attributes of today."""
    for key in ("gen_ai.request.model", "gen_ai.response.model"):
        if rest.get(key) == "unknown":
            del rest[key]
    if "gen_ai.request.model" not in rest and text(rest.get(_MODEL_NAME)) not in (None, "unknown"):
        rest["gen_ai.request.model"] = rest[_MODEL_NAME]
    for key, take in (
        ("gen_ai.input.messages", flat.take_prompts),
        ("gen_ai.output.messages", flat.take_answers),
        ("gen_ai.tool.definitions", flat.take_tools),
    ):
        listed = take(rest)
        if listed is not None:
            rest.setdefault(key, listed)
    answers = rest.get("gen_ai.output.messages")
    if isinstance(answers, list) and "gen_ai.response.finish_reasons" not in rest:
        rest["gen_ai.response.finish_reasons"] = finish_reasons_of(answers)


# --- tools --------------------------------------------------------------------------------------------------------------


def _bring_tool(span: SpanView, rest: Attributes) -> bool:
    """-> whether the result says that it is an error."""
    rest.setdefault("gen_ai.tool.name", text(rest.pop(f"{_ENTITY}name", None)) or span.name.removesuffix(".tool"))
    given, returned = rest.pop(_INPUT, None), rest.pop(_OUTPUT, None)
    asked = _asked(rest.get(_ARGUMENTS, given))
    answered = _answered(rest.get(_RESULT, returned))
    for key, value in ((_ARGUMENTS, asked.value), (_RESULT, answered.value)):
        if value is not None:
            rest[key] = value
    for key, left in ((_INPUT, asked.left), (_OUTPUT, answered.left)):
        if left:
            rest[key] = left
    call_id = asked.call_id or answered.call_id
    if call_id is not None:
        rest.setdefault("gen_ai.tool.call.id", call_id)
    return answered.failed


class _Told(NamedTuple):
    """What a recorded call or its result says; ``left``: what no fact is made of."""

    value: Json
    call_id: str | None = None
    left: Json = None
    failed: bool = False


def _asked(value: Json) -> _Told:
    """The arguments of a recorded call: of a Python function, of a LangChain callback or of MCP."""
    parsed = loaded(value)
    called = pythoncall.by_name(parsed)
    if called is not None:
        return _Told(called)
    if not isinstance(parsed, Mapping):
        return _Told(value)
    if "input_str" in parsed:
        inner = parsed.get("kwargs")
        call_id = text(inner.get("tool_call_id")) if isinstance(inner, Mapping) else None
        given = parsed.get("inputs")
        left = {key: v for key, v in parsed.items() if key != "inputs"}
        return _Told(given if given is not None else _written(parsed["input_str"]), call_id, left)
    if parsed.keys() == {"tool_name", "arguments"}:
        return _Told(parsed["arguments"])
    return _Told(value)


def _written(value: Json) -> Json:
    """Arguments that stand as the text of a Python dict."""
    if not isinstance(value, str) or value[:1] != "{":
        return value
    try:
        return pythonrepr.parse(value)
    except ValueError:
        return value


def _answered(value: Json) -> _Told:
    """A result as a LangChain callback or MCP wraps it, ``{output: ToolMessage | value, kwargs}``, ``{result, is_error?}``,
    or as it is."""
    parsed = loaded(value)
    if not isinstance(parsed, Mapping):
        return _Told(_unquoted(value))
    if "output" in parsed and parsed.keys() <= {"output", "kwargs"}:
        inner = parsed["output"]
        fields = langchain.tool_message(inner)
        if fields is None:
            return _Told(inner, left={"kwargs": parsed["kwargs"]} if parsed.get("kwargs") else None)
        left = {**parsed, "output": _without_content(inner)}
        return _Told(fields.get("content"), text(fields.get("tool_call_id")), left, fields.get("status") == "error")
    if "result" in parsed and parsed.keys() <= {"result", "is_error"}:
        return _Told(parsed["result"], failed=bool(parsed.get("is_error")))
    return _Told(value)


def _without_content(message: Json) -> Json:
    """A message of LangChain, in whatever form, without what the tool said."""
    if not isinstance(message, Mapping):
        return message
    return {k: _without_content(v) if k in ("kwargs", "data") else v for k, v in message.items() if k != "content"}


def _unquoted(value: Json) -> Json:
    """The text that a JSON string stands for; anything else as it is."""
    if not isinstance(value, str) or value[:1] != '"' or was_cut(value):
        return value
    try:
        return parse(value)
    except ValueError:
        return value


# --- agents -------------------------------------------------------------------------------------------------------------


def _bring_agent(rest: Attributes) -> None:
    """Name, question and answer of an agent. Inputs of any other shape stay among the attributes."""
    name = text(rest.pop(f"{_ENTITY}name", None))
    if name is not None:
        rest.setdefault("gen_ai.agent.name", name)
    for key, target, role in (
        (_INPUT, "gen_ai.input.messages", "user"),
        (_OUTPUT, "gen_ai.output.messages", "assistant"),
    ):
        said = _said(rest.get(key), role)
        if said is not None and target not in rest:
            rest[target] = said
            del rest[key]


def _said(value: Json, role: str) -> list[Json] | None:
    """The messages that an agent was given or gave: one text, or ``{inputs | outputs: {messages}}`` of LangChain."""
    held = _unquoted(value)
    if not isinstance(held, str) or not held:
        return None
    if held is not value:
        return [{"role": role, "parts": [part(held)]}]
    parsed = loaded(value)
    if not isinstance(parsed, Mapping):
        return None
    if isinstance(parsed.get("args"), list) and not parsed.get("kwargs"):
        only = parsed["args"][0] if len(parsed["args"]) == 1 else None
        return [{"role": role, "parts": [part(only)]}] if isinstance(only, str) else None
    state = parsed.get("inputs", parsed.get("outputs"))
    return raw.listed(state.get("messages")) if isinstance(state, Mapping) else None


DIALECT = Dialect(
    name=NAME,
    read=read,
    scopes=SCOPES,
    key_prefixes=(_KIND, _ENTITY, "llm.request.type", *_SPOKEN),
    joined_logs=genai.JOINED_LOGS,
    takes=genai.takes,
    tell=genai.tell,
    versions="traceloop-sdk and opentelemetry-instrumentation-{openai,anthropic,langchain,openai-agents} 0.62.4 and 0.47.5",
    unknown="call ids on tool spans of decorators; a message with an image; parallel calls but the last of a streamed answer "
    "(anthropic 0.47.5); the answer of OpenAI Agents over the chat API; retries",
)
_SCOPES = frozenset(SCOPES)

"""The facts of one recorded step as span attributes: the current GenAI semantic conventions, and what viewers need besides.

What is exported can be ingested again and gives the same facts (a test holds it to that). Messages, arguments and results
are JSON text, as the conventions have them for span attributes.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.lists import parsed

__all__ = ["attributes_of", "plain_value", "shown_values", "text_of", "unpaid"]

Json = Any
Value = Any  # str, bool, int, float, or a list of one of them

OPERATION = {Kind.MODEL: "chat", Kind.TOOL: "execute_tool", Kind.AGENT: "invoke_agent"}
_PLAIN = {
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "responseModel": "gen_ai.response.model",
    "responseId": "gen_ai.response.id",
    "finishReasons": "gen_ai.response.finish_reasons",
    "inputTokens": "gen_ai.usage.input_tokens",
    "outputTokens": "gen_ai.usage.output_tokens",
    "cacheReadTokens": "gen_ai.usage.cache_read.input_tokens",
    "cacheWriteTokens": "gen_ai.usage.cache_write.input_tokens",
    "reasoningTokens": "gen_ai.usage.reasoning.output_tokens",
    "streamed": "gen_ai.request.stream",
    "toolName": "gen_ai.tool.name",
    "toolCallId": "gen_ai.tool.call.id",
    "agentName": "gen_ai.agent.name",
    "agentId": "gen_ai.agent.id",
    "userId": "user.id",
    "errorType": "error.type",
    "retryCount": "http.request.resend_count",
}
_TEXTS = {
    "messages": "gen_ai.input.messages",
    "outputMessages": "gen_ai.output.messages",
    "arguments": "gen_ai.tool.call.arguments",
    "result": "gen_ai.tool.call.result",
}
PAIRS = (
    ("input.value", "output.value"),
    ("input", "output"),
    ("traceloop.entity.input", "traceloop.entity.output"),
    ("mlflow.spanInputs", "mlflow.spanOutputs"),
    ("langfuse.observation.input", "langfuse.observation.output"),
)
"""Attributes that viewers read input and output from."""
ANSWERED_FROM = "agentrec.answered_from"
_PAID = ("gen_ai.usage.", "llm.token_count.", "llm.usage.", "llm.cost.")
"""How names of attributes begin that viewers take tokens and costs from."""
_HEADER = {"instructions": "gen_ai.system_instructions", "tools": "gen_ai.tool.definitions"}


def attributes_of(
    kind: str,
    facts: Mapping[str, Json],
    header: Mapping[str, Json],
    session: str | None,
    *,
    besides: Container[str] = (),
    content: bool = True,
) -> dict[str, Value]:
    """Span attributes of a step.

    Args:
        kind: of :class:`~otel_agentrec.journal.facts.Kind`.
        facts: the payload's ``facts``, content in place.
        header: ``{instructions, tools, parameters}`` of a model call.
        session: the conversation.
        besides: names that are left out: the span has them already. Nor is a prompt said again in another attribute.
        content: False leaves out what was said.
    """
    out: dict[str, Value] = {}
    if "gen_ai.operation.name" not in besides:
        out["gen_ai.operation.name"] = facts.get("operation") or OPERATION.get(kind) or "step"
    for key, name in _PLAIN.items():
        if (value := facts.get(key)) is not None and name not in besides:
            out[name] = value
    if content:
        out.update(_said(facts, header, besides))
    parameters = header.get("parameters")
    for key, value in parameters.items() if isinstance(parameters, Mapping) else ():
        if (name := f"gen_ai.request.{key}") not in besides:
            out[name] = plain_value(value)
    if session is not None and "gen_ai.conversation.id" not in besides:
        out["gen_ai.conversation.id"] = session
    for key, value in (facts.get("otherTokens") or {}).items():
        if (name := f"gen_ai.usage.{key}") not in besides:
            out[name] = value
    for key, value in (facts.get("attributes") or {}).items():
        if value is not None and key not in besides:
            out.setdefault(key, plain_value(value))
    return out


def _said(facts: Mapping[str, Json], header: Mapping[str, Json], besides: Container[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for key, name in _TEXTS.items():
        if (value := facts.get(key)) is not None and name not in besides:
            out[name] = text_of(_finished(value, facts) if key == "outputMessages" else value)
    answered = _TEXTS["outputMessages"]
    if facts.get("outputMessages") is None and facts.get("calls") and answered not in besides:
        out[answered] = text_of(_finished([{"role": "assistant", "parts": _call_parts(facts["calls"])}], facts))
    for key, name in _HEADER.items():
        said_there = key == "instructions" and _TEXTS["messages"] in besides  # viewers would show the prompt twice
        if (value := header.get(key)) is not None and name not in besides and not said_there:
            out[name] = text_of(value)
    return out


def shown_values(
    kind: str, facts: Mapping[str, Json], told: Container[str], below: tuple[Json, Json] = (None, None)
) -> dict[str, Value]:
    """What viewers read a step's input and output from, where it lacks it: ``input.value`` and ``output.value`` of agents
    and tools, and the other side of any such pair of which the span has one.

    Always both sides: Langfuse takes input and output from the first family of attributes that has either.

    Args:
        told: names that the span has.
        below: what the model calls below an agent's span tell, for the sides that it does not tell itself.
    """
    if kind == Kind.TOOL:
        sides = facts.get("arguments"), facts.get("result")
    elif kind == Kind.AGENT:
        given, gave = asked_of(facts), answered_by(facts)
        sides = below[0] if given is None else given, below[1] if gave is None else gave
    elif kind == Kind.MODEL:
        gave = facts.get("outputMessages")
        sides = facts.get("messages"), facts.get("outputText") if gave is None else gave
    else:
        return {}
    if sides == (None, None):
        return {}
    texts = ["" if side is None else text_of(side) for side in sides]
    out: dict[str, Value] = {}
    for pair in PAIRS:
        has = [name in told for name in pair]
        wanted = pair == PAIRS[0] and kind != Kind.MODEL
        if all(has) or not (wanted or any(has)):
            continue
        for name, text, there in zip(pair, texts, has, strict=True):
            if there:
                continue
            out[name] = text
            if name.endswith(".value"):
                out[name[: -len("value")] + "mime_type"] = "application/json" if _is_json(text) else "text/plain"
    return out


def asked_of(facts: Mapping[str, Json]) -> Json:
    """What the user said last of the messages that a step was given: its text, else its parts; None when nothing."""
    return _spoken(facts.get("messages"), "user")


def answered_by(facts: Mapping[str, Json]) -> Json:
    """What a step answered: its text, else its parts; None when nothing."""
    said = _spoken(facts.get("outputMessages"), "assistant")
    return facts.get("outputText") if said is None else said


def text_of(value: Json) -> str:
    """JSON text; a text stays as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(parsed(value), ensure_ascii=False, separators=(",", ":"), default=str)


def plain_value(value: Json) -> Value:
    """A value as OTLP has it everywhere: scalars and lists of one scalar type stay, all else becomes JSON text."""
    if isinstance(value, (str, bool, float)):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, (list, tuple)):
        kinds = {type(item) for item in value}
        if (len(kinds) == 1 and kinds <= {str, bool, float}) or (kinds == {int} and all(abs(i) < 2**63 for i in value)):
            return list(value)
    return text_of(value)


def _finished(messages: Json, facts: Mapping[str, Json]) -> Json:
    """Output messages with the ``finish_reason`` that the conventions require of each: empty where nobody told it.

    Phoenix shows none of a step's output messages when one lacks it.
    """
    messages = parsed(messages)
    if not isinstance(messages, (list, tuple)):
        return messages
    reasons = list(facts.get("finishReasons") or ())
    if len(reasons) != len(messages):  # one for the whole answer, which ends with its last message
        reasons = [""] * (len(messages) - 1) + (reasons[-1:] or [""])
    return [
        {"finish_reason": reason, **message} if isinstance(message, Mapping) else message
        for message, reason in zip(messages, reasons, strict=False)
    ]


def _call_parts(calls: Json) -> list[Json]:
    """Calls whose arguments were not told, as parts of the message that asked for them."""
    return [{"type": "tool_call", **call} for call in calls if isinstance(call, Mapping)]


def _spoken(messages: Json, role: str) -> Json:
    """What the last message of a role says: its text, else its parts; None when there is none."""
    messages = parsed(messages)
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return messages
    said = [m for m in messages if isinstance(m, Mapping) and m.get("role") == role]
    if not said:
        return None
    parts = said[-1].get("parts")
    parts = parts if isinstance(parts, list) else []
    texts = [p.get("content") for p in parts if isinstance(p, Mapping) and p.get("type") == "text"]
    return "".join(map(str, texts)) if len(texts) == len(parts) and texts else parts


def _is_json(text: str) -> bool:
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def unpaid(attributes: Mapping[str, Value], kind: str, origin: Mapping[str, Json]) -> dict[str, Value]:
    """The attributes of a call that was answered from a recording: it says so, and cost nothing.

    Args:
        origin: ``from`` of NODE_ANSWERED.
    """
    made = {name: value for name, value in attributes.items() if not name.startswith(_PAID)}
    if kind == Kind.MODEL:  # else some viewers would count the tokens themselves
        made.update({"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0})
    made[ANSWERED_FROM] = str(origin.get("run") or next(iter(origin), "a recording"))
    return made

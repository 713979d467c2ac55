"""What a provider's raw answer tells: facts of a chat completion, a Responses answer, an Anthropic message, or just a usage block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects.messages import calls_of, message, part
from otel_agentrec.capture.dialects.tokens import USAGE_KEYS, count, first
from otel_agentrec.journal.facts import RawList
from otel_agentrec.journal.normal import denormalise, normalise
from otel_agentrec.prompts import AgentModelResult

__all__ = ["facts_of_answer", "facts_of_result", "frozen_copy", "plain_copy"]

Json = Any


def plain_copy(value: object) -> Json:
    """A copy of any value in plain Python data (SDK models become dicts). Never raises; later changes don't reach it."""
    return denormalise(normalise(value))


def frozen_copy(value: Json) -> Json:
    """A copy of a payload that the program can't change any more; JSON text is parsed only when somebody needs it."""
    if isinstance(value, RawList):
        return value
    if isinstance(value, dict):
        return {key: frozen_copy(item) for key, item in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return plain_copy(value)


def facts_of_answer(raw: Json) -> dict[str, Any]:
    """Facts by name of :class:`Facts` fields, as far as the answer tells. ``raw`` is plain data (:func:`plain_copy`)."""
    if not isinstance(raw, Mapping):
        return {}
    facts: dict[str, Any] = {"response_id": _text(raw.get("id")), "response_model": _text(raw.get("model"))}
    said, reasons = _said(raw)
    if said:
        facts["output_messages"] = said
        facts["calls"] = calls_of(said)
    facts["finish_reasons"] = reasons or None
    usage = raw.get("usage")
    if isinstance(usage, Mapping):
        facts.update(_tokens(usage))
    return {name: value for name, value in facts.items() if value is not None}


def facts_of_result(result: AgentModelResult) -> dict[str, Any]:
    """The same of a client's result, whose ``raw_response`` is not looked at: calls of tools, tokens, finish reasons."""
    facts: dict[str, Any] = {"finish_reasons": list(result.finish_reasons) or None}
    if result.tool_calls:
        parts = [part(result.output_text)] if result.output_text else []
        for call in result.tool_calls:
            told = {"id": call.call_id, "name": call.name, "arguments": plain_copy(call.arguments)}
            parts.append({"type": "tool_call", **{key: value for key, value in told.items() if value is not None}})
        facts["output_messages"] = [{"role": "assistant", "parts": parts}]
        facts["calls"] = calls_of(facts["output_messages"])
    usage = plain_copy(result.usage)
    if isinstance(usage, Mapping):
        facts.update(_tokens(usage))
    return {name: value for name, value in facts.items() if value is not None}


def _said(raw: Mapping[str, Json]) -> tuple[list[Json], list[str]]:
    """-> the messages of the answer in the message schema, and its finish reasons."""
    choices, output, content = raw.get("choices"), raw.get("output"), raw.get("content")
    if isinstance(choices, list):
        held = [choice for choice in choices if isinstance(choice, Mapping)]
        reasons = [r for choice in held if (r := _text(choice.get("finish_reason")))]
        return [message(c["message"]) for c in held if isinstance(c.get("message"), Mapping)], reasons
    if isinstance(output, list):
        parts = [p for item in output if isinstance(item, Mapping) for p in _parts_of_item(item)]
        reason = _text(raw.get("status"))
        return ([{"role": "assistant", "parts": parts}] if parts else []), [reason] if reason else []
    if isinstance(content, list):
        reason = _text(raw.get("stop_reason"))
        return [message({"role": raw.get("role") or "assistant", "content": content})], [reason] if reason else []
    return [], []


def _parts_of_item(item: Mapping[str, Json]) -> list[Json]:
    """The parts of one output item of OpenAI's Responses."""
    kind = item.get("type")
    if kind == "message" and isinstance(item.get("content"), list):
        return [part(p) for p in item["content"]]
    if kind == "function_call":
        call = {
            "id": item.get("call_id") or item.get("id"),
            "name": item.get("name"),
            "arguments": item.get("arguments"),
        }
        return [{"type": "tool_call", **{key: value for key, value in call.items() if value is not None}}]
    if kind == "reasoning":
        summary = item.get("summary")
        texts = (
            [s["text"] for s in summary if isinstance(s, Mapping) and s.get("text")]
            if isinstance(summary, list)
            else []
        )
        return [{"type": "reasoning", "content": "\n".join(texts)}] if texts else []
    return [part(item)]


def _tokens(usage: Mapping[str, Json]) -> dict[str, int | None]:
    """Token counts as the convention has them: input includes cached tokens. Anthropic states them apart: they are added."""
    facts: dict[str, int | None] = {name: first(usage, keys) for name, keys in USAGE_KEYS.items()}
    read, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    if facts["input_tokens"] is not None and (read or written):
        facts["input_tokens"] += (read or 0) + (written or 0)
    inside = _details(usage, "prompt_tokens_details", "input_tokens_details")
    outside = _details(usage, "completion_tokens_details", "output_tokens_details")
    facts["cache_read_tokens"] = count(inside.get("cached_tokens")) if read is None else read
    facts["cache_write_tokens"] = written
    facts["reasoning_tokens"] = count(outside.get("reasoning_tokens"))
    return facts


def _details(usage: Mapping[str, Json], *names: str) -> Mapping[str, Json]:
    return next((usage[name] for name in names if isinstance(usage.get(name), Mapping)), {})


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None

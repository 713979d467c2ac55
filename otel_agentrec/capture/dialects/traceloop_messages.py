"""Messages as OpenLLMetry flattened them before it used the GenAI schema: ``gen_ai.prompt.N.*``, ``gen_ai.completion.N.*``.

A message is ``{role, content, tool_calls.M.{id, name, arguments}, tool_call_id, finish_reason, reasoning}``. Content that was
a list stands as JSON text of it. What a model thought is a completion of its own, with the role ``thinking``, before the
answer that it belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects import flattened, messages
from otel_agentrec.capture.dialects.values import loaded, text
from otel_agentrec.journal.jsontext import parse

__all__ = ["message", "take_answers", "take_prompts", "take_tools"]

Json = Any

_PROMPTS = ("gen_ai.prompt", "llm.prompts")
_ANSWERS = ("gen_ai.completion", "llm.completions")
_TOOLS = "llm.request.functions"

_BLOCKS = frozenset(
    {
        "document",
        "file",
        "image",
        "image_url",
        "input_audio",
        "input_file",
        "input_image",
        "input_text",
        "output_text",
        "redacted_thinking",
        "refusal",
        "server_tool_use",
        "text",
        "thinking",
        "tool_result",
        "tool_use",
        "web_search_tool_result",
    }
)
"""Types of content blocks. A text that is a JSON list of anything else is what a person wrote."""


def message(value: Json) -> Json:
    """A message of the GenAI schema as this instrumentation writes it: reasoning may be JSON text of a list of summaries."""
    made = messages.message(value)
    parts = made.get("parts") if isinstance(made, Mapping) else None
    if not isinstance(parts, list) or not any(_is_summary(p) for p in parts):
        return made
    return {**made, "parts": [{**p, "content": _summary(p["content"])} if _is_summary(p) else p for p in parts]}


def take_prompts(rest: MutableMapping[str, Any]) -> list[Json] | None:
    """Move the prompts out of a span's attributes, as messages of the schema. None when there are none."""
    listed = _take(rest, _PROMPTS)
    return None if listed is None else [_message(m) for m in listed]


def take_answers(rest: MutableMapping[str, Any]) -> list[Json] | None:
    """As :func:`take_prompts`, for completions; each keeps its ``finish_reason``."""
    listed = _take(rest, _ANSWERS)
    return None if listed is None else _with_thoughts([_message(m, "assistant") for m in listed])


def take_tools(rest: MutableMapping[str, Any]) -> list[Json] | None:
    """Move the tool definitions ``llm.request.functions.N.{name, description, parameters | input_schema}`` out of the
    attributes."""
    listed = flattened.take(rest, _TOOLS)
    if listed is None:
        return None
    return [
        {"type": "function", **{k: loaded(v) for k, v in tool.items()}} if isinstance(tool, Mapping) else tool
        for tool in listed
    ]


def _take(rest: MutableMapping[str, Any], prefixes: Sequence[str]) -> list[Json] | None:
    for prefix in prefixes:
        listed = flattened.take(rest, prefix)
        if listed is not None:
            return listed
    return None


def _message(value: Json, role: str = "user") -> Json:
    if not isinstance(value, Mapping):
        return messages.message(value)
    out = {key: v for key, v in value.items() if v is not None}
    if "role" not in out and "content" not in out and isinstance(out.get("user"), str):
        out = {"role": "user", "content": out.pop("user"), **out}  # text completions of Anthropic
    out = {"role": text(out.pop("role", None)) or role, **out}
    out["content"] = _content(out.get("content"))
    if isinstance(out.get("reasoning"), str):
        out["reasoning"] = _summary(out["reasoning"])
    calls = out.get("tool_calls")
    if isinstance(calls, list):
        out["tool_calls"] = [_tool_call(call) for call in calls]
    if out["role"] == "thinking":
        thought = messages.part({"type": "reasoning", "content": out.pop("content")})
        return {**out, "parts": [thought]}
    reason = out.pop("finish_reason", None)
    made = messages.message(out)
    return made if reason is None else {**made, "finish_reason": reason}


def _content(value: Json) -> Json:
    """The blocks that a text holds as JSON, else the text itself."""
    if not isinstance(value, str) or value[:1] not in ("[", '"'):
        return value
    try:
        found = parse(value)
    except ValueError:
        return value
    if found in ("", []):
        return None
    if isinstance(found, list) and all(isinstance(b, Mapping) and _is_block(b) for b in found):
        return found
    return value


def _is_block(value: Mapping[str, Json]) -> bool:
    return value["type"] in _BLOCKS if isinstance(value.get("type"), str) else messages.is_block(value)


def _tool_call(call: Json) -> Json:
    """``arguments`` may be JSON text of JSON text."""
    arguments = call.get("arguments") if isinstance(call, Mapping) else None
    if not isinstance(arguments, str) or arguments[:1] != '"':
        return call
    try:
        return {**call, "arguments": parse(arguments)}
    except ValueError:
        return call


def _with_thoughts(answers: list[Json]) -> list[Json]:
    """Each thought goes to the answer after it."""
    out: list[Json] = []
    thoughts: list[Json] = []
    reason: Json = None
    for answer in answers:
        if isinstance(answer, Mapping) and answer.get("role") == "thinking":
            thoughts.extend(answer["parts"])
            reason = answer.get("finish_reason", reason)
            continue
        if isinstance(answer, Mapping) and (thoughts or reason is not None):
            ended = {} if reason is None or "finish_reason" in answer else {"finish_reason": reason}
            answer = {**answer, "parts": [*thoughts, *(answer.get("parts") or ())], **ended}
            thoughts, reason = [], None
        out.append(answer)
    if thoughts:
        ended = {} if reason is None else {"finish_reason": reason}
        out.append({"role": "assistant", "parts": thoughts, **ended})
    return out


def _is_summary(part: Json) -> bool:
    return (
        isinstance(part, Mapping)
        and part.get("type") == "reasoning"
        and isinstance(part.get("content"), str)
        and _summary(part["content"]) is not part["content"]
    )


def _summary(content: str) -> str:
    """The text of a list of summaries, ``[{type: summary_text, text}]``, that stands as JSON text; else the text itself."""
    if not content.startswith("[{"):
        return content
    try:
        found = parse(content)
    except ValueError:
        return content
    summaries = [b for b in found if isinstance(b, Mapping) and b.get("type") == "summary_text"]
    texts = [b["text"] for b in summaries if isinstance(b.get("text"), str)]
    return "\n".join(texts) if len(texts) == len(found) else content

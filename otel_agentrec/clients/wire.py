"""What a provider's API needs so that a client can speak it, and the small translations that all share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt

__all__ = [
    "Merging",
    "Wire",
    "as_text",
    "call_text",
    "data_url",
    "function_of",
    "given",
    "instructions_of",
    "message_of",
    "plain_text",
    "result_of",
    "texts",
    "without_nulls",
]

Json = Any


class Merging(Protocol):
    """A stream on its way into one answer."""

    def add(self, event: Mapping[str, Json]) -> Iterable[AgentModelChunk]:
        """Take the provider's next event; gives the pieces that it brought."""
        ...

    def whole(self) -> dict[str, Json]:
        """The answer so far, as the provider gives it when it does not stream."""
        ...


class Wire(Protocol):
    """One provider's API, without any of its SDK."""

    def request(self, prompt: AgentPrompt, *, stream: bool) -> dict[str, Json]:
        """The body of the request."""
        ...

    def result(self, raw: Json) -> AgentModelResult:
        """What the body of an answer says."""
        ...

    def merging(self) -> Merging: ...


def given(**values: Json) -> dict[str, Json]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def without_nulls(value: Json) -> Json:
    """An answer's object as it may be sent back: APIs answer with nulls that they refuse in requests."""
    return {k: without_nulls(v) for k, v in value.items() if v is not None} if isinstance(value, Mapping) else value


def message_of(item: Json) -> Json:
    """An item of a prompt; text is a message of the user."""
    return {"role": "user", "content": item} if isinstance(item, str) else item


def instructions_of(prompt: AgentPrompt) -> list[Json]:
    """System prompt and instructions as parts: text or objects."""
    parts: list[Json] = []
    for told in (prompt.system_prompt, prompt.instructions):
        if isinstance(told, (list, tuple)):
            parts.extend(told)
        elif told is not None:
            parts.append(told)
    return parts


def as_text(parts: Iterable[Json]) -> str:
    """The texts of parts, one paragraph each."""
    texts = (p if isinstance(p, str) else p.get("content", p.get("text")) for p in parts)
    return "\n\n".join(text for text in texts if isinstance(text, str))


def call_text(value: Json) -> str:
    """Arguments or a result as the text that an API wants."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def result_of(response: Json) -> Json:
    """What a tool gave, as an API wants it: text, or the content parts that it was."""
    if (
        isinstance(response, (list, tuple))
        and response
        and all(isinstance(p, Mapping) and p.get("type") for p in response)
    ):
        return list(response)
    return call_text(response)


def plain_text(parts: Sequence[Json]) -> Json:
    """The text of parts that are nothing but one text; None when they are more. No parts are an empty text."""
    if len(parts) != 1:
        return None if parts else ""
    only = parts[0]
    if isinstance(only, Mapping) and only.get("type") == "text" and only.keys() <= {"type", "content"}:
        return only.get("content")
    return only if isinstance(only, str) else None


def data_url(part: Mapping[str, Json]) -> str:
    """The URL that holds a blob."""
    return f"data:{part.get('mime_type') or 'application/octet-stream'};base64,{part.get('content')}"


def function_of(tool: Mapping[str, Json]) -> dict[str, Json] | None:
    """``{name, description, parameters, …}`` of a definition in any provider's form; None when it is no function."""
    inner = tool.get("function")
    if isinstance(inner, Mapping):
        return dict(inner)
    if tool.get("type", "function") not in ("function", "custom") or "name" not in tool:
        return None
    if tool.get("type") == "custom" and "input_schema" not in tool:
        return None  # OpenAI's tools with free text
    out = {key: value for key, value in tool.items() if key != "type"}
    if "input_schema" in out:
        out["parameters"] = out.pop("input_schema")
    return out


def texts(parts: Sequence[Json], kinds: Sequence[str] = ("text",)) -> list[str]:
    """The texts of typed parts of an answer."""
    return [p["text"] for p in parts if isinstance(p, Mapping) and p.get("type") in kinds and p.get("text")]

"""Message shapes -> the message schema of the OTel GenAI conventions.

The schema: ``{role, parts: [...], name?}``; a part is ``{type: text | reasoning, content}``, ``{type: tool_call, id, name,
arguments}``, ``{type: tool_call_response, id, response}``, ``{type: blob, modality, mime_type, content}``, ``{type: uri,
modality, uri}``, ``{type: file, modality, file_id}`` or anything else, kept as it is. Read besides it: chat messages of
OpenAI (``content``, ``tool_calls``, ``tool_call_id``) and content blocks of Anthropic, of OpenAI's Responses and of Bedrock
(``{text}``, ``{toolUse: {...}}``, without a type).

Everything here is pure: equal input gives equal output, and what was normalised once stays the same. Tool arguments and
results are never touched: whoever reads a record parses them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from otel_agentrec.capture.dialects.values import spelled
from otel_agentrec.journal.facts import RawList
from otel_agentrec.journal.jsontext import parse

__all__ = [
    "calls_of",
    "definition",
    "finish_reasons_of",
    "is_block",
    "message",
    "parsed_listing",
    "part",
    "raw_listing",
]

Json = Any

_LISTS = (list, tuple)
_MAPPINGS = (dict, Mapping)  # whether something is a dict is told several times as fast
_CHAT = ("content", "tool_calls", "function_call", "refusal", "reasoning_content")


def message(value: Json) -> Json:
    """One message in the schema.

    Null keys are dropped, and so is ``finish_reason``: an answer then equals the input message that it becomes in the next
    call. A bare string becomes a text part of a message whose role nobody told.
    """
    if isinstance(value, str):
        return {"parts": [{"type": "text", "content": value}]}
    if not isinstance(value, _MAPPINGS):
        return value
    out = {key: v for key, v in value.items() if v is not None and key != "finish_reason"}
    parts = out.get("parts")
    if isinstance(parts, _LISTS):
        out["parts"] = [part(p) for p in parts]
        if "tool_calls" in out or "tool_call_id" in out:
            _take_in(out)
    elif "parts" not in out and any(key in out for key in _CHAT):
        out = _chat_message(out)
    return out


def part(value: Json) -> Json:
    """One part of a message, or one system instruction, in the schema."""
    if isinstance(value, str):
        return {"type": "text", "content": value}
    if not isinstance(value, _MAPPINGS):
        return value
    if len(value) == 2 and value.get("type") == "text" and isinstance(value.get("content"), str):  # as nearly all are
        return dict(value)
    out = {key: v for key, v in value.items() if v is not None}
    if "type" not in out and out.get("kind") in ("text", "thinking"):  # Pydantic AI's older events
        out["type"] = out.pop("kind")
    if "type" not in out:
        return _untyped(out)
    reader = _PARTS.get(out["type"]) if isinstance(out["type"], str) else None
    return reader(out) if reader else out


def is_block(value: Json) -> bool:
    """Whether a value is a content block that :func:`part` knows by its looks."""
    if not isinstance(value, Mapping):
        return False
    return isinstance(value.get("type"), str) or (len(value) == 1 and next(iter(value)) in _BLOCKS)


def definition(value: Json) -> Json:
    """One tool definition: null keys dropped; OpenAI's ``{type, function: {...}}`` flattened, Anthropic's schema renamed."""
    if not isinstance(value, Mapping):
        return value
    out = {key: v for key, v in value.items() if v is not None}
    if "input_schema" in out:
        _rename(out, "input_schema", "parameters")
        out.setdefault("type", "function")
    function = out.get("function")
    if isinstance(function, Mapping):
        del out["function"]
        out.update((key, v) for key, v in function.items() if v is not None)
    return out


def raw_listing(value: Json, element: Any) -> tuple[Sequence[Json] | RawList | None, bool]:
    """A list attribute, left as text where that is safe. -> (the list or None, whether its text was cut).

    JSON text of an array of objects stays a :class:`RawList`: the journal parses only what it has not seen before. Text that
    was cut by an attribute limit stays a RawList too; readers then find the text itself where the list should be.
    """
    if isinstance(value, str):
        head, tail = value[:256].lstrip(), value[-256:].rstrip()
        if head[:1] == "[" and head[1:].lstrip()[:1] == "{" and tail[-1:] == "]" and tail[:-1].rstrip()[-1:] == "}":
            return RawList(value, element), False
    return parsed_listing(value, element)


def parsed_listing(value: Json, element: Any) -> tuple[Sequence[Json] | RawList | None, bool]:
    """As :func:`raw_listing`, but parsed at once."""
    if isinstance(value, str):
        if not value:
            return None, False
        try:
            parsed = parse(value)
        except ValueError:
            if looks_cut(value):
                return RawList(value, element), True
        else:  # text that merely looks like a number stays text
            value = parsed if parsed is None or isinstance(parsed, (str, list, dict)) else value
    if value is None:
        return None, False
    if isinstance(value, _LISTS):
        return [element(v) for v in value], False
    return [element(value)], False


def looks_cut(text: str) -> bool:
    """Whether text that is no JSON began as a JSON object or an array of objects, arrays or strings."""
    head = text[:256].lstrip()
    return head[:1] == "{" or (head[:1] == "[" and head[1:].lstrip()[:1] in ("{", "[", '"'))


def calls_of(messages: Sequence[Json]) -> list[dict[str, Json]]:
    """``[{id, name}]`` of the tool calls in normalised messages, in their order."""
    return [
        {"id": _str(p.get("id")), "name": _str(p.get("name"))}
        for m in messages
        if isinstance(m, Mapping) and isinstance(m.get("parts"), _LISTS)
        for p in m["parts"]
        if isinstance(p, Mapping) and p.get("type") == "tool_call"
    ]


def finish_reasons_of(messages: Json) -> list[str]:
    """The ``finish_reason`` of each output message that names one, as it came."""
    if not isinstance(messages, _LISTS):
        return []
    reasons = [m.get("finish_reason") for m in messages if isinstance(m, Mapping)]
    return [r for r in reasons if isinstance(r, str) and r]


# --- parts ------------------------------------------------------------------------------------------------------------


def _text(out: dict[str, Json]) -> dict[str, Json]:
    """``text`` is how OpenAI and Anthropic name the content; ``refusal`` is text that the model gave instead.

    Lists of remarks on the text that are empty in an answer are absent when it comes back in the next request.
    """
    out["type"] = "text"
    for key in ("annotations", "logprobs"):
        if out.get(key) == []:
            del out[key]
    _rename(out, "text", "content")
    _rename(out, "refusal", "content")
    return out


def _reasoning(out: dict[str, Json]) -> dict[str, Json]:
    out["type"] = "reasoning"
    _rename(out, "thinking", "content")
    _rename(out, "text", "content")
    summary = out.get("summary")  # Responses: blocks of text
    if "content" not in out and isinstance(summary, _LISTS):
        blocks = [b["text"] for b in summary if isinstance(b, Mapping) and isinstance(b.get("text"), str)]
        if blocks:
            del out["summary"]
            out["content"] = "\n".join(blocks)
    return out


def _bedrock_reasoning(out: dict[str, Json]) -> dict[str, Json]:
    held = out.get("content")
    text = held.get("reasoningText") if isinstance(held, Mapping) else None
    return _reasoning(dict(text)) if isinstance(text, Mapping) else out


def _tool_call(out: dict[str, Json]) -> dict[str, Json]:
    out["type"] = "tool_call"
    function = out.get("function")
    if isinstance(function, Mapping):
        del out["function"]
        out.update((key, v) for key, v in function.items() if v is not None and key not in out)
    _rename(out, "input", "arguments")
    if "call_id" in out:  # Responses: the other id is the item's own
        out["id"] = out.pop("call_id")
    out.pop("index", None)  # its place in a stream
    return out


def _tool_call_response(out: dict[str, Json]) -> dict[str, Json]:
    out["type"] = "tool_call_response"
    for key in ("tool_use_id", "tool_call_id"):
        _rename(out, key, "id")
    for key in ("result", "content"):
        _rename(out, key, "response")
    return out


def _blob(out: dict[str, Json]) -> dict[str, Json]:
    """Structured telemetry carries the bytes themselves, JSON text their base64 form: the latter is the schema's."""
    content = out.get("content")
    if isinstance(content, (bytes, bytearray)):
        out["content"] = base64.b64encode(content).decode("ascii")
    return out


def _source(out: dict[str, Json]) -> dict[str, Json]:
    """Anthropic's ``{type: image | document, source: {type: base64 | url | file, …}}``."""
    source = out.get("source")
    if not isinstance(source, Mapping):
        return out
    modality = out["type"]
    if source.get("type") == "base64":
        return {
            "type": "blob",
            "modality": modality,
            "mime_type": source.get("media_type"),
            "content": source.get("data"),
        }
    if source.get("type") == "url":
        return {"type": "uri", "modality": modality, "uri": source.get("url")}
    if source.get("type") == "file":
        return {"type": "file", "modality": modality, "file_id": source.get("file_id")}
    return out


def _image(out: dict[str, Json]) -> dict[str, Json]:
    """OpenAI's ``{type: image_url, image_url: {url} | url}``; a data URL is a blob."""
    held = out.get("image_url")
    url = held.get("url") if isinstance(held, Mapping) else held
    if not isinstance(url, str):
        return out
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return {"type": "blob", "modality": "image", "mime_type": head[5:-7], "content": data}
    return {"type": "uri", "modality": "image", "uri": url}


_PARTS = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _text,
    "reasoning": _reasoning,
    "thinking": _reasoning,
    "tool_call": _tool_call,
    "tool_use": _tool_call,
    "function": _tool_call,
    "function_call": _tool_call,
    "tool_call_response": _tool_call_response,
    "tool_result": _tool_call_response,
    "reasoningContent": _bedrock_reasoning,
    "blob": _blob,
    "image": _source,
    "document": _source,
    "image_url": _image,
    "input_image": _image,
}


def _untyped(out: dict[str, Json]) -> dict[str, Json]:
    """A content block of Bedrock's Converse, which has one key that tells what it is; anything else stays as it is."""
    if len(out) != 1:
        return out
    key, held = next(iter(out.items()))
    if key == "text" and isinstance(held, str):
        return {"type": "text", "content": held}
    if key not in _BLOCKS or not isinstance(held, Mapping):
        return out
    inner = {name: v for name, v in held.items() if v is not None}
    if key == "toolUse":
        _rename(inner, "toolUseId", "id")
        return _tool_call(inner)
    if key == "toolResult":
        _rename(inner, "toolUseId", "id")
        return _tool_call_response(inner)
    if key == "reasoningContent":
        return _bedrock_reasoning({"type": key, "content": inner})
    return out


_BLOCKS = ("text", "toolUse", "toolResult", "reasoningContent", "image", "document", "json")


def _chat_message(out: dict[str, Json]) -> dict[str, Json]:
    """A message of a chat API: content beside tool calls. ``function_call`` is how OpenAI once named a single one."""
    content, calls = out.pop("content", None), out.pop("tool_calls", None)
    call_id, single = out.pop("tool_call_id", None), out.pop("function_call", None)
    if out.get("annotations") == []:
        del out["annotations"]
    parts: list[Json] = []
    for key in ("reasoning_content", "reasoning"):
        if isinstance(out.get(key), str):
            reasoning = out.pop(key)
            if reasoning and not parts:  # some servers send both
                parts.append({"type": "reasoning", "content": reasoning})
    if call_id is not None:
        parts.append({"type": "tool_call_response", "id": call_id, "response": content})
    elif isinstance(content, _LISTS):
        parts.extend(part(p) for p in content)
    elif content not in (None, ""):
        parts.append(part(content))
    if isinstance(out.get("refusal"), str):
        parts.append({"type": "text", "content": out.pop("refusal")})
    calls = calls if isinstance(calls, _LISTS) else [single]
    parts.extend(_tool_call({k: v for k, v in c.items() if v is not None}) for c in calls if isinstance(c, Mapping))
    return {**out, "parts": parts}


def _take_in(out: dict[str, Json]) -> None:
    """LiteLLM has parts, and calls of tools and the id of the one that is answered beside them, as a chat API has."""
    parts, calls = out["parts"], out.get("tool_calls")
    if isinstance(calls, _LISTS) and all(isinstance(c, _MAPPINGS) for c in calls):
        del out["tool_calls"]
        out["parts"] = [*parts, *(_tool_call({k: v for k, v in c.items() if v is not None}) for c in calls)]
    elif isinstance(out.get("tool_call_id"), str):
        only = parts[0] if len(parts) == 1 and parts[0].keys() == {"type", "content"} else None
        told = only["content"] if only is not None and only["type"] == "text" else parts
        out["parts"] = [{"type": "tool_call_response", "id": out.pop("tool_call_id"), "response": told}]


def _rename(out: dict[str, Json], old: str, new: str) -> None:
    if old in out and new not in out:
        out[new] = out.pop(old)


def _str(value: Json) -> str | None:
    return value if isinstance(value, str) or value is None else spelled(value)

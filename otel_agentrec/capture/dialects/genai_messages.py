"""One event per message, the older form of the GenAI conventions: ``gen_ai.user.message`` … and ``gen_ai.choice``.

As a log record the event has its payload in the body (``{content, role?, tool_calls?, id?}``; of a choice ``{index, message,
finish_reason}``), structured or as JSON text. As a span event it has the same keys as attributes, what has structure as JSON
text, or all of it in one attribute ``gen_ai.event.content``. Some emitters list all events as the JSON text of one attribute of
the span, each with its ``event.name``. With content switched off the payload keeps roles, ids and names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from otel_agentrec.capture.dialects.messages import calls_of, definition, is_block, message
from otel_agentrec.capture.spans import LogView, SpanEvent
from otel_agentrec.journal.facts import Facts
from otel_agentrec.journal.jsontext import parse

__all__ = ["NAMES", "NOTHING", "Conversation", "alone", "in_list", "in_logs", "in_span_events", "tool_io"]

Json = Any
Payload = Mapping[str, Json]

CHOICE = "gen_ai.choice"
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
NAMES = (*_ROLES, CHOICE)

_KEYS = ("content", "role", "tool_calls", "id", "name", "index", "message", "finish_reason")
_WHOLE = "gen_ai.event.content"
_INDEX = "gen_ai.message.index"

_ONE_ANSWER = ("anthropic",)
"""Providers whose API gives one answer: of their choices, ``index`` counts the blocks of one message."""


class Conversation(NamedTuple):
    """What the events of a model call tell. ``messages`` and ``output`` are None where no content was captured; ``calls``
    are known all the same."""

    messages: list[Json] | None = None
    output: list[Json] | None = None
    calls: list[dict[str, Json]] | None = None
    reasons: tuple[str, ...] = ()
    tools: list[Json] | None = None


NOTHING = Conversation()


def in_logs(logs: Sequence[LogView]) -> Conversation:
    """The conversation in the log records of a span, in the order in which they were emitted."""
    told = [log for log in logs if log.event_name in NAMES]
    if all(isinstance(log.attributes.get(_INDEX), int) for log in told):
        told.sort(key=lambda log: int(log.attributes[_INDEX]))
    elif all(log.observed_ns is not None for log in told):
        told.sort(key=lambda log: log.observed_ns or 0)
    return _conversation(((log.event_name, _of_log(log)) for log in told), any(map(_is_one_answer, told)))


def _is_one_answer(log: LogView) -> bool:
    provider = log.attributes.get("gen_ai.provider.name") or log.attributes.get("gen_ai.system")
    return isinstance(provider, str) and provider.lower() in _ONE_ANSWER


def alone(log: LogView) -> Facts | None:
    """What one of these log records tells by itself, None when it is nothing.

    An answer without a role goes on where the one before it stopped.
    """
    told = in_logs([log])
    if told.calls is None and not told.messages and not told.tools:
        return None
    output, reasons, index = told.output, told.reasons, _of_log(log).get("index")
    if isinstance(index, int) and index > 0 and _is_one_answer(log):
        output = [{key: value for key, value in m.items() if key != "role"} for m in output or ()] or None
        reasons = ()  # every block repeats it
    return Facts(
        messages=told.messages,
        output_messages=output,
        calls=told.calls,
        finish_reasons=list(reasons) or None,
        tools=told.tools,
        attributes=dict(log.attributes) or None,
    )


def in_span_events(events: Sequence[SpanEvent]) -> Conversation:
    """The conversation in the events on a span."""
    return _conversation((event.name, _of_event(event)) for event in events if event.name in NAMES)


def in_list(events: Sequence[Json]) -> Conversation:
    """The conversation in an attribute that lists such events, each with its name as ``event.name``."""
    told = [e for e in events if isinstance(e, Mapping) and e.get("event.name") in NAMES]
    return _conversation((str(e["event.name"]), e) for e in told)


def tool_io(events: Sequence[SpanEvent]) -> tuple[Json, Json]:
    """(arguments, result) in the events on a tool span: its message and its choice. None where they are not told."""
    arguments = result = None
    for event in events:
        if event.name == "gen_ai.tool.message":
            arguments = event.attributes.get("content")
        elif event.name == CHOICE:
            result = event.attributes.get("message")
    return arguments, result


def _conversation(told: Iterable[tuple[str, Payload]], one_answer: bool = False) -> Conversation:
    messages: list[Json] = []
    choices: list[tuple[Json, dict[str, Json], bool]] = []
    reasons: list[str] = []
    tools: list[Json] | None = None
    for name, payload in told:
        offered = _tools(payload.get("content"))
        if offered is not None:
            tools = offered
        elif name == CHOICE:
            reason = payload.get("finish_reason")
            if isinstance(reason, str) and reason:
                reasons.append(reason)
            _add_choice(choices, payload, isinstance(reason, str))
        else:
            messages.append(_message(payload, _ROLES[name]))
    output = [answer for _, answer, _ in choices]
    if one_answer and len(output) > 1:
        output = [{**output[0], "parts": [part for answer in output for part in answer["parts"]]}]
        reasons = list(dict.fromkeys(reasons))
    return Conversation(
        messages if any(map(_has_content, messages)) else None,
        output if any(map(_has_content, output)) else None,
        calls_of(output) if choices else None,
        tuple(reasons),
        tools,
    )


def _tools(content: Json) -> list[Json] | None:
    """The tool definitions that some instrumentations put into a message of their own, ``{tools: […]}``."""
    offered = content.get("tools") if isinstance(content, Mapping) and len(content) == 1 else None
    return [definition(tool) for tool in offered] if isinstance(offered, (list, tuple)) else None


def _add_choice(choices: list[tuple[Json, dict[str, Json], bool]], payload: Payload, ended: bool) -> None:
    """Add an answer, or a further piece of one that has not ended yet."""
    held, index = payload.get("message"), payload.get("index")
    said = (
        dict(held) if isinstance(held, Mapping) else {"content": held if held is not None else payload.get("content")}
    )
    if not said.get("tool_calls"):
        said["tool_calls"] = payload.get("tool_calls")
    answer = _message(said, "assistant")
    if choices and choices[-1][0] == index and not choices[-1][2]:
        before = choices[-1][1]
        choices[-1] = (index, {**before, "parts": _joined(before["parts"], answer["parts"])}, ended)
    else:
        choices.append((index, answer, ended))


def _joined(parts: list[Json], more: list[Json]) -> list[Json]:
    """Parts and those of the next piece; text goes on where it stopped."""
    if parts and more:
        last, first = parts[-1], more[0]
        texts = [p.get("content") if isinstance(p, dict) and p.get("type") == "text" else None for p in (last, first)]
        if isinstance(texts[0], str) and isinstance(texts[1], str):
            return [*parts[:-1], {**last, "content": texts[0] + texts[1]}, *more[1:]]
    return [*parts, *more]


def _message(payload: Payload, role: str) -> dict[str, Json]:
    """A message in the schema. Its ``parts`` are always there."""
    told = payload.get("role")
    role = told if isinstance(told, str) and told else role
    if role == "tool":
        part = {"type": "tool_call_response", "id": payload.get("id"), "response": payload.get("content")}
        return {"role": role, "parts": [{key: value for key, value in part.items() if value is not None}]}
    kept = {key: payload[key] for key in ("content", "tool_calls", "reasoning_content", "name") if key in payload}
    made: dict[str, Json] = message({**kept, "role": role})
    return made if isinstance(made.get("parts"), list) else {**made, "parts": []}


def _has_content(said: dict[str, Json]) -> bool:
    """Whether a message holds more than ids and names."""
    return any(not isinstance(p, dict) or bool(p.keys() - {"type", "id", "name"}) for p in said["parts"])


def _of_log(log: LogView) -> Payload:
    beside = {key: log.attributes[key] for key in _KEYS if key in log.attributes}
    body = log.body
    if isinstance(body, str):
        found = _structure(body)
        body = found if isinstance(found, Mapping) else {"content": body}
    return {**beside, **body} if isinstance(body, Mapping) else beside


def _of_event(event: SpanEvent) -> Payload:
    whole = _structure(event.attributes.get(_WHOLE))
    if isinstance(whole, Mapping):
        return whole
    payload = dict(event.attributes)
    for key in ("content", "message", "tool_calls"):
        found = _structure(payload.get(key))
        if isinstance(found, Mapping) or (isinstance(found, list) and all(map(is_block, found))):
            payload[key] = found
    return payload


def _structure(text: Json) -> Json:
    """A JSON object or array that stands as text; None for anything else."""
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return None
    try:
        return parse(text)
    except ValueError:
        return None

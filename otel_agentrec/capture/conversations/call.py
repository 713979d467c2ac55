"""One model call as the session hears of it: what it was asked, what it answered, and where in the journal both stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.capture.conversations.messages import CALL, RESULT, SYSTEM, Piece, Reading
from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.pointers import Pointer
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.record import Heard
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.records import JournalRef

__all__ = ["Answered", "Call", "call_of", "result_of"]

Json = Any
Content = Callable[[Piece], dict[str, Json]]


@dataclass(slots=True)
class Call:
    """A model call.

    ``agent``: the path of agents that made it, None where no agent is known; ``ended``: ms since the epoch; ``asked`` and
    ``reply``: pieces, the leading system messages left out, which stand in the ``header``; ``content`` gives the payload of
    a piece's event, ``replaced`` that of a CONTEXT_REPLACED; ``resumes``: its run goes on with a recorded one, and makes the
    calls of that one again.
    """

    session: str | None
    agent: str | None
    node: JournalRef
    where: Envelope
    spans: list[str]
    ended: int | None
    asked: list[Piece]
    reply: list[Piece]
    header: dict[str, Json]
    header_event: dict[str, Json]
    content: Content
    answer: Content
    replaced: Json = field(repr=False)
    resumes: bool = False


@dataclass(slots=True)
class Answered:
    """What a tool gave back, for the case that no later model call tells of it. ``piece``: its key."""

    call_id: str
    node: JournalRef
    where: Envelope
    ended: int | None
    piece: Piece
    payload: dict[str, Json]


def call_of(view: View, s: Span, session: str | None, reading: Reading) -> Call | None:
    """The call that ``s`` leads; None where its telemetry does not tell what the model was asked."""
    heard = view.heard(s)
    messages = heard.facts.get("messages")
    if not isinstance(messages, list):
        return None
    pieces = reading.pieces(messages)
    leading = next((p.at for p in pieces if p.kind != SYSTEM), len(messages)) if pieces else 0
    asked = [piece for piece in pieces if piece.at >= leading]
    reply, answer = _answer(heard, reading)
    if not asked and not reply:
        return None
    place = heard.places.get("messages")
    header, header_event = _header(heard, messages, leading, place)
    base = "$.payload.facts.messages"
    replaced: Json = list(messages[leading:])
    if place is not None:
        replaced = _pointer(place, base if not leading else f"{base}[{leading}:]")
    event = view.event(s.place)
    trace = {k: v for k, v in (event.trace or {}).items() if k in ("traceId", "spanId")}
    return Call(
        session,
        view.lane(s).text or None,
        JournalRef(event.stream, event.seq, event.hash),
        Envelope(run=view.run(s), session=session, turn=view.turn(s), step=s.step, trace=trace or None),
        heard.spans,
        None if s.end is None else s.end // 1_000_000,
        asked,
        reply,
        header,
        header_event,
        lambda piece: _payload(piece, messages[piece.at], base, place),
        answer,
        replaced,
    )


def result_of(view: View, s: Span, session: str, reading: Reading) -> Answered | None:
    """The result of the tool call that ``s`` leads; None where it has no call id, or no result is known."""
    heard = view.heard(s)
    call_id, result = heard.facts.get("toolCallId"), heard.facts.get("result")
    if not isinstance(call_id, str) or result is None:
        return None
    part = {"type": "tool_call_response", "id": call_id, "response": result}
    (piece,) = reading.pieces([{"role": "tool", "parts": [part]}], "result")
    place, event = heard.places.get("result"), view.event(s.place)
    payload = {"callId": call_id, "name": heard.facts.get("toolName"), "result": result}
    if place is not None:
        payload["result"] = _pointer(place, "$.payload.facts.result")
    node = JournalRef(event.stream, event.seq, event.hash)
    where = Envelope(run=view.run(s), session=session, turn=view.turn(s), step=s.step)
    ended = None if s.end is None else s.end // 1_000_000
    return Answered(call_id, node, where, ended, piece, {k: v for k, v in payload.items() if v is not None})


def _answer(heard: Heard, reading: Reading) -> tuple[list[Piece], Content]:
    """The pieces of the answer, and what gives the payload of each."""
    messages, text = heard.facts.get("outputMessages"), heard.facts.get("outputText")
    if isinstance(messages, list):
        place, base = heard.places.get("outputMessages"), "$.payload.facts.outputMessages"
        # what a model puts out is said by the assistant, whatever role its telemetry names, or none
        told = [{**m, "role": "assistant"} if isinstance(m, dict) else m for m in messages]
        return reading.pieces(told, "outputMessages"), lambda p: _payload(p, messages[p.at], base, place)
    if not isinstance(text, str):
        return [], lambda _: {}
    at = heard.places.get("outputText")
    said = {"content": text if at is None else _pointer(at, "$.payload.facts.outputText")}
    message = {"role": "assistant", "parts": [{"type": "text", "content": text}]}
    return reading.pieces([message], "outputText"), lambda _: said


def _payload(piece: Piece, message: Json, base: str, place: JournalRef | None) -> dict[str, Json]:
    """The payload of the event that a piece becomes; content points at the journal where it stands there just so."""
    parts, path = message["parts"], f"{base}[{piece.at}].parts"

    def held(value: Json, where: str) -> Json:
        return value if place is None else _pointer(place, where)

    if piece.kind == CALL or (piece.kind == RESULT and parts[piece.parts[0]].get("type") == "tool_call_response"):
        part, here = parts[piece.parts[0]], f"{path}[{piece.parts[0]}]"
        key = "arguments" if piece.kind == CALL else "response" if "response" in part else "result"
        value = part.get(key)
        found = {"callId": piece.call_id, "name": part.get("name")}
        found["arguments" if piece.kind == CALL else "result"] = None if value is None else held(value, f"{here}.{key}")
        return {k: v for k, v in found.items() if v is not None}
    said = "result" if piece.kind == RESULT else "content"
    if len(piece.parts) == 1 and parts[piece.parts[0]].get("type") == "text":
        (n,) = piece.parts
        return {said: held(parts[n]["content"], f"{path}[{n}].content")}
    if len(piece.parts) == len(parts):
        return {said: held(parts, path)}
    some = [parts[n] for n in piece.parts]
    return {said: held(some, f"{path}[{','.join(map(str, piece.parts))}]") if len(some) > 1 else some}


def _header(
    heard: Heard, messages: list[Json], leading: int, place: JournalRef | None
) -> tuple[dict[str, Json], dict[str, Json]]:
    """(instructions, tools and parameters of a call; the payload of a REQUEST_HEADER that says them).

    System messages at the start of the list are instructions: a history goes on though they change.
    """
    told = dict(heard.header)
    model = heard.facts.get("model")
    parameters = told.get("parameters")
    if isinstance(model, str):
        told["parameters"] = {"model": model, **(parameters if isinstance(parameters, dict) else {})}
    system = [part for message in messages[:leading] for part in message["parts"]]
    apart = told.get("instructions")
    if system:
        told["instructions"] = [*(apart if isinstance(apart, list) else []), *system]
    held = {key: told[key] for key in ("instructions", "tools", "parameters") if told.get(key) not in (None, [], {})}
    event = dict(held)
    if heard.header_place is not None:
        for key in ("instructions", "tools"):
            if key in event and not (key == "instructions" and system):
                event[key] = _pointer(heard.header_place, f"$.payload.{key}")
    if system and not apart and leading == 1 and place is not None:
        event["instructions"] = _pointer(place, "$.payload.facts.messages[0].parts")
    return held, event


def _pointer(place: JournalRef, path: str) -> Pointer:
    return Pointer(place.stream, place.seq, place.hash, path)

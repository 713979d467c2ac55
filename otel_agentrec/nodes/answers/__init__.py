"""What a provider's response says: whether the answer is whole, and the payload as it would have come without streaming.

Decided from the content alone: which API it is shows in the body. Nearly every SDK closes the connection as soon as it has read
the last event, so how the connection ended tells nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from otel_agentrec.journal.jsontext import parse
from otel_agentrec.nodes.answers import anthropic, bedrock, gemini, ollama, openai_chat, openai_responses
from otel_agentrec.nodes.answers.decoding import decoded
from otel_agentrec.nodes.answers.frames import read_frames
from otel_agentrec.nodes.answers.sse import read_events

__all__ = ["Answer", "decoded", "merge_pieces", "read_answer"]

Json = Any


@dataclass(frozen=True, slots=True)
class Answer:
    """``payload``: the provider's answer, merged over the chunks of a stream; None where the body is of no known kind.

    ``complete``: the content says that the answer is whole (None: it does not tell). ``pieces``: the JSON values of a
    stream, in order. ``streamed``: it came in pieces.
    """

    payload: Json = None
    complete: bool | None = None
    streamed: bool = False
    pieces: Sequence[Json] = ()


def read_answer(
    body: bytes, content_type: str | None = None, *, length: int | None = None, at_end: bool = True
) -> Answer:
    """What a body says; never raises.

    Args:
        body: without its content-encoding.
        length: what ``content-length`` said, where there was no encoding.
        at_end: the body was read to its end.
    """
    kind = (content_type or "").partition(";")[0].strip().lower()
    try:
        if kind == "application/vnd.amazon.eventstream":
            return _framed(body)
        if kind == "text/event-stream" or _looks_like_events(body):
            return _events(body, at_end)
        if kind in ("application/x-ndjson", "application/jsonl", "application/stream+json"):
            return _lines(body)
        return _json(body, length, at_end)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError):
        return Answer(complete=False if body else None)


def merge_pieces(pieces: Sequence[Json]) -> dict[str, Json] | None:
    """The answer that the JSON values of a stream make, as it would have come without streaming; None where no API sends such."""
    try:
        return _merged([piece for piece in pieces if isinstance(piece, dict)])[0]
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError):
        return None


def _looks_like_events(body: bytes) -> bool:
    return body[:64].lstrip().startswith((b"data:", b"event:", b":"))


def _json(body: bytes, length: int | None, at_end: bool) -> Answer:
    try:
        value = _parsed(body)
    except ValueError:
        lines = _lines(body)
        if lines.complete is not None and lines.payload is not None:
            return lines
        # no JSON, or cut off
        whole = (length is not None and length == len(body)) or (length is None and at_end)
        text_like = body[:1] not in (b"{", b"[")
        return Answer(complete=bool(whole and text_like))
    if isinstance(value, list) and value and all(_is_gemini(x) for x in value):  # a stream without alt=sse
        payload, _ = gemini.merge(value)
        return Answer(payload, True, True, value)
    return Answer(value, True)


def _lines(body: bytes) -> Answer:
    pieces: list[Json] = []
    for line in body.split(b"\n"):
        if line.strip():
            try:
                pieces.append(_parsed(line))
            except ValueError:
                break
    told = [x for x in pieces if isinstance(x, dict)]
    if told and all("done" in x for x in told):
        payload, ended = ollama.merge(told)
        return Answer(payload, ended, True, pieces)
    return Answer(streamed=True, pieces=pieces)


def _events(body: bytes, at_end: bool) -> Answer:
    done = False
    pieces: list[Json] = []
    for event in read_events(body):
        if event.data.strip() == "[DONE]":
            done = True
            continue
        try:
            pieces.append(_parsed(event.data))
        except ValueError:  # the last one may be cut
            continue
    told = [x for x in pieces if isinstance(x, dict)]
    payload, ended = _merged(told)
    if payload is not None and "choices" in payload:  # `[DONE]` is still to come, and usage before it
        ended = done or (ended and at_end)
    elif payload is None:
        return Answer(complete=done or None, streamed=True, pieces=pieces)
    return Answer(payload, ended or done, True, pieces)


def _merged(told: Sequence[dict[str, Json]]) -> tuple[dict[str, Json] | None, bool]:
    """The payload of a stream whose pieces tell by their looks what they are."""
    for piece in told:
        kind = piece.get("type")
        if isinstance(piece.get("choices"), list):
            return openai_chat.merge([x for x in told if isinstance(x.get("choices"), list)])
        if isinstance(kind, str) and kind.startswith("response."):
            return openai_responses.merge(told)
        if kind in anthropic.TYPES and kind != "ping":
            return anthropic.merge(told)
        if _is_gemini(piece):
            return gemini.merge(told)
    return None, False


def _is_gemini(value: Json) -> bool:
    return isinstance(value, dict) and ("candidates" in value or "usageMetadata" in value or "promptFeedback" in value)


def _framed(body: bytes) -> Answer:
    """Bedrock: events by name, or (``invoke-with-response-stream``) base64 of the events of the model's own API."""
    events: list[tuple[str, dict[str, Json]]] = []
    for frame in read_frames(body):
        try:
            held = _parsed(frame.payload)
        except ValueError:
            continue
        if isinstance(held, dict):
            events.append((frame.headers.get(":event-type", ""), held))
    inner = [held["bytes"] for _, held in events if isinstance(held.get("bytes"), str)]
    if inner:
        told = [x for data in inner if isinstance(x := _inner(data), dict)]
        payload, ended = _merged(told)
        return Answer(payload, ended, True, told)
    payload, ended = bedrock.merge(events)
    return Answer(payload, ended, True, [held for _, held in events])


def _inner(data: str) -> Json:
    """One event; None when it is damaged, which hides none of the others."""
    try:
        return _parsed(base64.b64decode(data))
    except ValueError:
        return None


def _parsed(data: bytes | str) -> Json:
    return parse(data.decode("utf-8") if isinstance(data, bytes) else data)

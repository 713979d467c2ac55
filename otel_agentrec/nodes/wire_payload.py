"""The provider's answer in a WIRE_RECORDED event."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from otel_agentrec.nodes.answers import Answer, decoded, read_answer
from otel_agentrec.nodes.source import Source
from otel_agentrec.nodes.wirebody import Unanswerable, read_response
from otel_agentrec.nodes.wires import Wire

__all__ = ["answer_in", "pairs", "payload_of"]

Json = Any


def payload_of(source: Source, wires: Sequence[Wire]) -> Json:
    """The payload that the last attempt that was answered brought; None when it is no JSON object or is not there."""
    last = next((wire for wire in reversed(wires) if wire.is_answer), None)
    if last is None:
        return None
    payload = answer_in(source.payload(last.place, ("response",))).payload
    return payload if isinstance(payload, dict) else None


def answer_in(payload: Mapping[str, Json]) -> Answer:
    """What the response in the payload of a WIRE_RECORDED event says; of one that was redacted, what is left of it."""
    response = payload.get("response")
    if isinstance(response, dict) and "redacted" in response:
        return Answer(response["redacted"], _flag(payload.get("complete")))
    try:
        body = read_response(response)
    except Unanswerable:
        return Answer()
    headers = {name.lower(): value for name, value in pairs(payload.get("headers"))}
    encoding = None if payload.get("decoded") is True else headers.get("content-encoding")
    plain = decoded(body, encoding)
    answer = Answer() if plain is None else read_answer(plain, headers.get("content-type"))
    return dataclasses.replace(answer, complete=_flag(payload.get("complete")))


def _flag(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def pairs(value: Json) -> Iterator[tuple[str, str]]:
    for pair in value if isinstance(value, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])

"""What was recorded on the wire, read back: each attempt of each model call, exactly as it went."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.answers import Answer
from otel_agentrec.nodes.exchange import ModelRequest, RecordedResponse, SpanRef
from otel_agentrec.nodes.fold import View, fold
from otel_agentrec.nodes.source import Place
from otel_agentrec.nodes.wire_payload import answer_in, pairs
from otel_agentrec.nodes.wirebody import (
    Unanswerable,
    read_chunks,
    read_request,
    read_response,
    request_bytes,
)
from otel_agentrec.nodes.wires import Wire

__all__ = ["Unanswerable", "WireRecord", "read_wire", "record_of_wire", "wire_of"]

Json = Any


@dataclass(frozen=True)
class WireRecord:
    """One attempt of one model call.

    ``span``: the span whose record it belongs to, by ``rung``; with ``none`` either a span of ours, made for it, or the one that
    was current, and no record.
    ``attempt`` counts from 1 within ``call``, the wire id of the first attempt. ``key``: the content key that was stored, if
    any. ``payload``: the event's own, all content in it.
    """

    wire_id: str
    api: str
    span: SpanRef | None
    rung: str | None
    attempt: int
    call: str
    status: int | None
    complete: bool | None
    key: str | None
    flags: tuple[str, ...]
    place: Place
    payload: Mapping[str, Json] = field(repr=False, default_factory=dict)

    @property
    def body(self) -> Json:
        """The request's body as JSON (see :func:`read_request`). Raises Unanswerable."""
        return read_request(self.payload.get("request"))

    @property
    def request(self) -> ModelRequest:
        """The request; its body is the same JSON, spelt in our way. Raises Unanswerable: the body is not there."""
        told = self.payload
        return ModelRequest(
            method=str(told.get("method") or ""),
            host=str(told.get("host") or ""),
            path=str(told.get("path") or ""),
            query=tuple(map(str, told.get("query") or ())),
            headers=dict(pairs(told.get("requestHeaders"))),
            body=request_bytes(told.get("request")),
            api=self.api,
            library=str(told.get("library") or ""),
            started_ns=_whole(told.get("startedAt")),
            span=self.span,
        )

    @cached_property
    def response(self) -> RecordedResponse:
        """The response, byte for byte and chunk by chunk. Raises Unanswerable: its bytes are not there."""
        told = self.payload
        body = read_response(told.get("response"))
        error = told.get("error")
        return RecordedResponse(
            status=self.status,
            headers=tuple(pairs(told.get("headers"))),
            chunks=tuple(read_chunks(told.get("chunks"), body)),
            end=str(told.get("end") or "eof"),
            error=dict(error) if isinstance(error, dict) else None,
            decoded=told.get("decoded") is True,
        )

    @property
    def answer(self) -> Answer:
        """What the response says; empty where its bytes are not there."""
        return answer_in(self.payload)


def read_wire(recording: str | os.PathLike[str] | Recording, run: str | None = None) -> Iterator[WireRecord]:
    """The attempts of model calls in a recording, in the order in which their requests left.

    Args:
        recording: a recording directory, a single stream file, or an open Recording.
        run: only attempts of calls of the run with this id.

    Raises:
        RecordingNotFound: there is no recording at that path.
        RecordingUnreadable: the path can't be read as a recording.
    """
    opened = recording if isinstance(recording, Recording) else Recording(recording)
    return wire_of(fold(opened), run)


def wire_of(view: View, run: str | None = None) -> Iterator[WireRecord]:
    """As :func:`read_wire`, of a recording that was folded."""
    for wire in view.wires:
        if run is not None and view.run_of_wire(wire) != run:
            continue
        yield record_of_wire(view, wire)


def record_of_wire(view: View, wire: Wire) -> WireRecord:
    """One attempt with all its content."""
    event = view.event(wire.place)
    span, trace, rung = wire.span, wire.trace, wire.rung
    told = event.payload
    status, attempt = told.get("status"), told.get("attempt")
    wire_id = str(told.get("wireId"))
    return WireRecord(
        wire_id=wire_id,
        api=str(told.get("api") or ""),
        span=SpanRef(trace or "", span) if span else None,
        rung=rung,
        attempt=attempt if type(attempt) is int else 1,
        call=str(told.get("call") or wire_id),
        status=status if type(status) is int else None,
        complete=told.get("complete") if isinstance(told.get("complete"), bool) else None,
        key=told.get("key") if isinstance(told.get("key"), str) else None,
        flags=tuple(map(str, told.get("flags") or ())),
        place=Place(event.stream, event.seq),
        payload=told,
    )


def _whole(value: Json) -> int:
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 40 else 0

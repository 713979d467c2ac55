"""What was seen on the wire: a provider's own request and response (design: 9-wire)."""

from __future__ import annotations

from otel_agentrec.journal.events.base import Json, Payload, event

__all__ = ["WireRecorded"]


@event(
    "WIRE_RECORDED",
    ignorable=True,
    content={
        "request.messages": "list",
        "request.input": "list",
        "request.contents": "list",
        "request.system": "list",
        "request.tools": "list",
        "request.rest": "one",
        "response": "one",
        "error.message": "one",
    },
)
class WireRecorded(Payload):
    """One attempt of one model call, written when its response body ended.

    ``span_id``: the span that was current when the request left. ``rung``: how sure it is that this span made the call
    (``exact``, ``header``, ``ancestor``, ``response_id``, ``content``, ``none``). ``attempt``: from 1.
    ``started_at``/``ended_at``: ns since the epoch, decimal strings. ``request``: the parsed body, its long lists apart,
    all else under ``rest``. ``headers``: the response's, allow-listed. ``response``: the body as it came, base64 of
    gzip; ``chunks``: ``[[ms since the request, bytes], …]`` of it. ``end``: ``eof``, ``closed``, ``error``, ``gone``.
    ``complete``: the content says that the answer is whole.
    """

    wire_id: str
    api: str
    library: str
    method: str
    path: str
    attempt: int = 1
    span_id: str | None = None
    rung: str | None = None
    query: list[str] | None = None
    request: dict[str, Json] | None = None
    key: str | None = None
    status: int | None = None
    headers: dict[str, str] | None = None
    response: Json = None
    chunks: list[list[int]] | None = None
    end: str | None = None
    complete: bool | None = None
    error: dict[str, Json] | None = None
    started_at: str | None = None
    ended_at: str | None = None
    call: str | None = None
    """The wire id of the first attempt of the same call."""
    flags: list[str] | None = None

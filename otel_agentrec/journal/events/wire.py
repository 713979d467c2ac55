"""What was seen on the wire: a provider's own request and response (docs/wire.md)."""

from __future__ import annotations

from otel_agentrec.journal.events.base import Json, Payload, event

__all__ = ["WireRecorded"]


@event(
    "WIRE_RECORDED",
    ignorable=True,
    content={
        "request.contents": "list",
        "request.input": "list",
        "request.instructions": "list",
        "request.messages": "list",
        "request.parts": "list",
        "request.rest": "list",
        "request.system": "list",
        "request.systemInstruction": "list",
        "request.tools": "list",
        "request.body": "one",
        "response": "one",
        "error.message": "one",
    },
)
class WireRecorded(Payload):
    """One attempt of one model call, written when its response body ended.

    ``rung``: how sure it is that ``span_id`` made the call (``exact``, ``header``, ``ancestor``, ``response_id``,
    ``content``, ``none``). Without it ``span_id`` is the span that was current when the request left, and a NODE_AMENDED that
    names the ``wire_id`` tells more. ``started_at``/``ended_at``: ns since the epoch, decimal strings. ``request``: the body
    (see ``nodes/wirebody.py``). ``request_headers``, ``headers``: allow-listed, ``[[name, value], …]``. ``response``: the
    body as it came, ``{text}``, ``{gz}`` (base64 of gzip) or ``{base64}``, or what was left of it by redaction,
    ``{redacted}``. ``chunks``: ``[[ms since the request, bytes], …]`` of it, or ``{gz}`` of that. ``end``: ``eof``,
    ``closed``, ``error``, ``gone``. ``complete``: the content says that the answer is whole. ``decoded``: the body is without
    its content-encoding. ``flags``: ``answered`` (nothing real happened), ``redacted``, ``withheld``, ``unread``.
    """

    wire_id: str
    api: str
    library: str
    method: str
    path: str
    host: str | None = None
    attempt: int = 1
    call: str | None = None
    """The wire id of the first attempt of the same call."""
    span_id: str | None = None
    rung: str | None = None
    query: list[str] | None = None
    request_headers: list[list[str]] | None = None
    request: dict[str, Json] | None = None
    request_bytes: int | None = None
    """Length of the request body as it left."""
    key: str | None = None
    status: int | None = None
    headers: list[list[str]] | None = None
    response: Json = None
    bytes_: int | None = None
    """Length of the response body as it came."""
    chunks: Json = None
    decoded: bool | None = None
    end: str | None = None
    complete: bool | None = None
    error: dict[str, Json] | None = None
    started_at: str | None = None
    ended_at: str | None = None
    flags: list[str] | None = None
    answered_from: dict[str, Json] | None = None
    """Of an answer from a recording: ``{run, wireId, stream, seq, span?}`` of the recorded one."""

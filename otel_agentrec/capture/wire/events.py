"""An attempt as its WIRE_RECORDED event, without its secrets."""

from __future__ import annotations

import functools
from typing import Any

from otel_agentrec.capture.wire.calls import Attempt
from otel_agentrec.capture.wire.hidden import joined_texts, looked_at, plain_pieces
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.journal.gate import Gate
from otel_agentrec.nodes.answers import Answer, decoded, read_answer
from otel_agentrec.nodes.exchange import Exchange
from otel_agentrec.nodes.wirebody import kept_chunks, kept_response

__all__ = ["payload_of", "read_exchange"]

Json = Any
_NOT_KEPT = ("set-cookie", "set-cookie2", "authorization", "proxy-authenticate", "www-authenticate", "date")
"""Response headers that are left out whoever handed them on."""


def read_exchange(exchange: Exchange) -> tuple[bytes, bytes | None, Answer]:
    """-> (the body as it came, the body without its content-encoding, what it says)."""
    response = exchange.response
    body = b"".join(data for _, data in response.chunks)
    headers = {name.lower(): value for name, value in response.headers}
    encoding = None if response.decoded else headers.get("content-encoding")
    plain = decoded(body, encoding)
    if plain is None:
        return body, None, Answer()
    length = headers.get("content-length", "")
    answer = read_answer(
        plain,
        headers.get("content-type"),
        length=int(length) if length.isdecimal() and not encoding and len(length) < 16 else None,
        at_end=response.end == "eof" and response.error is None,
    )
    return body, plain, answer


def payload_of(
    attempt: Attempt, request: dict[str, Json], body: bytes, plain: bytes | None, gate: Gate, key: str | None
) -> dict[str, Json]:
    """The payload of an attempt that ended; absent keys left out.

    Args:
        request: its body in parts (:func:`~otel_agentrec.nodes.wirebody.kept_request`).
        body: the response's, as it came; ``plain``: decoded, None where nobody here can.
    """
    exchange, asked = attempt.exchange, attempt.request
    assert exchange is not None
    came, flags = exchange.response, ["answered"] if exchange.answered else []
    response: Json = None
    if body:
        response, flag = _response(body, plain, attempt.answer, gate)
        flags += [flag] if flag else []
    told: dict[str, Json] = {
        "wireId": attempt.wire_id,
        "api": asked.api,
        "library": asked.library,
        "method": asked.method,
        "host": asked.host or None,
        "path": asked.path,
        "query": list(asked.query) or None,
        "attempt": attempt.number,
        "call": attempt.first.wire_id if attempt.before is not None else None,
        "spanId": attempt.owner.span_id if attempt.owner is not None else asked.span.span_id if asked.span else None,
        "rung": attempt.rung,
        "requestHeaders": [[name, value] for name, value in asked.headers.items()] or None,
        "request": looked_at(request, asked.headers.get("content-encoding"), gate.redactor),
        "requestBytes": len(asked.body),
        "key": key,
        "status": came.status,
        "headers": [[name, value] for name, value in came.headers if name.lower() not in _NOT_KEPT] or None,
        "response": response,
        "bytes": len(body),
        "chunks": kept_chunks(came.chunks) if came.chunks else None,
        "decoded": True if came.decoded else None,
        "end": came.end,
        "complete": attempt.answer.complete,
        "error": dict(came.error) if came.error is not None else None,
        "startedAt": str(asked.started_ns),
        "endedAt": str(exchange.ended_ns),
        "flags": flags or None,
        "answeredFrom": dict(came.origin) if came.origin is not None else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _response(body: bytes, plain: bytes | None, answer: Answer, gate: Gate) -> tuple[Json, str | None]:
    """-> (what is kept of a body, flag). Where a secret was in it the exact bytes are given up."""
    if plain is None:
        if gate.redactor.is_off:
            return kept_response(body), None
        return None, "withheld"  # nobody can look whether there is a secret in it
    held = answer.payload if answer.payload is not None else _text_of(plain)
    if gate.redactor.is_off:
        return kept_response(body), None
    pieces = answer.pieces if answer.payload is not None or not answer.streamed else _all_pieces(plain, answer)
    joined = joined_texts(pieces)
    if _is_clean(plain, answer, joined, gate):
        return kept_response(body), None
    cleaned = functools.partial(_cleaned, gate)
    whole = cleaned(held)
    text = _text_of(plain)
    is_split = any(cleaned(texts) != texts for texts in joined)
    if (
        not is_split
        and whole == held
        and cleaned(text) == text
        and all(cleaned(piece) == piece for piece in answer.pieces)
    ):
        return kept_response(body), None
    if is_split and (isinstance(held, str) or any(cleaned(t) != t for t in joined_texts([whole], flat=True))):
        return None, "withheld"  # its pieces stand in what would be kept
    return {"redacted": whole}, "redacted"


def _all_pieces(plain: bytes, answer: Answer) -> list[Json]:
    return [*answer.pieces, *plain_pieces(plain)]


def _is_clean(plain: bytes, answer: Answer, joined: list[str], gate: Gate) -> bool:
    """Whether one look tells that there is nothing to redact: in the text, in its values, in what its pieces join to."""
    if not gate.redactor.per_element or not gate.redactor.is_clean(plain):
        return False
    values = canonical_any([answer.payload, *answer.pieces, *joined])
    return gate.redactor.is_clean(values)


def _cleaned(gate: Gate, value: Json) -> Json:
    if not gate.redactor.per_element:
        value = gate.redactor.record("WIRE_RECORDED", {"response": value}).get("response")
    return gate.redactor.value(value, ("response",))


def _text_of(plain: bytes) -> str:
    return plain.decode("utf-8", "replace")

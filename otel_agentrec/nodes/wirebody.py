"""Bodies of requests and responses, as a WIRE_RECORDED event holds them.

A request that is a JSON object is kept by its parts: each long list (``messages``, ``tools`` …) as a list, all else as the one
element of ``rest``. So what was sent before, which is nearly all of a growing chat history, is only pointed at. A part that
is no list stands as the one element of one and is named in ``single``. Other bodies: ``parts`` of a multipart one
(``[{name, filename?, type?, text | base64}]``), else ``body``: ``{json}``, ``{text}`` or ``{base64}``.
"""

from __future__ import annotations

import base64
import email.parser
import email.policy
import gzip
import zlib
from collections.abc import Sequence
from typing import Any

import orjson

from otel_agentrec.journal.jsontext import parse

__all__ = [
    "Unanswerable",
    "kept_chunks",
    "kept_request",
    "kept_response",
    "read_chunks",
    "read_request",
    "read_response",
    "request_bytes",
]

Json = Any

LISTS = ("messages", "input", "contents", "system", "instructions", "systemInstruction", "tools")
"""Keys of a request that are kept apart."""
SHORT = 128
"""A text of fewer characters stays with the rest."""
FEW = 24
"""So many chunks are told one by one; more are packed."""
MAX_BODY = 64 << 20
"""Most bytes that a packed body may come to; more is hostile."""


class Unanswerable(ValueError):
    """The recording does not hold the bytes of this body (any more)."""


# --- requests -----------------------------------------------------------------------------------------------------------


def kept_request(body: bytes, content_type: str | None) -> tuple[dict[str, Json], Json]:
    """-> (the ``request`` of the event, the parsed body; None when it is no JSON)."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind.startswith("multipart/"):
        parts = _multipart(body, content_type or "")
        if parts is not None:
            return {"parts": parts}, None
    try:
        value = parse(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return {"body": _plain(body)}, None
    if not isinstance(value, dict):
        return {"body": {"json": value}}, value
    request: dict[str, Json] = {}
    single: list[str] = []
    rest: dict[str, Json] = {}
    for key, held in value.items():
        if key not in LISTS or held is None or (isinstance(held, str) and len(held) < SHORT):
            rest[key] = held
        elif isinstance(held, list):
            request[key] = held
        else:
            request[key] = [held]
            single.append(key)
    request["rest"] = [rest]
    if single:
        request["single"] = single
    return request, value


def read_request(request: Json) -> Json:
    """The JSON value of a request body; of a multipart one its parts; of any other ``{text}`` or ``{base64}``.

    Raises:
        Unanswerable: parts of it are not there any more.
    """
    if not isinstance(request, dict):
        raise Unanswerable("the request was not recorded")
    if "parts" in request or "body" in request:
        held = request.get("body", request)
        held = held["json"] if isinstance(held, dict) and "json" in held else held
        _check(held)
        return held
    single = request.get("single")
    value: dict[str, Json] = {}
    for key, held in request.items():
        if key == "single":
            continue
        _check(held)
        if not isinstance(held, list) or ((key == "rest" or key in (single or ())) and len(held) != 1):
            raise Unanswerable("the request was not recorded")
        if key == "rest":
            if isinstance(held[0], dict):
                value.update(held[0])
        else:
            value[key] = held[0] if key in (single or ()) else held
    return value


def request_bytes(request: Json) -> bytes:
    """A request body as bytes; of JSON, the same value, spelt in our way.

    Raises:
        Unanswerable: it is not there any more, or is made of parts.
    """
    value = read_request(request)
    held = request.get("body")
    if isinstance(held, dict) and "json" not in held:
        if isinstance(held.get("text"), str):
            return str(held["text"]).encode("utf-8", "surrogatepass")
        return _from_base64(held.get("base64"))
    if "parts" in request:
        raise Unanswerable("the body is made of parts")
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _check(value: Json) -> None:
    """Raises Unanswerable when any of it was not recorded, erased or is damaged.

    A program's own value that only looks so counts, too: that costs one real call instead of a wrong answer.
    """
    stack = [value]
    while stack:
        at = stack.pop()
        if isinstance(at, dict):
            if len(at) == 1 and next(iter(at)) in ("$off", "$erased", "$missing", "$cut"):
                raise Unanswerable(f"the content is not there ({next(iter(at))[1:]})")
            stack.extend(at.values())
        elif isinstance(at, list):
            stack.extend(at)


def _plain(body: bytes) -> dict[str, str]:
    try:
        return {"text": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}


def _multipart(body: bytes, content_type: str) -> list[Json] | None:
    head = b"Content-Type: " + content_type.encode("latin-1", "replace") + b"\r\n\r\n"
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    if not message.is_multipart():
        return None
    parts: list[Json] = []
    for part in message.iter_parts():
        told: dict[str, Json] = {
            "name": part.get_param("name", header="content-disposition"),
            "filename": part.get_filename(),
            "type": part.get("content-type"),
        }
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        parts.append({**{k: str(v) for k, v in told.items() if v is not None}, **_plain(data)})
    return parts


# --- responses ----------------------------------------------------------------------------------------------------------


def kept_response(body: bytes) -> dict[str, str]:
    """A body in the smallest of its forms."""
    packed = gzip.compress(body, 6, mtime=0) if len(body) > 64 else body
    coded = 4 * -(-len(packed) // 3)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    if text is not None and len(orjson.dumps(text)) <= coded + 16:
        return {"text": text}
    if len(packed) < len(body):
        # without a time of its own in the header: equal bodies give equal bytes
        return {"gz": base64.b64encode(packed).decode("ascii")}
    return {"base64": base64.b64encode(body).decode("ascii")}


def read_response(response: Json) -> bytes:
    """The bytes of a body.

    Raises:
        Unanswerable: it is not there any more, or was redacted.
    """
    if response is None:
        return b""
    _check(response)
    if isinstance(response, dict):
        if isinstance(response.get("text"), str):
            return str(response["text"]).encode("utf-8", "surrogatepass")
        if "gz" in response:
            return _unpacked(response["gz"])
        if "base64" in response:
            return _from_base64(response["base64"])
        if "redacted" in response:
            raise Unanswerable("a secret was taken out of the body")
    raise Unanswerable("the body is not there")


def kept_chunks(chunks: Sequence[tuple[int, bytes]]) -> Json:
    """When each chunk came and its length. Many are packed, times told by their differences.

    Args:
        chunks: (ns since the request, bytes).
    """
    table = [[at // 1_000_000, len(data)] for at, data in chunks]
    if len(table) <= FEW:
        return table
    before = 0
    steps: list[list[int]] = []
    for at, size in table:
        steps.append([at - before, size])
        before = at
    return {"gz": base64.b64encode(gzip.compress(orjson.dumps(steps), 9, mtime=0)).decode("ascii")}


def read_chunks(chunks: Json, body: bytes) -> list[tuple[int, bytes]]:
    """The chunks of a body, (ns since the request, bytes).

    Raises:
        Unanswerable: they don't make up the body.
    """
    if chunks is None:
        return [(0, body)] if body else []
    table = chunks
    try:
        if isinstance(chunks, dict):
            at, table = 0, []
            for step, size in orjson.loads(_unpacked(chunks.get("gz"))):
                at += step
                table.append([at, size])
        out: list[tuple[int, bytes]] = []
        start = 0
        for ms, size in table:
            if size < 0 or start + size > len(body):
                raise Unanswerable("the chunks are no chunks of the body")
            out.append((int(ms) * 1_000_000, body[start : start + size]))
            start += size
    except (ValueError, TypeError) as e:
        raise Unanswerable("the table of chunks can't be read") from e
    if start != len(body):
        raise Unanswerable("the chunks are no chunks of the body")
    return out


def _from_base64(text: Json) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as e:
        raise Unanswerable("the body is damaged") from e


def _unpacked(text: Json) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(_from_base64(text), MAX_BODY)
    except zlib.error as e:
        raise Unanswerable("the body is damaged") from e
    if not unpacker.eof:
        raise Unanswerable("the body is damaged")
    return data

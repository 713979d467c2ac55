"""Where a secret of a body lies that is in none of its values: over the pieces of a stream, or in what is no text.

Whoever reads a recording can put a stream together, and take base64 and gzip apart; so that is looked at here as well.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any

from otel_agentrec.nodes.answers import decoded
from otel_agentrec.nodes.answers.sse import read_events
from otel_agentrec.redaction import Redactor
from otel_agentrec.redaction.marker import withheld

__all__ = ["joined_texts", "looked_at", "plain_pieces"]

Json = Any
_SAME = frozenset(
    {
        *("id", "object", "model", "type", "role", "created", "system_fingerprint", "service_tier", "finish_reason"),
        *(
            "item_id",
            "event_id",
            "response_id",
            "obfuscation",
            "p",
            "status",
            "event_type",
            "modelVersion",
            "responseId",
        ),
    }
)
"""Members that say the same in every piece, or pad it: nothing goes on in them from one piece to the next."""
_READABLE = re.compile(rb"[\t\n\r\x20-\x7e]{16,}")
_GZIP = b"\x1f\x8b"


def joined_texts(pieces: Iterable[Json], *, flat: bool = False) -> list[str]:
    """What the texts at one place of all pieces make together, where there are several.

    Args:
        flat: elements of lists stand at the same place, whichever they are.
    """
    found: dict[tuple[Json, ...], list[str]] = {}
    for piece in pieces:
        todo: list[tuple[tuple[Json, ...], Json]] = [((), piece)]
        while todo:
            at, value = todo.pop()
            if isinstance(value, str):
                found.setdefault(at, []).append(value)
            elif isinstance(value, dict):
                if not flat:
                    at = (*at, *(held for key, held in value.items() if key.endswith("index") and type(held) is int))
                todo += [((*at, key), held) for key, held in value.items() if key not in _SAME]
            elif isinstance(value, list):
                todo += [
                    ((*at, "*" if flat or _is_numbered(held) else n), held) for n, held in reversed([*enumerate(value)])
                ]
    return ["".join(texts) for texts in found.values() if len(texts) > 1]


def _is_numbered(value: Json) -> bool:
    return isinstance(value, dict) and type(value.get("index")) is int


def plain_pieces(body: bytes) -> list[str]:
    """The data of a stream's events that are no JSON objects."""
    return [event.data for event in read_events(body) if event.data.lstrip()[:1] not in ("{", "[")]


def looked_at(request: dict[str, Json], encoding: str | None, redactor: Redactor) -> dict[str, Json]:
    """A kept request whose parts that are no text hold no secret either; what holds one is withheld.

    Args:
        encoding: the content-encoding of the request.
    """
    if redactor.is_off:
        return request
    if "parts" in request:
        return {**request, "parts": [_binary(part, encoding, redactor) for part in request["parts"]]}
    return {**request, "body": _binary(request["body"], encoding, redactor)} if "body" in request else request


def _binary(held: Json, encoding: str | None, redactor: Redactor) -> Json:
    if not isinstance(held, dict) or not isinstance(held.get("base64"), str):
        return held
    data = base64.b64decode(held["base64"])
    plain = decoded(data, encoding or ("gzip" if data.startswith(_GZIP) else None))
    if plain is not None:
        runs = [*_READABLE.findall(plain), *(_READABLE.findall(plain.replace(b"\0", b"")) if b"\0" in plain else ())]
        text = b"\n".join(runs).decode("ascii")
        if redactor.text(text) == text:
            return held
    return {**{key: value for key, value in held.items() if key != "base64"}, "text": withheld()}

"""A secret that stands in no value of a body: it lies over the pieces of a stream, or in what is no text."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.capture.wire.hidden import joined_texts, looked_at
from otel_agentrec.nodes.exchange import RecordedResponse
from otel_agentrec.nodes.wirebody import Unanswerable, kept_request
from otel_agentrec.redaction import Redactor
from tests.capture.wire.making import EVENTS, Wired, body_of
from tests.redaction.secrets import SHAPED

Json = Any
SECRET = SHAPED["openai project"]
HALVES = SECRET[:9], SECRET[9:]


def delta(**told: Json) -> Json:
    return {"id": "c1", "choices": [{"index": 0, "delta": told}]}


STREAMS: dict[str, Any] = {
    "content in parts": lambda half: delta(content=[{"type": "text", "text": half}]),
    "thinking in parts": lambda half: delta(
        content=[{"type": "thinking", "thinking": [{"type": "text", "text": half}]}]
    ),
    "reasoning details": lambda half: delta(reasoning_details=[{"type": "reasoning.text", "text": half}]),
    "arguments without an index": lambda half: delta(tool_calls=[{"function": {"name": "f", "arguments": half}}]),
    "an unknown delta": lambda half: {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "new_delta", "content": half},
    },
    "a summary that the end does not repeat": lambda half: {
        "type": "response.reasoning_summary_text.delta",
        "output_index": 0,
        "summary_index": 0,
        "delta": half,
    },
    "code": lambda half: {"candidates": [{"content": {"parts": [{"executableCode": {"code": half}}]}}]},
    "an API that nobody knows": lambda half: {"type": "content-delta", "delta": {"message": {"text": half}}},
    "no JSON": lambda half: half,
}


def stream(values: Sequence[Json]) -> RecordedResponse:
    told = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return RecordedResponse(200, EVENTS, tuple((0, f"data: {text}\n\n".encode()) for text in told), "closed")


@pytest.mark.parametrize("kind", STREAMS)
def test_a_secret_over_two_pieces_reaches_no_file(live: Wired, kind: str) -> None:
    live.call(body_of("Hi?", stream=True), stream([STREAMS[kind](half) for half in HALVES]))
    (wire,) = live.wires()
    assert {"redacted", "withheld"} & {*wire.flags}
    with pytest.raises(Unanswerable):
        _ = wire.response
    assert HALVES[1] not in everything_in(live.path)


@pytest.mark.parametrize("kind", STREAMS)
def test_an_innocent_stream_is_kept_byte_for_byte(live: Wired, kind: str) -> None:
    response = stream([STREAMS[kind](half) for half in ("Is `sk-` how ", "keys begin? Yes.")])
    live.call(body_of("Hi?", stream=True), response)
    (wire,) = live.wires()
    assert (wire.flags, wire.response.chunks) == ((), response.chunks)


def test_texts_of_different_places_are_not_joined() -> None:
    pieces = [
        {"index": 0, "delta": {"text": "a"}},
        {"index": 1, "delta": {"text": "b"}},
        {"index": 0, "delta": {"text": "c"}},
        {"choices": [{"index": 1, "text": "d"}]},
        {"choices": [{"index": 0, "text": "x"}, {"index": 1, "text": "e"}]},
    ]
    assert sorted(joined_texts(pieces)) == ["ac", "de"]
    assert sorted(joined_texts(pieces, flat=True)) == ["abc", "dxe"]


@pytest.mark.parametrize(
    ("body", "kind", "encoding"),
    [
        (gzip.compress(json.dumps({"x": SECRET}).encode()), "application/json", "gzip"),
        (gzip.compress(json.dumps({"x": SECRET}).encode()), "application/json", None),
        (b"\xff" + SECRET.encode(), "application/json", None),
        (json.dumps({"x": SECRET}).encode("utf-16"), "application/json", None),
        (b'--B\r\nContent-Disposition: form-data; name="f"\r\n\r\n\xff' + SECRET.encode() + b"\r\n--B--", "multipart/form-data; boundary=B", None),
        (b"nobody here can read it", "application/json", "exi"),
    ],
    ids=["gzip", "gzip that is not told", "not UTF-8", "UTF-16", "multipart", "an unknown encoding"],
)  # fmt: skip
def test_a_request_that_is_no_text_hides_no_secret(body: bytes, kind: str, encoding: str | None) -> None:
    kept = looked_at(kept_request(body if encoding != "exi" else b"\xff" + body, kind)[0], encoding, Redactor())
    assert "base64" not in json.dumps(kept)
    assert "REDACTED(withheld)" in json.dumps(kept)


def test_a_file_without_a_secret_is_kept() -> None:
    sound = bytes(range(256)) * 40
    kept = looked_at(kept_request(sound, "audio/wav")[0], None, Redactor())
    assert base64.b64decode(kept["body"]["base64"]) == sound


def everything_in(path: Path) -> str:
    """All files of a recording, what is packed in them unpacked."""
    texts = []
    for file in path.rglob("*.jsonl"):
        text = file.read_text()
        texts.append(text)
        for line in text.splitlines():
            todo = [json.loads(line)]
            while todo:
                value = todo.pop()
                if isinstance(value, dict):
                    if isinstance(value.get("gz"), str):
                        texts.append(gzip.decompress(base64.b64decode(value["gz"])).decode("utf-8", "replace"))
                    todo += value.values()
                elif isinstance(value, list):
                    todo += value
    return "\n".join(texts)

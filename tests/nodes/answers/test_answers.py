"""A provider's response: whether it is whole, and its payload merged over the pieces of a stream."""

from __future__ import annotations

import base64
import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.nodes.answers import decoded, read_answer
from otel_agentrec.nodes.answers.frames import read_frames
from otel_agentrec.nodes.answers.sse import read_events
from tests.nodes.answers.streams import CHAT, EVENTS, GEMINI, GEMINI_WHOLE, MESSAGE, MESSAGES, STREAMS, frame, sse


@pytest.mark.parametrize("api", STREAMS)
def test_a_stream_is_merged_into_the_answer_without_streaming(api: str) -> None:
    kind, pieces, whole = STREAMS[api]
    answer = read_answer(b"".join(pieces), kind)
    assert answer.payload == whole
    assert (answer.complete, answer.streamed) == (True, True)


@pytest.mark.parametrize("api", STREAMS)
def test_a_stream_that_was_cut_is_not_complete_and_keeps_what_came(api: str) -> None:
    kind, pieces, _ = STREAMS[api]
    last = {"responses": 1, "bedrock": 2, "anthropic": 1, "chat": 3, "gemini": 1, "ollama": 1}[api]
    for upto in range(1, len(pieces) - last + 1):
        for cut in (b"", pieces[upto][: len(pieces[upto]) // 2] if upto < len(pieces) else b""):
            answer = read_answer(b"".join(pieces[:upto]) + cut, kind, at_end=False)
            assert answer.complete is False, upto
            assert isinstance(answer.payload, dict)


def test_closing_at_done_is_complete_and_without_it_is_not() -> None:
    body = sse(CHAT)
    assert read_answer(body, EVENTS, at_end=False).complete is False, "the connection was closed before [DONE]"
    assert read_answer(body, EVENTS, at_end=True).complete is True, "some servers send none"
    assert read_answer(body + b"data: [DONE]\n\n", EVENTS, at_end=False).complete is True


def test_a_chunk_with_only_usage_empties_nothing() -> None:
    payload = read_answer(sse(CHAT, done=True), EVENTS).payload
    assert payload["usage"] == {"total_tokens": 7}
    assert payload["choices"][0]["message"]["content"] == "Grüß dich."


def test_gemini_without_server_sent_events_is_an_array_of_chunks() -> None:
    answer = read_answer(json.dumps(GEMINI).encode(), "application/json")
    assert (answer.payload, answer.complete, answer.streamed) == (GEMINI_WHOLE, True, True)


def test_bedrock_holds_the_events_of_the_models_own_api() -> None:
    inner = [frame("chunk", {"bytes": base64.b64encode(json.dumps(e).encode()).decode()}) for e in MESSAGES]
    answer = read_answer(b"".join(inner), "application/vnd.amazon.eventstream")
    assert (answer.payload, answer.complete) == (MESSAGE, True)


@pytest.mark.parametrize(
    ("body", "length", "at_end", "complete"),
    [
        (b'{"a": 1}', None, True, True),
        (b'{"a": 1}', 8, False, True),
        (b'{"a": ', 8, True, False),
        (b'{"a": ', None, True, False),
        (b"<html>", 6, True, True),
        (b"<ht", 6, True, False),
    ],
    ids=["json", "json, closed", "cut", "cut at its end", "text", "cut text"],
)
def test_a_whole_body_is_complete(body: bytes, length: int | None, at_end: bool, complete: bool) -> None:
    assert read_answer(body, "application/json", length=length, at_end=at_end).complete is complete


@pytest.mark.parametrize("api", STREAMS)
@given(data=st.binary(max_size=400), where=st.floats(0, 1))
def test_no_body_whatever_makes_it_raise(api: str, data: bytes, where: float) -> None:
    kind, pieces, _ = STREAMS[api]
    body = b"".join(pieces)
    at = int(len(body) * where)
    for one in (data, body[:at] + data + body[at:]):
        read_answer(one, kind)
        read_answer(one, "application/json")


_EVENT = st.tuples(
    st.sampled_from(["", "a", "delta"]), st.lists(st.text("ab:{} \u2028é", max_size=6), min_size=1, max_size=3)
)


@given(
    st.lists(_EVENT, max_size=5),
    st.sampled_from(["\n", "\r", "\r\n"]),
    st.lists(st.sampled_from([":", ": hi", "id: 3", "retry"])),
)
def test_events_are_read_whatever_ends_their_lines_and_stands_between_them(
    events: list[tuple[str, list[str]]], end: str, noise: list[str]
) -> None:
    """Data of several lines, comments, fields that nobody needs, a mark of byte order."""
    lines = ["\ufeff"]
    for name, data in events:
        lines += [f"{line}{end}" for line in noise]
        lines += [f"event: {name}{end}"] if name else []
        lines += [f"data: {line}{end}" for line in data] + [end]
    read = read_events("".join(lines).encode())
    assert [(e.name, e.data) for e in read] == [(name, "\n".join(data)) for name, data in events]


@given(
    st.lists(
        st.tuples(st.text("abc", min_size=1, max_size=5), st.dictionaries(st.text(max_size=3), st.integers())),
        max_size=4,
    ),
    st.binary(max_size=30),
)
def test_frames_are_read_up_to_the_first_damaged_one(held: list[tuple[str, dict[str, int]]], rest: bytes) -> None:
    body = b"".join(frame(kind, payload) for kind, payload in held)
    frames = read_frames(body + rest)
    assert [(f.headers[":event-type"], json.loads(f.payload)) for f in frames] == held
    if held:
        damaged = bytearray(body)
        damaged[-1] ^= 1
        assert len(read_frames(bytes(damaged))) == len(held) - 1


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("GZIP, identity", gzip.compress)]
)
def test_encodings_are_undone_and_a_cut_one_gives_what_came(encoding: str, pack: object) -> None:
    body = bytes(range(256)) * 20
    packed = pack(body)  # type: ignore[operator]
    assert decoded(packed, encoding) == body
    assert body.startswith(decoded(packed[:-20], encoding) or b"-")


def test_a_body_that_grows_without_bound_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agentrec.nodes.answers.decoding.MAX_PLAIN", 1000)
    assert decoded(gzip.compress(bytes(1000)), "gzip") == bytes(1000)
    assert decoded(gzip.compress(bytes(100_000)), "gzip") is None


def test_what_nobody_can_decode_is_not_guessed() -> None:
    assert decoded(b"abc", "zip9") is None
    assert decoded(b"no gzip", "gzip") is None
    assert decoded(b"plain", None) == b"plain"

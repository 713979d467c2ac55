"""Bodies in a WIRE_RECORDED event: what goes in comes out."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_agentrec.nodes.wirebody import (
    LISTS,
    Unanswerable,
    kept_chunks,
    kept_request,
    kept_response,
    read_chunks,
    read_request,
    read_response,
    request_bytes,
)

_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
_BODY = st.dictionaries(
    st.sampled_from(LISTS) | st.text(max_size=4), _VALUE | st.text(min_size=130, max_size=140), max_size=6
)


def _looks_lost(value: object) -> bool:
    """Does what the journal puts where it holds no content stand anywhere in it, or what looks so?"""
    if isinstance(value, dict):
        return list(value) in (["$off"], ["$erased"], ["$missing"], ["$cut"]) or any(map(_looks_lost, value.values()))
    return isinstance(value, list) and any(map(_looks_lost, value))


@given(_BODY)
@example({"$off": "0" * 130})
@example({"$cut": None, "messages": []})
@example({"$erased": 1, "model": "m"})
@example({"tools": [{"x": {"$missing": {"bytes": 1}}}]})
def test_a_json_request_comes_back_as_the_same_value_or_not_at_all(body: dict[str, object]) -> None:
    """A request of which a part looks as if it was lost is sent once more rather than answered wrongly."""
    request, value = kept_request(json.dumps(body).encode(), "application/json")
    assert value == body
    if _looks_lost(request):
        for read in (read_request, request_bytes):
            with pytest.raises(Unanswerable):
                read(request)
    else:
        assert read_request(request) == body
        assert json.loads(request_bytes(request)) == body


@given(st.binary(max_size=80))
def test_any_other_request_comes_back_byte_for_byte(body: bytes) -> None:
    request, value = kept_request(body, "application/octet-stream")
    if value is None:
        assert request_bytes(request) == body


def test_what_was_sent_before_stands_in_lists_of_its_own() -> None:
    body = {"model": "m", "messages": [{"role": "user"}], "system": "You are " + "x" * 200, "tools": [{"name": "t"}]}
    request, _ = kept_request(json.dumps(body).encode(), None)
    assert request == {
        "messages": body["messages"],
        "system": [body["system"]],
        "tools": body["tools"],
        "rest": [{"model": "m"}],
        "single": ["system"],
    }


def test_a_multipart_request_is_kept_by_its_parts() -> None:
    body = (
        b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n'
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\ncontent-type: audio/wav\r\n\r\n\xff\x00\r\n--b--\r\n'
    )
    request, value = kept_request(body, "multipart/form-data; boundary=b")
    assert value is None
    assert request == {
        "parts": [
            {"name": "model", "text": "m"},
            {"name": "file", "filename": "a.bin", "type": "audio/wav", "base64": "/wA="},
        ]
    }
    assert read_request(request) == request
    with pytest.raises(Unanswerable):
        request_bytes(request)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=12)), max_size=80))
def test_chunks_come_back_as_they_came_however_the_bytes_were_split(chunks: list[tuple[int, bytes]]) -> None:
    chunks = [(ms * 1_000_000, data) for ms, data in sorted(chunks)]
    body = b"".join(data for _, data in chunks)
    assert read_response(json.loads(json.dumps(kept_response(body)))) == body
    assert read_chunks(json.loads(json.dumps(kept_chunks(chunks))), body) == chunks


@pytest.mark.parametrize(
    ("body", "form"),
    [(b"{}", "text"), (b'data: {"a": 1}\n\n' * 100, "gz"), (gzip.compress(bytes(range(256))), "base64")],
)
def test_a_response_takes_its_smallest_form(body: bytes, form: str) -> None:
    kept = kept_response(body)
    assert list(kept) == [form]
    assert read_response(kept) == body


@pytest.mark.parametrize(
    "damaged",
    [
        {"gz": "H4sI"},
        {"gz": "!"},
        {"base64": "a"},
        {"$erased": {"bytes": 3}},
        {"$off": {"bytes": 3}},
        {"redacted": {}},
        7,
        {},
    ],
)
def test_what_is_not_there_is_never_made_up(damaged: object) -> None:
    with pytest.raises(Unanswerable):
        read_response(damaged)


@pytest.mark.parametrize("table", [[[0, 2]], [[0, 4]], [[0, -1], [0, 4]], [["x", 3]], [[0, 3, 4]], {"gz": "x"}])
def test_chunks_that_are_not_those_of_the_body_are_refused(table: object) -> None:
    with pytest.raises(Unanswerable):
        read_chunks(table, b"abc")

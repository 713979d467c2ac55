"""Events and cells in lock-step: what is a reference, what memory it takes, what a very long line costs."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.journal import check
from otel_agentrec.journal.check import _references, check_stream
from otel_agentrec.journal.content import REFERENCE

from . import build

NAME = "20260101T000000Z-1-aa"
HEX = b"0123456789abcdef" * 4
pieces = st.sampled_from(
    [
        b'{"$c":"' + HEX + b'","bytes":12}',
        b'{"$c":"' + HEX.upper() + b'","bytes":12}',
        b'{"$c":"' + HEX[:-1] + b'","bytes":12}',
        b'{"$c":"' + HEX + b'","bytes":}',
        b'{"$c":"' + HEX + b'","bytes":1x}',
        b'{"$c":"' + HEX + b'","bytes":' + b"9" * 30 + b"}",
        b'{"$c":"',
        b'{"$list":[',
        b'{"$v":"$"}',
        b"$",
        b"$c",
        b"}",
        b"x" * 1000,
    ]
)


@given(st.lists(pieces, max_size=20).map(b"".join))
def test_the_quick_search_finds_the_references_of_the_format(e: bytes) -> None:
    assert _references(e) == REFERENCE.findall(e)


def test_a_check_takes_constant_memory(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    for k in range(10_000):
        stream.event("FINAL_OUTPUT", {"output": build.Cell(f"text {k}")} if k % 3 == 0 else {})
    path = stream.write()

    tracemalloc.start()
    found = check_stream(path, stream.content_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.size, found.cells, found.fault) == (10_001, 3_334, None)
    assert peak < 5 << 20, "two read buffers of 1 MiB, and a line"


def test_a_line_beyond_the_bound_is_a_fault_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MAX_LINE", 1 << 20)
    stream = build.Stream(tmp_path, NAME)
    stream.event("FINAL_OUTPUT", {"output": "x" * (20 << 20)})
    path = stream.write()
    del stream

    tracemalloc.start()
    found = check_stream(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.fault is not None and (found.fault.kind, found.fault.index, found.size) == ("frame", 1, 1)
    assert "longer than" in found.fault.hint
    assert peak < 8 << 20


def test_a_long_line_within_the_bound_is_checked(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    stream.event("FINAL_OUTPUT", {"output": "x" * (1 << 20), "more": build.Cell("y" * (2 << 20))})
    stream.close()
    assert check_stream(stream.write(), stream.content_path).fault is None
    stream.lines[1] = stream.lines[1].replace(b"xxxx", b"xxxz", 1)
    found = check_stream(stream.write(), stream.content_path)
    assert found.fault is not None and (found.fault.kind, found.fault.salvageable) == ("hash_mismatch", 1)


def test_only_the_bytes_that_were_there_are_checked(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    stream.event("FINAL_OUTPUT", {"output": 1})
    path = stream.write()
    first = len(stream.lines[0])
    assert check_stream(path, stop=first).size == 1
    found = check_stream(path, stop=first + 10)
    assert (found.size, found.torn, found.fault) == (1, 10, None)
    assert (found.end, found.head) == (first, stream.hashes[0])


def test_heads_after_any_number_of_lines_can_be_asked_for(tmp_path: Path) -> None:
    stream = build.Stream(tmp_path, NAME)
    for k in range(4):
        stream.event("DROPPED", {"count": k, "reason": "r"})
    found = check_stream(stream.write(), hashes=[0, 2, 5, 9])
    assert found.hashes == {0: build.GENESIS, 2: stream.hashes[1], 5: stream.hashes[4]}

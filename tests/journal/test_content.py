"""Cells: the line, the commitment, and what is left of an erased one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.journal.content import (
    REFERENCE,
    Cell,
    cell_line,
    commit,
    erased_line,
    is_inline,
    parse_cell,
    reference,
)

SALT = bytes(range(16))


@given(
    st.integers(0, 10**9), st.integers(0, 10**9), st.binary(min_size=16, max_size=16), st.text() | st.lists(st.floats())
)
def test_a_cell_line_is_parsed_to_what_it_was_made_of(index: int, seq: int, salt: bytes, value: object) -> None:
    data = canonical_any(value)
    line = cell_line(index, salt, seq, data)
    assert line.count(b"\n") == 1
    assert parse_cell(line[:-1]) == Cell(index, salt, seq, data)


def test_the_commitment_is_the_documented_hash() -> None:
    assert commit(SALT, b'"1234"') == hashlib.sha256(b"agentrec/content/1\0" + SALT + b'"1234"').hexdigest()


def test_an_erased_cell_keeps_its_length_and_place() -> None:
    line = cell_line(2, SALT, 31, b'"secret"')
    erased = erased_line(2, 31, len(line))
    assert len(erased) == len(line) and b"secret" not in erased
    assert parse_cell(erased[:-1]) == Cell(2, None, 31, b"")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b'{"i":00,"salt":"' + b"0" * 32 + b'","seq":1,"value":1}',
        b'{"i":0,"salt":"' + b"A" * 32 + b'","seq":1,"value":1}',
        b'{"i":0,"salt":"' + b"0" * 32 + b'","seq":1,"value":1} ',
        b'{"i":0, "salt":null,"seq":1}',
        b'{"i":-1,"salt":null,"seq":1}',
    ],
)
def test_what_is_no_cell_is_not_parsed(line: bytes) -> None:
    assert parse_cell(line) is None


@given(st.text())
def test_no_text_looks_like_a_reference(text: str) -> None:
    fake = '{"$c":"' + "0" * 64 + '","bytes":1}'
    for value in (text, fake + text, {fake: text}, {"$c": "0" * 64, "bytes": 1}, [{"a": {"$c": "0" * 64, "bytes": 1}}]):
        assert not REFERENCE.search(canonical_any(value))
    assert REFERENCE.search(canonical_any(text) + b'{"$c":"%s","bytes":7}' % (b"0" * 64))
    assert reference("0" * 64, 7) == {"$c": "0" * 64, "bytes": 7}


def test_a_mark_of_inline_content_is_found_across_blocks(tmp_path: Path) -> None:
    path, block = tmp_path / "stream.jsonl", 1 << 20
    for at in (0, block - 3, block, 2 * block - 1):
        path.write_bytes(b"x" * at + b'{"$v":1}')
        assert is_inline(path)
    path.write_bytes(b"x" * block + b'{"$$v":1}')
    assert not is_inline(path)
    assert not is_inline(tmp_path / "none")

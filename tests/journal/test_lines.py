"""Lines in bounded memory, and finding one by its number."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.journal import lines as lines_module
from otel_agentrec.journal.lines import bisect_lines, lines, open_lines


def number_of(line: bytes) -> int | None:
    return int(line[:4]) if line[:4].isdigit() and line.endswith(b"\n") else None


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 90), st.booleans()), max_size=40),
    st.integers(0, 62),
    st.data(),
)
def test_bisecting_finds_the_first_line_that_is_not_below(
    rows: list[tuple[int, int, bool]], wanted: int, data: st.DataObject
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    made = [b"%04d%s\n" % (n, b"x" * pad) if whole else b"j" * pad + b"\n" for n, pad, whole in rows]
    starts = [sum(map(len, made[:k])) for k in range(len(made) + 1)]
    expected = next((starts[k] for k, (n, _, whole) in enumerate(rows) if whole and n >= wanted), starts[-1])
    low = data.draw(st.sampled_from([s for s in starts if s <= expected]))
    file = io.BytesIO(b"".join(made))
    assert bisect_lines(file, starts[-1], wanted, number_of, low) == expected


def test_a_line_is_cut_where_the_file_ended_when_it_was_looked_at() -> None:
    file = io.BytesIO(b"one\ntwo\nthree\n")
    assert list(lines(file, 0, 10)) == [(0, b"one\n"), (4, b"two\n"), (8, b"th")]


def test_a_line_beyond_the_bound_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "MAX_LINE", 4)
    assert list(lines(io.BytesIO(b"abcdefg\nh\n"))) == [(0, b"abcd"), (4, b"efg\n"), (8, b"h\n")]


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordingUnreadable, match="not a regular file") as caught:
        open_lines(tmp_path / "pipe")
    assert caught.value.hint
    with pytest.raises(RecordingUnreadable, match="is a directory"):
        open_lines(tmp_path)
    with pytest.raises(RecordingUnreadable, match="No such file"):
        open_lines(tmp_path / "none")

"""Every single bit of a small recording matters: two streams with content, an index, and a DROPPED."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_agentrec.audit.verify import verify

from ..journal import build

FILES = ["index.jsonl", "20260101T000001Z-2-bb.jsonl", "20260101T000001Z-2-bb.content.jsonl"]


@pytest.mark.parametrize("file", FILES)
def test_flipped_bits_are_reported_with_file_and_line(tmp_path: Path, file: str) -> None:
    flip(tmp_path, file, every=37)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", FILES)
def test_every_flipped_bit_is_reported_with_file_and_line(tmp_path: Path, file: str) -> None:
    flip(tmp_path, file, every=1)


def flip(tmp_path: Path, file: str, every: int) -> None:
    build.small(tmp_path)
    assert verify(tmp_path).exit_code == 0
    path = tmp_path / file
    good = path.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(good) if byte == 10)]
    line = 0
    for at in range(len(good)):
        if at == starts[line + 1]:
            line += 1
        for bit in range(8):
            if (at * 8 + bit) % every:
                continue
            path.write_bytes(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :])
            report = verify(tmp_path)
            assert report.exit_code in (1, 3, 4), (at, bit)
            assert not report.is_valid or report.kind == "torn_tail", (at, bit)
            assert (report.file, report.index) == (file, line), (at, bit, report)
            assert report.hint
            assert report.end == "unproven"

"""Bits flipped in a recording whose stream went on in a second segment, made by the writer itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.journal.journal import Journal


def recording(where: Path) -> None:
    journal = Journal(where, origin="test", segment_bytes=900)
    for n in range(2):
        journal.append("NODE_RECORDED", {"type": "TOOL", "name": "t", "facts": {"result": f"result {n}"}})
    journal.drop(1, "test")
    journal.append("NODE_RECORDED", {"type": "TOOL", "name": "t", "facts": {"result": "the last"}})
    journal.seal()


@pytest.mark.parametrize("every", [41, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_flipped_bits_are_reported_with_their_file(tmp_path: Path, every: int) -> None:
    recording(tmp_path)
    files = sorted(tmp_path.glob("*.jsonl"))
    assert len(files) >= 5, "an index, two segments at least, and their content"
    assert verify(tmp_path).exit_code == 0
    flips = 0
    for path in files:
        good = path.read_bytes()
        for bit in range(len(good) * 8):
            flips += 1
            if flips % every:
                continue
            at = bit // 8
            path.write_bytes(good[:at] + bytes([good[at] ^ 1 << bit % 8]) + good[at + 1 :])
            report = verify(tmp_path)
            assert report.exit_code in (1, 3, 4), (path.name, at, bit % 8)
            assert report.file == path.name and report.hint, (path.name, at, bit % 8, report)
        path.write_bytes(good)
    assert flips > 10_000

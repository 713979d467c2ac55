"""kill -9 at random points, also beside a verifier: what ``on_end`` returned for is on disk, once, and the chain holds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from otel_agentrec import read_nodes
from otel_agentrec.audit.verify import verify

ROOT = Path(__file__).parents[2]
PROCESSES = 4
OPEN_END = {None, "unsealed_tail", "torn_tail"}


@pytest.mark.alone
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kills", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_every_span_that_ended_is_one_record_however_often_they_are_killed(tmp_path: Path, kills: int) -> None:
    recording, numbers = tmp_path / "rec", tmp_path / "numbers"
    each = [sys.executable, "-m", "tests.capture.storm", str(recording), str(numbers), str(kills // PROCESSES)]
    storm = [subprocess.Popen([*each, str(seed)], cwd=ROOT) for seed in range(PROCESSES)]
    beside = 0
    while any(p.poll() is None for p in storm):
        if recording.exists() and list(recording.glob("2*.jsonl")):
            report = verify(recording)
            assert report.is_valid and report.kind in OPEN_END, report.to_json()
            beside += 1
        time.sleep(0.1)
    assert [p.returncode for p in storm] == [0] * PROCESSES
    assert beside > 3

    printed = numbers.read_text().split()
    assert len(printed) == len(set(printed)) > 3 * kills
    report = verify(recording)
    assert report.is_valid and report.exit_code == 3, report.to_json()
    assert not [w for w in report.warnings if "stream_missing" in str(w)]
    ok = Counter(
        (r.response_id if r.node_type == "MODEL" else r.tool_call_id) for r in read_nodes(recording) if r.status == "ok"
    )
    assert [name for name in printed if ok[name] != 1] == []
    assert set(ok.values()) == {1}

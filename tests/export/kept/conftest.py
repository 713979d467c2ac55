"""A recording that its tests change: two closed streams, calls and tools in them, content beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...journal import build

ONE, TWO = "20260101T000000Z-1-aa", "20260101T000001Z-2-bb"


@pytest.fixture
def recording(tmp_path: Path) -> build.Recording:
    recording = build.Recording(tmp_path / "rec")
    for number, stream in enumerate([recording.open(ONE), recording.open(TWO)]):
        for k in range(1, 7):
            trace = {"traceId": f"{number + 1:032x}", "spanId": f"{k:016x}"}
            facts = {"model": "gpt-5", "outputTokens": k, "outputText": build.Cell(f"answer {k} — 东京")}
            told = {
                "type": "MODEL",
                "name": "chat",
                "facts": facts,
                "startedAt": str(10**18 + k),
                "endedAt": str(10**18 + 9),
            }
            stream.event("NODE_RECORDED", told, trace=trace)
    for stream in recording.streams:
        recording.close(stream)
    recording.write()
    return recording

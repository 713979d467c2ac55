"""OTLP/JSON as different exporters write it: hex or base64 ids, numbers or strings, names or enums, old and snake keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import ingest

from .case import expected, ingested, lines

TOOLS = expected("016")["tool"]


@pytest.mark.parametrize("want", TOOLS, ids=lambda w: w["dialect"])
def test_every_form_says_the_same(tmp_path: Path, want: dict[str, Any]) -> None:
    record = ingested("016", tmp_path).record(want["span_id"])
    assert record.trace_id == want["trace_id"]
    assert (record.tool_call_id, record.status) == (want["call_id"], want["status"])
    assert record.error == {"type": None, "message": want["status_message"]}
    assert record.attributes == {"demo.count": want["demo.count"]}
    assert record.duration_ms == want["duration_ms"]


def test_nothing_is_lost_and_nothing_quarantined(tmp_path: Path) -> None:
    case, right = ingested("016", tmp_path), expected("016")
    assert (len(case.records), case.report.quarantined_count) == (right["records"]["tool"], 0)


def test_a_line_that_fits_no_form_is_named_and_stops_nothing(tmp_path: Path) -> None:
    told = lines("016")
    path = tmp_path / "input.jsonl"
    path.write_text("\n".join([told[0], '{"spans": []}', told[1], told[2][:-9]]) + "\n")
    report = ingest(path, tmp_path / "rec")
    assert report.tools == 2
    assert [(q.file, q.line, q.reason.partition(":")[0]) for q in report.quarantined] == [
        (str(path), 2, "no OTLP"),
        (str(path), 4, "not JSON"),
    ]

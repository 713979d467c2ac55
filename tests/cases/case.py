"""A case of tests/data/cases, ingested."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel_agentrec import VerifyReport, ingest, verify
from otel_agentrec.capture.ingest import IngestReport
from otel_agentrec.journal.reader import Recording, read_events
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.runs import Run
from otel_agentrec.records import NodeIoRecord

DATA = Path(__file__).parent.parent / "data" / "cases"


@dataclass
class Case:
    report: IngestReport
    records: list[NodeIoRecord]
    runs: list[Run]
    verified: VerifyReport
    payloads: dict[str, dict[str, Any]]
    """Span id -> payload of its NODE_RECORDED, content in place."""

    def record(self, span_id: str) -> NodeIoRecord:
        (one,) = (r for r in self.records if r.span_id == span_id)
        return one


def lines(number: str) -> list[str]:
    return (DATA / number / "input.otlp.jsonl").read_text().splitlines()


def expected(number: str) -> Any:
    return json.loads((DATA / number / "expected.json").read_text())


def ingested(number: str, where: Path, order: Sequence[int] | None = None) -> Case:
    """The recording of a case's input, its lines in the given order."""
    told = lines(number)
    path, out = where / "input.jsonl", where / "rec"
    path.write_text("\n".join(told if order is None else [told[i] for i in order]) + "\n")
    report = ingest(path, out)
    view = fold(Recording(out))
    recorded = [e for e in read_events(out) if e.type == "NODE_RECORDED"]
    payloads = {e.trace["spanId"]: e.payload for e in recorded if e.trace}
    return Case(report, list(view.records()), view.runs, verify(out), payloads)

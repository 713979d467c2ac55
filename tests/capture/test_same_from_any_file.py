"""The same telemetry in another order, in other batches, packed, as protobuf, or sent twice: the same records."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from otel_agentrec import ingest, read_nodes

Json = Any
CORPUS = Path(__file__).parents[1] / "data" / "corpus"
SCENARIOS = {  # of each configuration the one with most to tell
    traces.parent.name: traces
    for traces in sorted(CORPUS.rglob("*.traces.jsonl"), key=lambda path: (path.stat().st_size, path.name))
}


def files(traces: Path) -> dict[str, list[Json]]:
    found = {"traces": traces, "logs": traces.with_name(traces.name.replace(".traces.", ".logs."))}
    return {k: [json.loads(line) for line in p.read_bytes().splitlines()] for k, p in found.items() if p.exists()}


def records(lines: dict[str, list[Json]], where: Path, write: Callable[[Path, str, list[Json]], None]) -> list[Json]:
    paths = []
    where.mkdir()
    for kind, batches in lines.items():
        paths.append(where / f"{kind}.any")
        write(paths[-1], kind, batches)
    ingest(paths, where / "rec")
    found = [
        {k: v for k, v in r.to_json().items() if k not in ("journal", "copiesSeen")} for r in read_nodes(where / "rec")
    ]
    return sorted(found, key=lambda r: r["recordId"])


def as_lines(path: Path, kind: str, batches: list[Json]) -> None:
    path.write_text("".join(json.dumps(b, ensure_ascii=False) + "\n" for b in batches))


def packed(path: Path, kind: str, batches: list[Json]) -> None:
    path.write_bytes(gzip.compress("".join(json.dumps(b) + "\n" for b in batches).encode()))


def twice(path: Path, kind: str, batches: list[Json]) -> None:
    as_lines(path, kind, batches + batches)


def shuffled(path: Path, kind: str, batches: list[Json]) -> None:
    """One item per batch, in any order."""
    outer, inner, items = (
        ("resourceSpans", "scopeSpans", "spans") if kind == "traces" else ("resourceLogs", "scopeLogs", "logRecords")
    )
    one_each = [
        {outer: [{**group, inner: [{**scope, items: [item]}]}]}
        for batch in batches
        for group in batch.get(outer) or ()
        for scope in group.get(inner) or ()
        for item in scope.get(items) or ()
    ]
    random.Random(path.parent.name).shuffle(one_each)
    as_lines(path, kind, one_each)


def protobuf(path: Path, kind: str, batches: list[Json]) -> None:
    """As the Collector's file exporter frames it: each message after its length in four bytes."""
    out = bytearray()
    for batch in batches:
        message = json_format.ParseDict(with_base64_ids(batch), TracesData() if kind == "traces" else LogsData())
        data = message.SerializeToString()
        out += len(data).to_bytes(4, "big") + data
    path.write_bytes(out)


def with_base64_ids(value: Json) -> Json:
    if isinstance(value, dict):
        return {
            k: base64.b64encode(bytes.fromhex(v)).decode()
            if k in ("traceId", "spanId", "parentSpanId")
            else with_base64_ids(v)
            for k, v in value.items()
        }
    return [with_base64_ids(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("configuration", sorted(SCENARIOS))
def test_no_record_changes(configuration: str, tmp_path: Path) -> None:
    lines = files(SCENARIOS[configuration])
    want = records(lines, tmp_path / "as it came", as_lines)
    assert want
    for write in (shuffled, packed, protobuf, twice):
        assert records(lines, tmp_path / write.__name__, write) == want, write.__name__

"""On real telemetry the guarded fast path is what runs: the slow canonicaliser is for the rare and the hostile."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from otel_agentrec import ingest
from otel_agentrec.journal.canonical import fast_path_taken
from otel_agentrec.journal.content import parse_cell

from . import lines

CORPUS = Path(__file__).parents[1] / "data" / "corpus"


@pytest.mark.slow
def test_99_percent_of_the_events_of_the_corpus_take_it(tmp_path: Path) -> None:
    events = cells = fast_events = fast_cells = 0
    for number, traces in enumerate(sorted(CORPUS.rglob("*.traces.jsonl"))):
        out = tmp_path / str(number)
        logs = traces.with_name(traces.name.replace(".traces.", ".logs."))
        ingest([traces, *([logs] if logs.exists() else [])], out)
        for path in lines.streams(out):
            found = [orjson.loads(line)["event"] for line in path.read_bytes().splitlines()]
            events += len(found)
            fast_events += sum(map(fast_path_taken, found))
            content = path.with_name(path.stem + ".content.jsonl")
            for line in content.read_bytes().splitlines() if content.exists() else []:
                cell = parse_cell(line)
                assert cell
                cells += 1
                fast_cells += fast_path_taken(orjson.loads(cell.value))
    assert events > 200 and cells > 200
    assert fast_events >= 0.99 * events
    assert fast_cells >= 0.99 * cells

"""Reading node records from a recording on disk."""

from __future__ import annotations

import dataclasses
import gc
import secrets
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import read_nodes
from otel_agentrec.errors import RecordingNotFound
from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.journal import Journal
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold

from .telling import Telling, answer, asks, does, text


def write(path: Path, t: Telling, **more: Any) -> Path:
    journal = Journal(path, origin="me", **more)
    for e in t.events:
        where = Envelope(run=e.run, session=e.session, turn=e.turn, step=e.step, trace=e.trace)
        journal.append(e.type, e.payload, where)
    journal.seal()
    return path


def conversation(turns: int = 3) -> Telling:
    t = Telling()
    history = [text("user", "go")]
    t.span("RUN_STARTED", "a0", at=(0, None), session="S")
    for i in range(turns):
        t.span("NODE_STARTED", f"m{i}", kind="MODEL", parent="a0", path=["a0"], at=(10 * i, None))
        call = asks((f"c{i}", "f", f'{{"n": {i}}}'))
        t.model(f"m{i}", parent="a0", path=["a0"], at=(10 * i, 10 * i + 1), facts={**call, "messages": list(history)})
        history += call["outputMessages"]
        if i % 2:
            t.tool(
                f"x{i}",
                parent="a0",
                path=["a0"],
                at=(10 * i + 2, 10 * i + 3),
                facts=does("f", f'{{"n": {i}}}', i, f"c{i}"),
            )
        history.append(answer(f"c{i}", i))
    t.span("NODE_STARTED", "open", kind="MODEL", parent="a0", path=["a0"], at=(90, None), facts={"messages": history})
    return t


def without_place(records: Any) -> list[Any]:
    return [dataclasses.replace(r, journal=None) for r in records]


@pytest.mark.parametrize("content", ["detached", "inline"])
def test_a_recording_folds_like_the_same_events_in_memory(tmp_path: Path, content: str) -> None:
    t = conversation()
    path = write(tmp_path, t, content=content)
    stored, kept = fold(Recording(path)), fold(t.events)
    records = list(stored.records())
    assert [r.span_id for r in records] == ["m0", None, "m1", "x1", "m2", None, "open"]
    assert without_place(records) == without_place(kept.records())
    assert stored.runs == kept.runs
    assert without_place(read_nodes(path)) == without_place(read_nodes(path, run="t1"))
    assert list(read_nodes(path, run="other")) == []


def test_a_record_says_where_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, conversation())
    events = {(e.stream, e.seq): e for s in Recording(path).streams() for e in s.events()}
    for record in read_nodes(path):
        assert record.journal is not None
        assert events[record.journal.stream, record.journal.seq].hash == record.journal.hash


def test_values_read_back_as_they_were_sent(tmp_path: Path) -> None:
    t = Telling()
    sent = {"id": 2**80, "$ref": "#/x", "$$": [1], "f": 1.5, "deep": {"$int": "no number of ours"}}
    t.tool("x", facts=does("f", sent, [2**60]))
    (record,) = read_nodes(write(tmp_path, t))
    assert (record.inputs["arguments"], record.outputs) == (sent, [2**60])


def test_content_that_was_not_recorded_is_said_to_be_off(tmp_path: Path) -> None:
    t = Telling()
    t.model("m", at=(0, 1), facts={**asks(("c1", "f", "{}")), "messages": [text("user", "hi")]})
    t.tool("x", at=(2, 3), facts=does("f", "{}", "r", "c1"))
    model, tool = read_nodes(write(tmp_path, t, content="off"))
    assert model.tool_calls == [{"id": "c1", "name": "f", "arguments": None}]
    assert model.output_text is None
    assert set(tool.outputs) == {"$off"}


def test_it_yields_as_it_reads(tmp_path: Path) -> None:
    path = write(tmp_path, conversation(20))
    first = next(iter(read_nodes(path)))
    assert first.span_id == "m0"


def test_a_path_without_a_recording_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingNotFound):
        read_nodes(tmp_path / "none")


def test_a_fold_keeps_less_than_300_bytes_per_record(tmp_path: Path) -> None:
    t = Telling()
    for run in range(10):
        agent, trace = secrets.token_hex(8), secrets.token_hex(16)
        t.span("RUN_STARTED", agent, trace=trace, at=(run, None))
        for i in range(40):
            model, tool, call = (secrets.token_hex(8) for _ in range(3))
            around = {"trace": trace, "parent": agent, "path": [agent], "session": f"session-{run}"}
            facts = {
                **asks((call, "f", "{}")),
                "responseId": f"resp_{model}",
                "inputTokens": 1000 + i,
                "outputTokens": 900 + i,
            }
            t.span("NODE_STARTED", model, kind="MODEL", **around, at=(10 * i, None))
            t.model(model, **around, at=(10 * i, 10 * i + 4), facts=facts)
            t.tool(tool, **around, at=(10 * i + 5, 10 * i + 9), facts=does("f", "{}", "r", call))
    recording = Recording(write(tmp_path, t))
    gc.collect()
    tracemalloc.start()
    try:
        view = fold(recording)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    records = len(list(view.leading))
    assert records == 800
    assert kept / records < 300

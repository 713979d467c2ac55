"""``score``: an evaluation is added to a recording, nothing that stands there changes, and every view tells of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from otel_agentrec import verify
from otel_agentrec.cli.app import run
from otel_agentrec.cli.score import judgements
from otel_agentrec.errors import UsageError
from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.journal import Journal
from otel_agentrec.nodes.read import read_nodes
from tests.cli.test_commands import Out, jsons, lines
from tests.nodes.telling import answer, asks, text


@pytest.fixture
def own(recording: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(recording, tmp_path / "rec"))


def bytes_of(recording: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in recording.iterdir() if p.is_file() and p.name != "index.jsonl"}


def test_a_score_is_appended_and_told_everywhere(own: Path, capsys: Out) -> None:
    first = next(read_nodes(own))
    before = bytes_of(own)
    said = lines(capsys, "score", own, first.record_id, "quality=0.8", "tone=friendly", "--explanation", "it helped")
    assert said == [
        f"quality=0.8  on MODEL gpt-5 {first.record_id}",
        f"tone=friendly  on MODEL gpt-5 {first.record_id}",
    ]
    after = bytes_of(own)
    assert {name: after[name] for name in before} == before, "nothing that was there changed"
    assert verify(own).exit_code == 0
    record = next(read_nodes(own))
    assert [(e["name"], e["score"], e["label"], e["explanation"]) for e in record.evaluations] == [
        ("quality", 0.8, None, "it helped"),
        ("tone", None, "friendly", "it helped"),
    ]
    assert type(record.evaluations[0]["evaluatedAtEpochMs"]) is int
    (node, *_) = jsons(capsys, "nodes", own)
    assert node["evaluations"] == record.evaluations
    assert any("quality=0.8, tone=friendly" in line for line in lines(capsys, "show", own, first.run_id))
    (shown,) = jsons(capsys, "show", own, first.run_id)
    assert len(shown["turns"][0]["steps"][0]["nodes"][0]["evaluations"]) == 2
    (found,) = jsons(capsys, "stats", own)
    assert [(e["name"], e["count"], e["mean"]) for e in found["evaluations"]] == [
        ("quality", 1, 0.8),
        ("tone", 1, None),
    ]
    assert found["records"] == 5


def test_an_explanation_is_content_and_the_event_knows_its_place(own: Path, capsys: Out) -> None:
    first = next(read_nodes(own))
    (told,) = jsons(capsys, "score", own, first.record_id, "ok=true", "--explanation", "secret words")
    path = own / f"{told['journal']['stream']}.jsonl"
    event = json.loads(path.read_text().splitlines()[told["journal"]["seq"]])["event"]
    assert event["type"] == "EVALUATED"
    assert (event["payload"]["recordId"], event["payload"]["score"]) == (first.record_id, True)
    assert (event["run"], event["session"], event["trace"]["spanId"]) == (first.run_id, "chat-1", first.span_id)
    assert "secret words" not in path.read_text()
    assert "secret words" in path.with_name(path.stem + ".content.jsonl").read_text()


def test_a_second_score_stands_beside_the_first(own: Path, capsys: Out) -> None:
    first = next(read_nodes(own))
    for value in ("0.1", "0.9"):
        lines(capsys, "score", own, first.record_id, f"quality={value}")
    assert [e["score"] for e in next(read_nodes(own)).evaluations] == [0.1, 0.9]


def test_a_record_is_found_by_each_of_its_ids(own: Path, capsys: Out) -> None:
    records = list(read_nodes(own))
    for wanted in (records[1].record_id[:8], records[1].node_id, records[1].node_id[:-1] + "1"):
        (told,) = jsons(capsys, "score", own, wanted, "n=1")
        assert told["recordId"] == records[1].record_id


def test_a_tool_call_without_a_span_can_be_scored(tmp_path: Path, capsys: Out) -> None:
    journal = Journal(tmp_path / "rec", origin="here")
    for n, facts in enumerate((asks(("c1", "f", {})), {"messages": [text("user", "x"), answer("c1", 7)]})):
        payload = {
            "type": "MODEL",
            "name": "chat",
            "facts": {"model": "m", **facts},
            "startedAt": str(n),
            "endedAt": str(n),
        }
        journal.append("NODE_RECORDED", payload, _in("t1", f"s{n}"))
    journal.seal()
    (tool,) = (r for r in read_nodes(tmp_path / "rec") if r.dialect == "recovered")
    lines(capsys, "score", tmp_path / "rec", tool.record_id, "n=1")
    (tool,) = (r for r in read_nodes(tmp_path / "rec") if r.dialect == "recovered")
    assert [e["name"] for e in tool.evaluations] == ["n"]


def _in(trace: str, span: str) -> Envelope:
    return Envelope(session="s", trace={"traceId": trace, "spanId": span})


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["nothing-like-it", "n=1"], "there is no record"),
        (["", "n=1"], "there is no record"),
        (["model@", "n=1"], "means more than one record"),
        (["25f6", "n"], "is no evaluation"),
        (["25f6", "=1"], "is no evaluation"),
        (["25f6", "n="], "is no evaluation"),
        (["25f6", "n=1", "n=2"], "is given twice"),
        (["25f6", "n=good", "--label", "bad"], "--label is another"),
        (["25f6", "n=NaN"], "is no number"),
        (["25f6", "n=-inf"], "is no number"),
        (["25f6", "n=1e999"], "is no number"),
    ],
)
def test_what_can_not_be_used_is_refused(own: Path, capsys: Out, argv: list[str], says: str) -> None:
    before = sorted(p.name for p in own.iterdir())
    assert run(["score", str(own), *argv]) == 2
    out, err = capsys.readouterr()
    assert (out, says in err.splitlines()[0], len(err.splitlines())) == ("", True, 2)
    assert sorted(p.name for p in own.iterdir()) == before


def test_a_single_stream_is_refused(own: Path, capsys: Out) -> None:
    (stream,) = (p for p in own.glob("2*.jsonl") if ".content." not in p.name)
    assert run(["score", str(stream), "25f6", "n=1"]) == 2
    assert "give the directory" in capsys.readouterr().err


def test_a_directory_that_can_not_be_written_is_named(own: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("otel_agentrec.journal.writer.write_whole", full)
    assert run(["score", str(own), "25f6", "n=1"]) == 2
    assert "can't be written: No space left on device" in capsys.readouterr().err


def test_values() -> None:
    assert judgements(("a=1", "b=0.5", "c=-2e3", "d=false", "e=1.0", "f= two words ")) == [
        {"name": "a", "score": 1},
        {"name": "b", "score": 0.5},
        {"name": "c", "score": -2000.0},
        {"name": "d", "score": False},
        {"name": "e", "score": 1.0},
        {"name": "f", "label": "two words"},
    ]
    assert judgements(("a=1",), "pass", "why") == [{"name": "a", "score": 1, "label": "pass", "explanation": "why"}]
    assert judgements(("big=123456789012345678901",)) == [{"name": "big", "score": 1.2345678901234568e20}]
    with pytest.raises(UsageError):
        judgements(("a",))

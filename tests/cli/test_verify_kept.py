"""What ``verify`` prints of a Collector's file, and of a recording against one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from otel_agentrec.cli.app import run
from tests.export.kept import collector

Out = pytest.CaptureFixture[str]


def said(capsys: Out, code: int, *argv: object) -> str:
    assert run(["verify", *map(str, argv)]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.fixture
def events(recording: Path, tmp_path: Path) -> Path:
    return collector.write(tmp_path / "evidence.jsonl", collector.batched(collector.event_records(recording)))


@pytest.fixture
def spans(recording: Path, tmp_path: Path) -> Path:
    return collector.write(tmp_path / "spans.jsonl", [collector.spans_line(collector.stamped_spans(recording))])


def test_event_records_alone(events: Path, capsys: Out) -> None:
    out = said(capsys, 0, events)
    assert out.startswith("INTACT  ")
    assert "what was said, and that no stream is missing: content and index are not kept there, not checked" in out
    report = json.loads(said(capsys, 0, events, "--json"))
    assert (report["content"], report["kept"]["again"], report["index"]) == ("absent", 0, None)


def test_a_changed_record_is_named_by_stream_and_event(events: Path, capsys: Out) -> None:
    events.write_text(events.read_text(encoding="utf-8").replace("refund", "reward", 1), encoding="utf-8")
    first = said(capsys, 1, events).splitlines()[0]
    report = json.loads(said(capsys, 1, events, "--json"))
    assert first == f"CHANGED  {report['file']}, event {report['seq']}: a line was changed (hash_mismatch)"


def test_against_what_agrees(recording: Path, spans: Path, capsys: Out) -> None:
    out = said(capsys, 0, recording, "--against", spans)
    assert "5 of 5 calls witnessed there, 0 not" in out
    assert "can't have been written anew" in out
    assert "nobody else has seen them" in out
    against = json.loads(said(capsys, 0, recording, "--against", spans, "--json"))["against"]
    assert (against["spans"], against["checked"], against["differences"]) == (6, 6, [])


def test_level_anchored_asks_that_others_have_seen_all_of_it(
    recording: Path, spans: Path, events: Path, capsys: Out
) -> None:
    assert "no checkpoint" in said(capsys, 3, recording, "--level", "anchored")
    out = said(capsys, 3, recording, "--level", "anchored", "--against", spans)
    assert re.search(r"nobody else has seen \d+ in 2\S+\.jsonl, \d+ in sessions/chat-1\.jsonl \(of 19 events\)", out)
    assert (
        json.loads(said(capsys, 0, recording, "--level", "anchored", "--against", events, "--json"))["level"]
        == "anchored"
    )


def test_each_difference_is_one_line_with_both_values(recording: Path, spans: Path, capsys: Out) -> None:
    document = json.loads(spans.read_text(encoding="utf-8"))
    stamped = document["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    true = collector.get_attribute(stamped, "agentrec.hash")
    collector.set_attribute(stamped, "agentrec.hash", "0" * 64)
    collector.write(spans, [document])
    out = said(capsys, 4, recording, "--against", spans)
    assert out.startswith("CONTRADICTED  ")
    assert f"hash is {true[:12]}…, kept was 000000000000… (spans.jsonl, line 1)" in out


def test_a_contradicted_recording_proves_no_line_before_it(
    recording: Path, spans: Path, tmp_path: Path, capsys: Out
) -> None:
    stamped = json.loads(spans.read_text(encoding="utf-8"))
    for span in stamped["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        collector.set_attribute(span, "agentrec.stream", "20260101T000000Z-1-00000000")
    other = collector.write(tmp_path / "other.jsonl", [stamped])
    out = said(capsys, 4, recording, "--against", other)
    assert "no such stream" in out
    assert "before it" not in out


def test_nothing_to_compare_is_not_proven(recording: Path, tmp_path: Path, capsys: Out) -> None:
    other = collector.write(tmp_path / "other.jsonl", [collector.spans_line([collector.FOREIGN_SPAN])])
    out = said(capsys, 3, recording, "--against", other)
    assert out.startswith("NOT ALL PROVEN  ")
    assert "nothing was compared" in out
    assert "nothing was cut off at the end" in out


def test_a_file_that_is_neither(tmp_path: Path, spans: Path, recording: Path, capsys: Out) -> None:
    (tmp_path / "x.txt").write_text("hello\n")
    for argv, says in (
        ([tmp_path / "x.txt"], "neither a recording nor what a Collector or Jaeger keeps"),
        ([spans], "stamps are checked against a recording"),
        ([spans, "--against", spans], "give the recording first"),
        ([recording, "--shared"], "--against FILE --shared"),
        ([recording, shutil.copytree(recording, tmp_path / "two")], "is a recording: one at a time"),
    ):
        assert run(["verify", *map(str, argv)]) == 2
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 2)
        assert says in err

"""A recording is compared with what others kept of it: each stamp, event record and checkpoint equals its line, or exit 4."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_agentrec import VerifyReport, verify
from otel_agentrec.errors import RecordingUnreadable, UsageError

from ...journal import build
from . import collector
from .conftest import ONE, TWO

Json = Any
Keep = Callable[[Path, Path], Path]


def as_stamps(recording: Path, where: Path) -> Path:
    return collector.write(where / "spans.jsonl", [collector.spans_line(collector.stamped_spans(recording))])


def as_events(recording: Path, where: Path) -> Path:
    return collector.write(where / "events.jsonl", collector.batched(collector.event_records(recording)))


def as_jaeger(recording: Path, where: Path) -> Path:
    return collector.write(where / "jaeger.json", [collector.jaeger(collector.stamped_spans(recording))])


def as_jaeger_v3(recording: Path, where: Path) -> Path:
    answer = {"result": collector.spans_line(collector.stamped_spans(recording))}
    (where / "v3.json").write_text(json.dumps(answer, indent=1), encoding="utf-8")
    return where / "v3.json"


FORMS = pytest.mark.parametrize("keep", [as_stamps, as_events, as_jaeger, as_jaeger_v3])


def differences(report: VerifyReport) -> list[tuple[str, str, str, int]]:
    assert report.against is not None
    return [(d["kind"], d["what"], d["stream"], d["seq"]) for d in report.against["differences"]]


def rewrite(recording: build.Recording, at: int = 4) -> None:
    """What somebody does who holds the whole directory: changes a line and seals all anew, the index too."""
    stream = recording.streams[0]
    before = stream.lines[at]
    stream.lines[at] = before.replace(b'"outputTokens":%d' % at, b'"outputTokens":99')
    assert stream.lines[at] != before
    stream.reseal()
    index = recording.index
    for n, line in enumerate(index.lines):
        event = json.loads(line)["event"]
        if event["type"] == "SEALED" and event["payload"]["stream"] == stream.name:
            event["payload"]["hash"] = stream.hashes[-1]
            index.lines[n] = build.seal(build.GENESIS, build.canon(event))[0]
    index.reseal()
    recording.write()


@FORMS
def test_what_was_not_touched_agrees(keep: Keep, recording: build.Recording, tmp_path: Path) -> None:
    report = verify(recording.directory, against=keep(recording.directory, tmp_path))
    assert (report.exit_code, report.end) == (0, "proven_close")
    assert report.against is not None
    assert report.against["differences"] == []
    assert report.against["checked"] == (16 if keep is as_events else 12)
    assert (report.against["nodes"], report.against["witnessed"], report.against["covered"]) == (12, 12, 12)


@FORMS
def test_a_history_that_was_sealed_anew_is_contradicted(keep: Keep, recording: build.Recording, tmp_path: Path) -> None:
    kept = keep(recording.directory, tmp_path)
    rewrite(recording)
    assert verify(recording.directory).exit_code == 0, "the recording alone can't show it"
    report = verify(recording.directory, against=kept)
    assert (report.exit_code, report.kind, report.file, report.seq) == (4, "history_rewritten", f"{ONE}.jsonl", 4)
    last = 7 if keep is as_events else 6
    assert differences(report) == [("history_rewritten", "hash", ONE, seq) for seq in range(4, last + 1)]
    assert report.expected != report.actual


@FORMS
def test_a_tail_that_was_cut_off_is_contradicted(keep: Keep, recording: build.Recording, tmp_path: Path) -> None:
    kept = keep(recording.directory, tmp_path)
    stream = recording.streams[0]
    del stream.lines[5:]
    recording.write()
    (recording.directory / "index.jsonl").unlink()
    report = verify(recording.directory, against=kept)
    assert (report.exit_code, report.kind) == (4, "rolled_back")
    assert differences(report)[0] == ("rolled_back", "event", ONE, 5)
    assert "its end was cut off" in str(report.hint)


@FORMS
def test_a_stream_that_was_removed_is_contradicted(keep: Keep, recording: build.Recording, tmp_path: Path) -> None:
    kept = keep(recording.directory, tmp_path)
    recording.streams[0].path.unlink()
    report = verify(recording.directory, against=kept)
    assert (report.exit_code, report.kind) == (4, "rolled_back")
    ((kind, what, stream, _),) = differences(report)
    assert (kind, what, stream) == ("rolled_back", "stream", ONE)


def test_a_line_that_was_changed_and_not_sealed_anew_is_told_both_ways(
    recording: build.Recording, tmp_path: Path
) -> None:
    kept = as_events(recording.directory, tmp_path)
    stream = recording.streams[0]
    stream.lines[4] = stream.lines[4].replace(b'"outputTokens":4', b'"outputTokens":9')
    stream.write()
    report = verify(recording.directory, against=kept)
    assert (report.exit_code, report.kind) == (4, "rolled_back")
    assert differences(report) == [("rolled_back", "event", ONE, 4)]
    assert [r.kind for r in report.streams or ()] == ["hash_mismatch", None]


class TestWhatAgreesCoversWhatIsBeforeIt:
    def test_a_hash_seals_all_lines_up_to_its_own(self, recording: build.Recording, tmp_path: Path) -> None:
        spans = [
            s for s in collector.stamped_spans(recording.directory) if collector.get_attribute(s, "agentrec.seq") == "3"
        ]
        kept = collector.write(tmp_path / "s.jsonl", [collector.spans_line(spans)])
        report = verify(recording.directory, against=kept)
        assert [r.covers for r in report.streams or ()] == [
            {"anchored": [[0, 4]], "signed": [], "chainedOnly": [[4, 8]]}
        ] * 2
        assert report.against is not None
        assert (report.against["witnessed"], report.against["covered"]) == (2, 6)
        assert report.exit_code == 0

    def test_a_checkpoint_covers_a_stream(self, recording: build.Recording, tmp_path: Path) -> None:
        heads = [collector.checkpoint(s.name, s.size, s.hashes[-1]) for s in recording.streams]
        kept = collector.write(tmp_path / "s.jsonl", [collector.spans_line(heads)])
        report = verify(recording.directory, against=kept, level="anchored")
        assert (report.exit_code, report.level) == (0, "anchored")
        assert report.against is not None
        assert (report.against["checkpoints"], report.against["witnessed"], report.against["covered"]) == (2, 0, 12)
        rewrite(recording)
        assert differences(verify(recording.directory, against=kept)) == [("history_rewritten", "hash", ONE, 7)]

    def test_level_anchored_asks_for_all_of_it(self, recording: build.Recording, tmp_path: Path) -> None:
        report = verify(recording.directory, against=as_stamps(recording.directory, tmp_path), level="anchored")
        assert (report.exit_code, report.kind) == (3, "unwitnessed")
        assert (
            verify(recording.directory, against=as_events(recording.directory, tmp_path), level="anchored").exit_code
            == 0
        )


def test_progress_tells_the_bytes_of_the_files(recording: build.Recording, tmp_path: Path) -> None:
    files = [as_stamps(recording.directory, tmp_path), as_events(recording.directory, tmp_path)]
    size = sum(file.stat().st_size for file in files)
    for what, against in ((recording.directory, files), (files, [])):
        told: list[tuple[int, int]] = []
        verify(what, against=against, progress=lambda *now: told.append(now))  # noqa: B023
        assert told == sorted(told)
        assert told[-1] == (size, size)


class TestNothingToCompare:
    def test_a_file_without_any_mark_is_never_a_pass(self, recording: build.Recording, tmp_path: Path) -> None:
        kept = collector.write(tmp_path / "s.jsonl", [collector.spans_line([collector.FOREIGN_SPAN])])
        report = verify(recording.directory, against=kept)
        assert (report.exit_code, report.kind, report.is_valid) == (3, "unwitnessed", True)
        assert "nothing was compared" in str(report.hint)

    def test_what_the_recording_says_of_itself_comes_first(self, recording: build.Recording, tmp_path: Path) -> None:
        kept = collector.write(tmp_path / "s.jsonl", [collector.spans_line([collector.FOREIGN_SPAN])])
        stream = recording.streams[0]
        stream.lines[4] = stream.lines[4].replace(b'"outputTokens":4', b'"outputTokens":9')
        stream.write()
        report = verify(recording.directory, against=kept)
        assert (report.exit_code, report.kind) == (1, "hash_mismatch")
        assert "unwitnessed" in [w["kind"] for w in report.warnings]

    def test_a_file_that_nobody_keeps_recordings_in(self, recording: build.Recording, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("hello\n")
        with pytest.raises(RecordingUnreadable, match="neither a recording nor"):
            verify(recording.directory, against=tmp_path / "x")
        with pytest.raises(UsageError, match="no such file"):
            verify(recording.directory, against=tmp_path / "y")


class TestFilesOfSeveralRecordings:
    def test_are_passed_over_when_it_is_said(self, recording: build.Recording, tmp_path: Path) -> None:
        other = build.small(tmp_path / "other").directory
        for path in other.glob("2026*"):  # streams of other names
            path.rename(other / path.name.replace("2026", "2025"))
        records = [*collector.event_records(recording.directory), *collector.event_records(other)]
        for record in records[16:]:
            name = collector.get_attribute(record, "agentrec.stream").replace("2026", "2025")
            collector.set_attribute(record, "agentrec.stream", name)
        kept = collector.write(tmp_path / "s.jsonl", collector.batched(records))
        assert verify(recording.directory, against=kept).exit_code == 4
        report = verify(recording.directory, against=kept, shared=True)
        assert report.exit_code == 0
        assert report.against is not None
        assert (report.against["others"], report.against["checked"]) == (10, 16)

    def test_one_stream_is_compared_with_its_own_marks(self, recording: build.Recording, tmp_path: Path) -> None:
        kept = as_events(recording.directory, tmp_path)
        report = verify(recording.streams[1].path, against=kept)
        assert report.exit_code == 0
        assert report.against is not None
        assert (report.against["others"], report.against["checked"]) == (8, 8)

    def test_streams_that_the_index_says_were_pruned(self, recording: build.Recording, tmp_path: Path) -> None:
        kept = as_events(recording.directory, tmp_path)
        gone = recording.streams[0]
        gone.path.unlink()
        gone.content_path.unlink()
        recording.index.event("PRUNED", {"stream": ONE, "size": gone.size, "hash": gone.hashes[-1]})
        recording.index.write()
        report = verify(recording.directory, against=kept)
        assert report.exit_code == 0
        assert report.against is not None
        assert report.against["pruned"] == 8
        assert [(w["kind"], w["file"], w["count"]) for w in report.warnings] == [("pruned", f"{ONE}.jsonl", 8)]


class TestMarksThatWereChanged:
    @pytest.mark.parametrize(
        ("key", "value", "kind", "what"),
        [
            ("agentrec.hash", "0" * 64, "history_rewritten", "hash"),
            ("agentrec.prev_hash", "0" * 64, "anchor_invalid", "prev_hash"),
            ("agentrec.record_id", "another", "anchor_invalid", "record_id"),
            ("agentrec.seq", 99, "rolled_back", "event"),
            ("agentrec.hash", "****", "anchor_invalid", "mark"),
        ],
    )
    def test_each_part_of_a_stamp_counts(
        self, key: str, value: str | int, kind: str, what: str, recording: build.Recording, tmp_path: Path
    ) -> None:
        spans = collector.stamped_spans(recording.directory)
        collector.set_attribute(spans[2], key, value)
        kept = collector.write(tmp_path / "s.jsonl", [collector.spans_line(spans)])
        report = verify(recording.directory, against=kept)
        assert report.exit_code == 4
        assert differences(report) == [(kind, what, ONE, 99 if value == 99 else 3)]

    def test_a_record_that_does_not_fit_its_own_hash(self, recording: build.Recording, tmp_path: Path) -> None:
        records = collector.event_records(recording.directory)
        body = records[4]["body"]
        body["stringValue"] = body["stringValue"].replace('"outputTokens":4', '"outputTokens":9')
        kept = collector.write(tmp_path / "s.jsonl", collector.batched(records))
        report = verify(recording.directory, against=kept)
        assert (report.exit_code, differences(report)) == (4, [("anchor_invalid", "mark", ONE, 4)])


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(1, 6), keep=st.sampled_from([as_stamps, as_events]))
def test_no_rewritten_line_passes(at: int, keep: Keep, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Law: whichever line was changed and sealed anew, each form of what was kept contradicts it from there on."""
    where = tmp_path_factory.mktemp("law")
    recording = build.Recording(where / "rec")
    stream = recording.open(TWO)
    for k in range(1, 7):
        trace = {"traceId": "ab" * 16, "spanId": f"{k:016x}"}
        stream.event("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": {"outputTokens": k}}, trace=trace)
    recording.close(stream)
    recording.write()
    kept = keep(recording.directory, where)
    assert verify(recording.directory, against=kept).exit_code == 0
    rewrite(recording, at)
    report = verify(recording.directory, against=kept)
    assert report.exit_code == 4
    assert differences(report)[0] == ("history_rewritten", "hash", TWO, at)

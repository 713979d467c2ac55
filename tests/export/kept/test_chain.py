"""Event records that a Collector kept are verified by themselves: chain, numbers, beginning and end of each stream."""

from __future__ import annotations

import copy
import gzip
import json
import random
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


def kept(recording: build.Recording) -> list[Json]:
    return collector.event_records(recording.directory)


def verified(tmp_path: Path, records: list[Json], **more: Any) -> VerifyReport:
    return verify(collector.write(tmp_path / "evidence.jsonl", collector.batched(records)), **more)


def of(report: VerifyReport, stream: str) -> VerifyReport:
    (found,) = [r for r in report.streams or () if r.file == stream]
    return found


def test_what_arrived_whole_is_intact(recording: build.Recording, tmp_path: Path) -> None:
    report = verified(tmp_path, kept(recording))
    assert (report.exit_code, report.is_valid, report.events, report.end) == (0, True, 16, "proven_close")
    assert [r.file for r in report.streams or ()] == [ONE, TWO]


def test_it_says_that_content_and_index_were_not_checked(recording: build.Recording, tmp_path: Path) -> None:
    report = verified(tmp_path, kept(recording))
    assert report.content == "absent"
    assert report.to_json()["index"] is None
    assert [(w["kind"], w["hint"]) for w in report.warnings] == [
        ("not_kept", "event records hold neither content nor index: neither was checked")
    ]


def test_order_and_repeats_do_not_matter(recording: build.Recording, tmp_path: Path) -> None:
    records = kept(recording)
    mixed = [*records, *records[3:9]]
    random.Random(7).shuffle(mixed)
    report = verified(tmp_path, mixed)
    assert report.exit_code == 0
    assert report.kept is not None
    assert (report.kept["records"], report.kept["again"]) == (22, 6)
    assert report.kept["late"] > 0


def test_other_telemetry_is_passed_over(recording: build.Recording, tmp_path: Path) -> None:
    records = kept(recording)
    documents = [
        collector.logs_line([collector.FOREIGN_LOG, *records[:9]]),
        collector.spans_line([collector.FOREIGN_SPAN, *collector.stamped_spans(recording.directory)]),
        {"resourceMetrics": [{"scopeMetrics": []}]},
        collector.logs_line(records[9:]),
    ]
    report = verify(collector.write(tmp_path / "evidence.jsonl", documents))
    assert report.exit_code == 0
    assert report.kept is not None
    assert (report.kept["foreign"], report.kept["unread"]) == (2, 0)


def test_half_a_last_line_is_told_and_costs_what_stood_in_it(recording: build.Recording, tmp_path: Path) -> None:
    path = collector.write(tmp_path / "evidence.jsonl", collector.batched(kept(recording), 4))
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rstrip().rindex(b"\n") + 200])
    report = verify(path)
    assert (report.exit_code, report.kind, report.file) == (3, "unsealed_tail", TWO)
    assert [w["kind"] for w in report.warnings] == ["not_kept", "unread_lines"]
    path.write_bytes(whole + b'{"resourceLogs":[{"sco')
    assert verify(path).exit_code == 0


@pytest.mark.parametrize("how", ["pretty", "gzip", "protobuf"])
def test_every_form_that_a_collector_writes(how: str, recording: build.Recording, tmp_path: Path) -> None:
    document = collector.logs_line(kept(recording))
    path = tmp_path / "evidence"
    if how == "pretty":
        path.write_text(json.dumps(document, indent=2))
    elif how == "gzip":
        path.write_bytes(gzip.compress(json.dumps(document).encode() + b"\n"))
    else:
        from google.protobuf import json_format
        from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

        message = json_format.ParseDict(document, LogsData()).SerializeToString()
        path.write_bytes(len(message).to_bytes(4, "big") + message)
    assert (verify(path).exit_code, verify(path).events) == (0, 16)


def test_files_of_a_rotation_are_given_together(recording: build.Recording, tmp_path: Path) -> None:
    records = kept(recording)
    first = collector.write(tmp_path / "evidence-1.jsonl", collector.batched(records[:5]))
    second = collector.write(tmp_path / "evidence-2.jsonl", collector.batched(records[5:]))
    assert verify([second, first]).exit_code == 0
    alone = verify(second)
    assert (alone.exit_code, alone.kind, alone.file) == (1, "genesis_missing", ONE)
    assert "in another file of the same Collector" in str(alone.hint)


def test_a_tail_that_is_not_there_is_an_open_end(recording: build.Recording, tmp_path: Path) -> None:
    report = verified(tmp_path, kept(recording)[:-3])
    assert (report.exit_code, report.kind, report.file, report.is_valid) == (3, "unsealed_tail", TWO, True)
    assert of(report, ONE).end == "proven_close"


def test_a_later_segment_tells_of_a_tail_that_is_not_there(tmp_path: Path) -> None:
    recording = build.Recording(tmp_path / "rec")
    one = recording.open(ONE)
    one.event("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": {}})
    recording.close(one)
    two = recording.open(TWO, prevStream={"id": ONE, "size": one.size, "hash": one.hashes[-1]})
    recording.close(two)
    recording.write()
    records = kept(recording)
    assert verified(tmp_path, records).exit_code == 0
    report = verified(tmp_path, [records[0], *records[3:]])
    assert (report.exit_code, report.kind, report.file, report.seq) == (1, "truncated", ONE, 1)


@pytest.mark.parametrize("gone", [1, 4, 6])
def test_a_record_that_is_taken_out_is_named(gone: int, recording: build.Recording, tmp_path: Path) -> None:
    records = kept(recording)
    del records[gone]
    report = verified(tmp_path, records)
    assert (report.exit_code, report.kind, report.file, report.seq) == (1, "seq_gap", ONE, gone)
    assert f"event {gone} is not there" in str(report.hint)
    assert report.salvageable == 7 - gone
    assert of(report, TWO).exit_code == 0


def test_two_different_events_of_one_number_are_two_histories(recording: build.Recording, tmp_path: Path) -> None:
    records = kept(recording)
    stream = recording.streams[0]
    stream.lines[4] = stream.lines[4].replace(b'"outputTokens":4', b'"outputTokens":9')
    stream.reseal()
    report = verified(tmp_path, [*records, collector.event_record(stream.lines[4])])
    assert (report.exit_code, report.kind, report.file, report.seq) == (4, "equivocation", ONE, 4)


def test_a_changed_second_copy_is_a_fault(recording: build.Recording, tmp_path: Path) -> None:
    records = kept(recording)
    other = copy.deepcopy(records[4])
    other["body"]["stringValue"] = other["body"]["stringValue"].replace('"outputTokens":4', '"outputTokens":9')
    report = verified(tmp_path, [*records, other])
    assert (report.exit_code, report.kind, report.file, report.seq) == (1, "hash_mismatch", ONE, 4)


def test_a_chain_sealed_anew_from_the_middle_on_does_not_follow(recording: build.Recording, tmp_path: Path) -> None:
    records = kept(recording)
    stream = recording.streams[0]
    stream.lines[4] = stream.lines[4].replace(b'"outputTokens":4', b'"outputTokens":9')
    stream.reseal()
    records[5:8] = [collector.event_record(line) for line in stream.lines[5:]]
    report = verified(tmp_path, records)
    assert (report.exit_code, report.kind, report.file, report.seq) == (1, "prev_hash_mismatch", ONE, 5)


class TestStampsBesideThem:
    def test_must_name_the_same_events(self, recording: build.Recording, tmp_path: Path) -> None:
        spans = collector.stamped_spans(recording.directory)
        collector.set_attribute(spans[2], "agentrec.hash", "0" * 64)
        documents = [collector.spans_line(spans), *collector.batched(kept(recording))]
        report = verify(collector.write(tmp_path / "evidence.jsonl", documents))
        assert (report.exit_code, report.kind, report.file, report.seq) == (4, "equivocation", ONE, 3)

    def test_tell_of_a_tail_that_is_not_there(self, recording: build.Recording, tmp_path: Path) -> None:
        stream = recording.streams[1]
        head = collector.checkpoint(TWO, stream.size, stream.hashes[-1])
        documents = [*collector.batched(kept(recording)[:-3]), collector.spans_line([head])]
        report = verify(collector.write(tmp_path / "evidence.jsonl", documents))
        assert (report.exit_code, report.kind, report.file) == (3, "unsealed_tail", TWO)
        assert "a stamp names event 7" in str(report.hint)

    def test_can_name_nothing_behind_the_close(self, recording: build.Recording, tmp_path: Path) -> None:
        head = collector.checkpoint(TWO, 12, "0" * 64)
        documents = [*collector.batched(kept(recording)), collector.spans_line([head])]
        report = verify(collector.write(tmp_path / "evidence.jsonl", documents))
        assert (report.exit_code, report.kind, report.file) == (4, "equivocation", TWO)


@pytest.mark.parametrize("how", [{"level": "signed"}, {"level": "anchored"}, {"keys": ["k"]}])
def test_levels_that_need_more_are_not_proven(how: Any, recording: build.Recording, tmp_path: Path) -> None:
    report = verified(tmp_path, kept(recording), **how)
    assert (report.exit_code, report.kind, report.end) == (3, "checkpoint_missing", "proven_close")


def test_a_stream_of_which_only_stamps_are_there_is_told(recording: build.Recording, tmp_path: Path) -> None:
    records = [one for one in kept(recording) if collector.get_attribute(one, "agentrec.stream") == ONE]
    stamps = collector.spans_line(collector.stamped_spans(recording.directory))
    path = collector.write(tmp_path / "evidence.jsonl", [*collector.batched(records), stamps])
    report = verify(path)
    assert report.exit_code == 0
    assert [(w["kind"], w["file"], w.get("count")) for w in report.warnings] == [
        ("not_kept", "evidence.jsonl", None),
        ("not_kept", TWO, 6),
    ]


def test_a_record_without_a_stream_is_a_fault_too(recording: build.Recording, tmp_path: Path) -> None:
    records = kept(recording)
    records[4]["attributes"] = []
    records[4]["body"] = {"stringValue": "{"}
    report = verified(tmp_path, records)
    assert report.exit_code == 1
    assert ("frame", "evidence.jsonl") in [(r.kind, r.file) for r in report.streams or ()]


class TestNeitherRecordingNorEvidence:
    def test_stamps_alone_are_for_against(self, recording: build.Recording, tmp_path: Path) -> None:
        path = collector.write(
            tmp_path / "s.jsonl", [collector.spans_line(collector.stamped_spans(recording.directory))]
        )
        with pytest.raises(RecordingUnreadable, match="no event records, but 12 spans with stamps") as caught:
            verify(path)
        assert "--against" in caught.value.hint

    def test_telemetry_of_others(self, tmp_path: Path) -> None:
        path = collector.write(tmp_path / "s.jsonl", [collector.spans_line([collector.FOREIGN_SPAN])])
        with pytest.raises(RecordingUnreadable, match="nothing of a recording in it"):
            verify(path)

    @pytest.mark.parametrize("text", ["hello\n", '{"a": 1}\n', "[1, 2]\n", "\x00\x01"])
    def test_any_other_file(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(RecordingUnreadable, match="neither a recording nor what a Collector or Jaeger keeps"):
            verify(tmp_path / "x.jsonl")

    def test_a_recording_among_files(self, recording: build.Recording, tmp_path: Path) -> None:
        path = collector.write(tmp_path / "s.jsonl", collector.batched(kept(recording)))
        with pytest.raises(UsageError, match="is a recording"):
            verify([path, recording.streams[0].path])


class TestOneByte:
    """Law: one byte of a body, a hash, a number or a stream's name, changed anywhere, is found and its place named."""

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_is_found(self, recording: build.Recording, tmp_path: Path, data: st.DataObject) -> None:
        records = kept(recording)
        at = data.draw(st.integers(0, 7), label="record")
        key = data.draw(
            st.sampled_from(["body", "agentrec.hash", "agentrec.prev_hash", "agentrec.seq", "agentrec.stream"]),
            label="part",
        )
        record = records[at]
        before = record["body"]["stringValue"] if key == "body" else collector.get_attribute(record, key)
        place = data.draw(st.integers(0, len(before) - 1), label="place")
        sign = data.draw(st.sampled_from('0123456789abcdef"x} é'), label="sign")
        after = before[:place] + sign + before[place + 1 :]
        if after == before:
            return
        if key == "body":
            record["body"]["stringValue"] = after
        elif key == "agentrec.seq":
            (found,) = [a for a in record["attributes"] if a["key"] == key]
            found["value"] = {"intValue": after}
        else:
            collector.set_attribute(record, key, after)
        report = verified(tmp_path, records)
        assert report.exit_code in (1, 4)
        assert (ONE, at) in {(r.file, r.seq) for r in report.streams or () if r.exit_code in (1, 4)}


words = st.text(max_size=12)
payloads = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(facts=st.lists(payloads, min_size=1, max_size=6), order=st.randoms(use_true_random=False))
def test_any_recording_that_arrived_is_valid(
    facts: list[Json], order: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Law: of any recording, its event records in any order are valid, and have as many events."""
    from otel_agentrec.journal.journal import Journal

    where = tmp_path_factory.mktemp("any")
    journal = Journal(where / "rec", origin="test")
    for value in facts:
        journal.append("NODE_RECORDED", {"type": "TOOL", "name": "x", "facts": {"result": value}})
    journal.seal()
    records = collector.event_records(where / "rec")
    order.shuffle(records)
    report = verified(where, records)
    assert (report.exit_code, report.events) == (0, len(facts) + 2)

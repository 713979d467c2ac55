"""Files of OTLP: what they may look like, and what is said of those that can't be read."""

from __future__ import annotations

import codecs
import gzip
import json
import os
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

from otel_agentrec.capture import otlp
from otel_agentrec.capture.otlp import OtlpFile
from otel_agentrec.errors import AgentRecError, UsageError

from .otlp_files import span, traces, write

ONE, TWO = traces(span(1, "one")), traces(span(2, "two"))


def names(path: Path) -> list[str]:
    return [s.name for batch in OtlpFile(path).batches() for s in batch.spans]


def faults(path: Path) -> list[tuple[int, str]]:
    return [(batch.place, fault) for batch in OtlpFile(path).batches() for fault in batch.faults]


def message(*numbers: int) -> bytes:
    spans = [
        Span(trace_id=b"t" * 16, span_id=n.to_bytes(8, "big"), name=f"s{n}", start_time_unix_nano=5) for n in numbers
    ]
    return TracesData(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])]).SerializeToString()


class TestForms:
    def test_json_lines_and_blank_ones(self, tmp_path: Path) -> None:
        path = write(tmp_path / "f", ONE, "", "  \t", TWO)
        assert names(path) == ["one", "two"]
        assert [b.place for b in OtlpFile(path).batches()] == [1, 4]

    def test_the_last_line_needs_no_newline(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_text(json.dumps(ONE) + "\r\n" + json.dumps(TWO))
        assert names(path) == ["one", "two"]

    def test_a_byte_order_mark(self, tmp_path: Path) -> None:
        assert names(write(tmp_path / "f", codecs.BOM_UTF8 + json.dumps(ONE).encode(), TWO)) == ["one", "two"]

    @pytest.mark.parametrize("text", [json.dumps(ONE, indent=2), json.dumps([ONE, TWO], indent=1)])
    def test_a_document_over_several_lines(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "f"
        path.write_text("\n" + text + "\n")
        assert names(path)[0] == "one"
        assert faults(path) == []

    def test_documents_over_several_lines_one_after_the_other(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_text(json.dumps(ONE, indent=2) + "\n" + json.dumps(TWO, indent=2))
        assert names(path) == ["one", "two"]

    @pytest.mark.parametrize("name", ["f.jsonl.gz", "f"])
    def test_gzip_shows_in_the_bytes(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        path.write_bytes(gzip.compress(json.dumps(ONE).encode() + b"\n" + json.dumps(TWO).encode()))
        assert names(path) == ["one", "two"]

    def test_protobuf_as_the_collector_frames_it(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_bytes(b"".join(len(m).to_bytes(4, "big") + m for m in (message(1, 2), message(3))))
        assert names(path) == ["s1", "s2", "s3"]
        assert [b.place for b in OtlpFile(path).batches()] == [1, 2]

    def test_one_protobuf_message(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_bytes(message(1))
        assert names(path) == ["s1"]

    @pytest.mark.parametrize("count", [2, 100, 2_000, 60_000])
    def test_one_protobuf_message_of_any_size(self, tmp_path: Path, count: int) -> None:
        path = tmp_path / "f"
        path.write_bytes(message(*range(1, count)))
        assert len(names(path)) == count - 1

    def test_progress_tells_every_byte_once(self, tmp_path: Path) -> None:
        path = write(tmp_path / "f", ONE, TWO)
        told: list[int] = []
        list(OtlpFile(path).batches(told.append))
        assert sum(told) == path.stat().st_size == OtlpFile(path).size


class TestFaults:
    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("no json", "not JSON: Expecting value at column 1"),
            (json.dumps(TWO)[:-10], "not JSON: "),
            ('{"a": 1}', "no OTLP: "),
            ("[1, 2]", "no OTLP: "),
            (b'{"a": "\xe9"}', "not UTF-8: byte 0xe9 at 8"),
        ],
    )
    def test_a_bad_line_costs_only_itself(self, tmp_path: Path, line: str | bytes, reason: str) -> None:
        path = write(tmp_path / "f", ONE, line, TWO)
        assert names(path) == ["one", "two"]
        ((place, fault),) = faults(path)
        assert place == 2
        assert fault.startswith(reason)

    def test_a_cut_first_line_costs_only_itself(self, tmp_path: Path) -> None:
        path = write(tmp_path / "f", json.dumps(ONE)[:-20], TWO)
        assert names(path) == ["two"]
        assert [place for place, _ in faults(path)] == [1]

    def test_a_value_of_any_depth_costs_nothing_else(self, tmp_path: Path) -> None:
        deep = '{"arrayValue":{"values":[' * 10_000 + '{"intValue":"1"}' + "]}}" * 10_000
        hostile = json.dumps(traces(span(1, "deep", {"k": "~"}), span(2, "beside")))
        path = write(tmp_path / "f", hostile.replace('{"stringValue": "~"}', deep))
        assert names(path) == ["deep", "beside"]
        assert faults(path) == []

    def test_numbers_and_text_of_any_kind(self, tmp_path: Path) -> None:
        odd = traces(span(1, "odd", {"k": "\ud800", "n": 2**70}))
        path = write(tmp_path / "f", json.dumps(odd).replace('"kind": 3', '"kind": 3, "x": ' + "9" * 5000))
        (batch,) = OtlpFile(path).batches()
        assert batch.spans[0].attributes == {"k": "\ud800", "n": 2**70}

    def test_a_line_that_is_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(otlp, "MAX_LINE", 2000)
        path = write(tmp_path / "f", ONE, "x" * 5000, TWO)
        assert names(path) == ["one", "two"]
        assert [place for place, _ in faults(path)] == [2]

    def test_gzip_that_ends_early(self, tmp_path: Path) -> None:
        lines = "\n".join(json.dumps(traces(span(n, f"s{n}", {"k": os.urandom(200).hex()}))) for n in range(1, 200))
        path = tmp_path / "f.gz"
        path.write_bytes(gzip.compress(lines.encode())[:-2000])
        assert names(path)[:2] == ["s1", "s2"]
        assert faults(path)[-1][1] == "the compressed data ends early"

    @pytest.mark.parametrize("cut", [1, 5, 50])
    def test_protobuf_that_ends_early(self, tmp_path: Path, cut: int) -> None:
        path = tmp_path / "f"
        frames = [len(m).to_bytes(4, "big") + m for m in (message(1), message(2))]
        path.write_bytes(b"".join(frames)[:-cut])
        assert names(path) == ["s1"]
        assert faults(path) == [(2, "the file ends in the middle of a message")]

    def test_text_that_is_no_json_at_all(self, tmp_path: Path) -> None:
        path = write(tmp_path / "f", "2026-11-30 INFO started", "2026-11-30 INFO done")
        assert not any(batch.known for batch in OtlpFile(path).batches())


class TestErrors:
    def message(self, path: Path) -> str:
        with pytest.raises(UsageError) as error:
            OtlpFile(path)
        assert error.value.exit_code == 2
        assert error.value.hint
        assert str(path) in str(error.value)
        return str(error.value)

    def test_missing(self, tmp_path: Path) -> None:
        assert "no such file" in self.message(tmp_path / "none")

    def test_a_directory(self, tmp_path: Path) -> None:
        assert "is a directory" in self.message(tmp_path)

    def test_empty(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        assert "is empty" in self.message(tmp_path / "f")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
    def test_no_regular_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "f")
        assert "no regular file" in self.message(tmp_path / "f")

    def test_unreadable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(otlp._Counted, "__init__", refused)
        assert "can't be read: Permission denied" in self.message(write(tmp_path / "f", ONE))

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
    def test_wide_encodings(self, tmp_path: Path, encoding: str) -> None:
        path = tmp_path / "f"
        path.write_bytes(json.dumps(ONE).encode(encoding))
        assert "is not UTF-8" in self.message(path)

    def test_zstd(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 50)
        assert "zstd" in self.message(tmp_path / "f")

    def test_a_broken_gzip_header(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"\x1f\x8b")
        assert "can't be read" in self.message(tmp_path / "f")

    def test_a_file_that_is_gone_when_it_is_read(self, tmp_path: Path) -> None:
        file = OtlpFile(write(tmp_path / "f", ONE))
        file.path.unlink()
        with pytest.raises(AgentRecError, match="can't be read"):
            list(file.batches())

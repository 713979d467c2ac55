"""An export over real sockets, into this package's own receiver and into servers that refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from otel_agentrec import read_nodes
from otel_agentrec.capture.forward.exporters import endpoint_of, protocol_of
from otel_agentrec.capture.forward.sending import batches
from otel_agentrec.capture.received import Receiver
from otel_agentrec.capture.serving import Access, Servers
from otel_agentrec.cli.app import run
from otel_agentrec.errors import UsageError
from otel_agentrec.export.spans import Exported
from otel_agentrec.journal.reader import Recording
from otel_agentrec.settings import Settings
from tests.capture.forward.sinks import HttpSink
from tests.export.test_spans import SCENARIOS, recorded

pytest.importorskip("uvicorn")
AGENT = next(s for s in SCENARIOS if s.name.startswith("s3_agent_loop"))
Out = pytest.CaptureFixture[str]


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    return recorded(AGENT, tmp_path / "rec").directory


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Servers, Path]]:
    receiver = Receiver(tmp_path / "far", Settings.load())
    servers = Servers(receiver, "127.0.0.1", 0, 0, Access())
    try:
        yield servers, tmp_path / "far"
    finally:
        servers.stop()
        receiver.close()


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    sink = HttpSink()
    yield sink
    sink.close()


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_all_arrives_once_however_often_it_is_sent(
    rec: Path, served: tuple[Servers, Path], scheme: str, capsys: Out
) -> None:
    servers, far = served
    port = servers.port if scheme == "http" else servers.grpc_port
    url = f"{scheme}://127.0.0.1:{port}"
    assert run(["export", str(rec), "--otlp", url, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["spans"] == len(list(Exported(Recording(rec)).spans())) and said["refused"] == []
    assert run(["export", str(rec), "--otlp", url]) == 0
    assert capsys.readouterr().out == "nothing new to send\n"
    assert run(["export", str(rec), "--otlp", url, "--again"]) == 0
    ids = [r.record_id for r in read_nodes(far)]
    assert sorted(ids) == sorted(r.record_id for r in read_nodes(rec) if r.span_id)


@pytest.mark.slow
def test_nobody_there_is_told_and_the_next_try_goes_on(rec: Path, capsys: Out, sink: HttpSink) -> None:
    assert run(["export", str(rec), "--otlp", "http://127.0.0.1:9"]) == 2
    err = capsys.readouterr().err
    assert "the receiver takes nothing" in err and "run the same command" in err
    assert run(["export", str(rec), "--otlp", sink.url]) == 0


@pytest.mark.parametrize(("status", "hint"), [(404, "--events is for a Collector"), (401, "--header")])
def test_a_receiver_that_is_there_and_takes_nothing_is_told_apart_from_one_that_is_away(
    rec: Path, capsys: Out, sink: HttpSink, status: int, hint: str
) -> None:
    sink.status = status
    assert run(["export", str(rec), "--otlp", sink.url, "--events"]) == 2
    err = capsys.readouterr().err
    assert hint in err and "when it is there again" not in err


def test_a_batch_that_is_too_large_is_taken_apart_and_one_span_may_be_refused(
    rec: Path, sink: HttpSink, capsys: Out
) -> None:
    count = len(list(Exported(Recording(rec)).spans()))
    run(["export", str(rec), "--otlp", sink.url, "--no-gzip", "--json", "--header", "x-who=me", "--header", "A = b"])
    whole = sink.came[-1]
    assert (whole.headers["x-who"], whole.headers["a"]) == ("me", "b")
    capsys.readouterr()

    sink.most = len(whole.body) - 1
    assert run(["export", str(rec), "--otlp", sink.url, "--no-gzip", "--json", "--again"]) == 0
    assert json.loads(capsys.readouterr().out)["batches"] > 1

    sink.most = 0
    assert run(["export", str(rec), "--otlp", sink.url, "--no-gzip", "--again"]) == 1
    err = capsys.readouterr().err
    assert f"{count} refused, the first is event" in err and "413" in err


def test_what_a_receiver_rejects_of_a_batch_that_it_takes_is_told(rec: Path, sink: HttpSink, capsys: Out) -> None:
    sink.rejects = 1
    assert run(["export", str(rec), "--otlp", sink.url, "--json"]) == 1
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert (said["rejected"], said["spans"]) == (len(sink.requests), len(sink.spans) - len(sink.requests))
    assert "1 of them not taken: the receiver rejected some: too old" in err


def test_batches_are_capped_by_bytes(tmp_path: Path) -> None:
    spans = list(Exported(recorded(AGENT, tmp_path / "rec")).spans())

    def size(placed: Any) -> int:
        return encode_spans([placed[2]]).ByteSize()

    assert len(list(batches(spans, size, 1 << 30))) == 1
    assert [len(b) for b in batches(spans, size, 1)] == [1] * len(spans)
    assert [p for b in batches(spans, size, 3000) for p in b] == spans


@pytest.mark.parametrize(
    ("url", "protocol", "endpoint"),
    [
        ("http://h:4318", "http/protobuf", "http://h:4318/v1/traces"),
        ("http://h:4318/", "http/protobuf", "http://h:4318/v1/traces"),
        ("https://h/api/public/otel", "http/protobuf", "https://h/api/public/otel/v1/traces"),
        ("https://h/v1/traces", "http/protobuf", "https://h/v1/traces"),
        ("http://h:4317", "grpc", "http://h:4317"),
        ("grpc://h:1", "grpc", "http://h:1"),
        ("grpcs://h:1", "grpc", "https://h:1"),
    ],
)
def test_an_address_says_how_it_is_spoken_to(url: str, protocol: str, endpoint: str) -> None:
    assert protocol_of(url) == protocol
    assert endpoint_of(url, protocol_of(url)) == endpoint


@pytest.mark.parametrize("url", ["", "h:4318", "ftp://h", "http://", "http://h:x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no URL of an OTLP receiver"):
        protocol_of(url)

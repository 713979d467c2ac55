"""Journal events as log records: all of them, in order, with the text of the journal, whoever listens or does not."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec import AgentRecSpanProcessor, ingest, read_nodes, verify
from otel_agentrec.capture.forward import events as sending
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.cli.app import run
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.settings import Settings
from tests.capture.forward.sinks import GrpcSink, HttpSink, attributes, until
from tests.capture.forward.test_forward import CHAT, lines, provider

Out = pytest.CaptureFixture[str]


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    return tmp_path / "rec"


def record(rec: Path, count: int = 3, **settings: Any) -> Recorder:
    """Record some calls; the recorder is still open."""
    ours = AgentRecSpanProcessor(rec, events="otlp", **settings)
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(ours)
    for n in range(count):
        tracers.get_tracer("app").start_span("chat m", attributes={**CHAT, "n": n}).end()
    return ours.recorder


def check(sink: HttpSink | GrpcSink, rec: Path) -> None:
    """The sink holds every line of the recording, in order, and each hash can be computed again."""
    held = lines(rec)
    found = {(a["agentrec.stream"], a["agentrec.seq"]): (a, log) for log in sink.logs for a in [attributes(log)]}
    told = list(found.values())  # what is tried again may come twice
    assert [(a["agentrec.stream"], a["agentrec.seq"]) for a, _ in told] == sorted(held)
    for a, log in told:
        line = held[a["agentrec.stream"], a["agentrec.seq"]]
        assert log.event_name == "agentrec.event"
        assert a == {
            "agentrec.stream": line["event"]["stream"],
            "agentrec.seq": line["event"]["seq"],
            "agentrec.hash": line["hash"],
            "agentrec.prev_hash": line["prevHash"],
        }
        body = log.body.string_value
        assert json.loads(body) == line["event"]
        assert hashlib.sha256(f"{line['prevHash']}|{body}".encode()).hexdigest() == line["hash"]
        assert "Where is Finse?" not in body
        assert log.time_unix_nano == line["event"]["ts"] * 1_000_000


@pytest.mark.parametrize("mode", ["written", "fsync", "deferred"])
def test_every_event_arrives_as_it_stands_in_the_journal(
    rec: Path, sink: HttpSink, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    recorder = record(rec, durability=mode)
    recorder.shutdown()
    check(sink, rec)
    assert recorder.stats()["events_sent"] == len(sink.logs) and "events_lost" not in recorder.stats()


def test_over_grpc_in_batches_that_fit(rec: Path, grpc_sink: GrpcSink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", grpc_sink.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setitem(sending.BATCH_BYTES, "grpc", 4_000)
    recorder = record(rec)
    recorder.shutdown()
    check(grpc_sink, rec)
    assert len(grpc_sink.log_requests) > 1


def test_they_go_out_while_the_program_runs(rec: Path, sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    monkeypatch.setattr(sending, "LINGER", 0.02)
    recorder = record(rec)
    until(lambda: len(sink.logs) == len(lines(rec)))
    recorder.shutdown()
    check(sink, rec)


def test_a_receiver_that_comes_late_misses_nothing(rec: Path, monkeypatch: pytest.MonkeyPatch, capfd: Out) -> None:
    gone = HttpSink()
    gone.close()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setattr(sending, "LINGER", 0.02)
    monkeypatch.setattr(sending, "LONGEST_PAUSE", 0.1)
    recorder = record(rec)
    time.sleep(0.3)
    back = HttpSink(gone.port)
    try:
        until(lambda: len(back.logs) >= len(lines(rec)))
        recorder.shutdown()
        check(back, rec)
    finally:
        back.close()
    assert "events_lost" not in recorder.stats()
    assert capfd.readouterr().err == ""


def test_nobody_there_costs_the_agent_nothing_and_is_told_once(
    rec: Path, monkeypatch: pytest.MonkeyPatch, capfd: Out
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    begun = time.monotonic()
    recorder = record(rec, count=50)
    assert time.monotonic() - begun < 20, "none of them waited for a time-out"
    recorder.shutdown()
    assert recorder.stats()["events_lost"] == len(lines(rec))
    (line,) = capfd.readouterr().err.splitlines()
    assert "did not reach the OTLP receiver" in line and f"export {rec} --otlp URL --events" in line
    assert verify(rec).end == "proven_close"


def test_what_does_not_fit_into_the_queue_is_counted(
    rec: Path, monkeypatch: pytest.MonkeyPatch, sink: HttpSink
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    monkeypatch.setattr(sending, "MAX_WAITING", 3_000)
    sink.delay = 0.5
    recorder = record(rec, count=20)
    recorder.shutdown()
    told = recorder.stats()
    assert told["events_lost"] and told["events_lost"] + told["events_sent"] == len(lines(rec))
    assert verify(rec).end == "proven_close" and len(list(read_nodes(rec))) == 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_sends_its_own(rec: Path, sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    ours = AgentRecSpanProcessor(rec, events="otlp")
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(ours)
    tracers.get_tracer("app").start_span("parent", attributes=CHAT).end()
    pid = os.fork()
    if pid == 0:
        tracers.get_tracer("app").start_span("child", attributes=CHAT).end()
        ours.recorder.shutdown()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    ours.recorder.shutdown()
    told = sorted((a["agentrec.stream"], a["agentrec.seq"]) for a in map(attributes, sink.logs))
    assert told == sorted(lines(rec))


def test_content_that_stands_in_the_events_is_not_sent_out(rec: Path) -> None:
    with pytest.raises(ConfigurationError, match="content=inline"):
        Recorder(Settings.load(path=rec, events="otlp", content="inline"))


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_finished_recording_is_sent_the_same_way(
    rec: Path, scheme: str, sink: HttpSink, grpc_sink: GrpcSink, capsys: Out
) -> None:
    with Recorder(Settings.load(path=rec)) as recorder:
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(AgentRecSpanProcessor(recorder=recorder))
        tracers.get_tracer("app").start_span("chat m", attributes=CHAT).end()
    to: Any = sink if scheme == "http" else grpc_sink
    url = to.url.replace("http", scheme)
    assert run(["export", str(rec), "--otlp", url, "--events", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == len(lines(rec))
    check(to, rec)
    assert run(["export", str(rec), "--otlp", url, "--events"]) == 0
    assert capsys.readouterr().out == "nothing new to send\n"
    assert run(["export", str(rec), "--otlp", url]) == 0  # spans are counted by themselves
    assert capsys.readouterr().out.startswith("1 span sent")


def test_our_own_events_are_no_steps_of_an_agent(
    rec: Path, tmp_path: Path, sink: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a Collector kept of them is read by ``ingest`` as nothing, and so it is by ``serve``, which reads the same way."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    record(rec).shutdown()
    (tmp_path / "logs.pb").write_bytes(b"".join(r.SerializeToString() for r in sink.log_requests))
    report = ingest([tmp_path / "logs.pb"], tmp_path / "again")
    assert list(read_nodes(tmp_path / "again")) == []
    assert report is not None
    types = {line["event"]["type"] for line in lines(tmp_path / "again").values()}
    assert types <= {"STREAM_OPENED", "PROVIDER_SEEN", "STREAM_SEALED"}


def test_events_that_a_receiver_rejects_of_a_batch_that_it_takes_are_counted(
    rec: Path, sink: HttpSink, monkeypatch: pytest.MonkeyPatch, capfd: Out
) -> None:
    sink.rejects = 1
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
    ours = AgentRecSpanProcessor(rec, events="otlp")
    provider(ours).get_tracer("app").start_span("chat", attributes=CHAT).end()
    assert ours.recorder.force_flush()
    told = ours.recorder.stats()
    assert told["events_lost"] == len(sink.log_requests) and told["events_sent"] == len(sink.logs) - told["events_lost"]
    assert "the receiver rejected some: too old" in capfd.readouterr().err

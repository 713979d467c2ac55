"""Recording switched on in the program, and OTel's global providers under watch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import _logs, trace
from opentelemetry._logs import _internal as logs_internal
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agentrec.capture.bootstrap import Providers
from otel_agentrec.capture.configure import configure, start_from_environment
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.capture.recorders import _BY_PATH
from otel_agentrec.errors import ConfigurationError
from otel_agentrec.settings import Settings
from tests.capture.recording import events, types

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": "[]"}

pytestmark = pytest.mark.usefixtures("otel_globals", "no_recorders_left")


@pytest.fixture
def no_recorders_left() -> Iterator[None]:
    yield
    for recorder in list(_BY_PATH.values()):
        recorder.shutdown()


def call(tracer: Any = None) -> None:
    with (tracer or trace.get_tracer("app")).start_as_current_span("chat m", attributes=CHAT):
        pass


def test_one_line_records_and_the_with_block_closes(tmp_path: Path) -> None:
    with configure(tmp_path / "rec") as recorder:
        call()
    call()
    assert types(tmp_path / "rec") == ["NODE_STARTED", "NODE_RECORDED"]
    assert events(tmp_path / "rec")[-1]["type"] == "STREAM_SEALED"
    assert recorder.stats()["nodes"] == 1


def test_a_tracer_from_before_and_providers_that_are_there_are_used(tmp_path: Path) -> None:
    early = trace.get_tracer("early")
    exporter, provider, logs = InMemorySpanExporter(), TracerProvider(), LoggerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    _logs.set_logger_provider(logs)
    with configure(tmp_path / "rec"):
        call(early)
        assert trace.get_tracer_provider() is provider
        assert _logs.get_logger_provider() is logs
    assert len(exporter.get_finished_spans()) == 1
    assert len(events(tmp_path / "rec", "NODE_RECORDED")) == 1


def test_the_same_path_gives_the_same_recorder_and_records_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = configure(tmp_path / "rec")
    monkeypatch.chdir(tmp_path)
    assert configure("rec") is first
    assert configure(Path("x") / ".." / "rec") is first
    call()
    assert len(events(tmp_path / "rec", "NODE_RECORDED")) == 1


def test_another_path_is_a_clear_error_until_the_first_is_shut_down(tmp_path: Path) -> None:
    first = configure(tmp_path / "one")
    with pytest.raises(ConfigurationError, match=r"already recording to .*one, not to .*two") as error:
        configure(tmp_path / "two")
    assert "shutdown()" in error.value.hint
    first.shutdown()
    second = configure(tmp_path / "two")
    assert second is not first
    call()
    assert not (tmp_path / "one").exists()
    assert len(events(tmp_path / "two", "NODE_RECORDED")) == 1


def test_a_relative_path_stays_where_it_was_when_the_program_changes_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    configure("rec")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    call()
    assert (tmp_path / "rec").is_dir()


def test_the_path_may_come_from_the_environment_and_must_come_from_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="no path"):
        configure()
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "rec"))
    assert configure().path == str(tmp_path / "rec")


def test_content_off_asks_for_nothing(tmp_path: Path) -> None:
    configure(tmp_path / "rec", content="off")
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" not in os.environ


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("OTEL_SDK_DISABLED", "true", "OTEL_SDK_DISABLED=true"),
        ("OTEL_AGENTREC_ENABLED", "false", None),
        ("OTEL_AGENTREC_PAHT", "x", "did you mean OTEL_AGENTREC_PATH?"),
    ],
)
def test_what_the_environment_says_is_obeyed_and_told_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: str,
    says: str | None,
) -> None:
    monkeypatch.setenv(name, value)
    configure(tmp_path / "rec")
    call()
    assert (tmp_path / "rec").exists() is (name == "OTEL_AGENTREC_PAHT")
    lines = capsys.readouterr().err.splitlines()
    assert [says in line for line in lines] == [True] if says else not lines


def test_a_provider_that_takes_no_processor_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.set_tracer_provider(trace.NoOpTracerProvider())
    configure(tmp_path / "rec")
    call()
    assert "NoOpTracerProvider is no SDK provider" in capsys.readouterr().err


def test_what_records_the_whole_process_stays_and_configure_joins_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "outer"))
    outer = start_from_environment("opentelemetry-instrument")
    assert configure(tmp_path / "inner") is outer
    call()
    assert len(events(tmp_path / "outer", "NODE_RECORDED")) == 1
    assert not (tmp_path / "inner").exists()
    assert "through opentelemetry-instrument" in capsys.readouterr().err


def test_start_from_environment_does_nothing_when_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert start_from_environment("x") is None
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "rec"))
    monkeypatch.setenv("OTEL_AGENTREC_ENABLED", "0")
    assert start_from_environment("x") is None


class TestProvidersUnderWatch:
    """What ``run`` does with OTel's globals; end to end it stands in test_ways."""

    @pytest.fixture
    def recorder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
        for owner, name in (
            (trace, "_set_tracer_provider"),
            (logs_internal, "_set_logger_provider"),
            (trace.ProxyTracer, "_tracer"),
            (logs_internal.ProxyLogger, "_logger"),
        ):
            monkeypatch.setattr(owner, name, vars(owner)[name])
        recorder = Recorder(Settings.load({}, path=tmp_path / "rec"), way="otel-agentrec run")
        yield recorder
        recorder.shutdown()

    def test_nothing_is_set_before_the_first_span(self, recorder: Recorder) -> None:
        Providers(recorder).watch()
        tracer = trace.get_tracer("app")
        assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        call(tracer)
        assert isinstance(trace.get_tracer_provider(), TracerProvider)
        assert recorder.stats()["nodes"] == 1

    def test_no_thread_loses_its_first_span(self, recorder: Recorder) -> None:
        Providers(recorder).watch()
        start = threading.Barrier(8)

        def work(tracer: Any) -> None:
            start.wait(10)
            call(tracer)

        threads = [threading.Thread(target=work, args=[trace.get_tracer(f"app{n}")]) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert recorder.stats()["nodes"] == 8

    def test_a_provider_that_comes_late_gets_what_early_tracers_make(self, recorder: Recorder) -> None:
        Providers(recorder).watch()
        tracer = trace.get_tracer("app")
        call(tracer)
        open_one = tracer.start_span("chat m", attributes=CHAT)
        exporter, provider = InMemorySpanExporter(), TracerProvider()
        trace.set_tracer_provider(provider)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        assert trace.get_tracer_provider() is provider
        call(tracer)
        open_one.end()
        assert [span.resource for span in exporter.get_finished_spans()] == [provider.resource]
        assert recorder.stats()["nodes"] == 3
        provider.shutdown()
        _logs.get_logger_provider().shutdown()  # type: ignore[attr-defined]
        assert events(Path(recorder.path))[-1]["type"] == "STREAM_SEALED", "the stand-in does not keep it open"

    def test_a_second_provider_is_refused_as_ever_but_recorded(
        self, recorder: Recorder, caplog: pytest.LogCaptureFixture
    ) -> None:
        Providers(recorder).watch()
        first, second = TracerProvider(), TracerProvider()
        trace.set_tracer_provider(first)
        trace.set_tracer_provider(second)
        assert trace.get_tracer_provider() is first
        assert "Overriding of current TracerProvider" in caplog.text
        call(second.get_tracer("app"))
        assert recorder.stats()["nodes"] == 1

    @pytest.mark.parametrize("method", ["_make", "_make_room", "_move_to"])
    def test_an_exception_in_the_watch_never_reaches_the_program(
        self, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], method: str
    ) -> None:
        def fail(*args: Any) -> None:
            raise RecursionError("planted")

        monkeypatch.setattr(Providers, method, fail)
        Providers(recorder).watch()
        call(trace.get_tracer("early"))
        trace.set_tracer_provider(TracerProvider())
        call()
        assert recorder.stats()["swallowed"] >= 1
        assert "planted" in capsys.readouterr().err

"""The providers that ``OTEL_PYTHON_TRACER_PROVIDER`` and ``OTEL_PYTHON_LOGGER_PROVIDER`` name, as the API loads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider

import otel_agentrec
from otel_agentrec import otel
from tests.capture.recording import events, types

pytestmark = pytest.mark.usefixtures("otel_globals")

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": "[]"}
Out = pytest.CaptureFixture[str]


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API finds our factories by name, whether or not this package is installed."""
    from opentelemetry._logs import _internal as logs

    monkeypatch.setenv("OTEL_PYTHON_TRACER_PROVIDER", "agentrec")
    monkeypatch.setenv("OTEL_PYTHON_LOGGER_PROVIDER", "agentrec")
    monkeypatch.setattr(trace, "_load_provider", lambda *_: otel.tracer_provider())
    monkeypatch.setattr(logs, "_load_provider", lambda *_: otel.logger_provider())


def call() -> None:
    with trace.get_tracer("app").start_as_current_span("chat m", attributes=CHAT):
        _logs.get_logger("app").emit(_logs.LogRecord(event_name="gen_ai.evaluation.result"))


def test_what_they_make_is_recorded(named: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "rec"))
    call()
    assert types(tmp_path / "rec") == ["NODE_STARTED", "LOG_RECORDED", "NODE_RECORDED"]
    assert os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] == "SPAN_ONLY"


def test_configure_joins_in_and_is_told_so(
    named: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "rec"))
    recorder = otel_agentrec.configure(tmp_path / "rec")
    call()
    assert len(events(tmp_path / "rec", "NODE_RECORDED")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "otel-agentrec: already recording through OTEL_PYTHON_TRACER_PROVIDER: configure() changes nothing"
    assert otel_agentrec.configure(tmp_path / "rec") is recorder


def test_one_recorder_though_two_paths_are_named(
    named: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "rec"))
    call()
    recorder = otel_agentrec.configure(tmp_path / "elsewhere")
    call()
    assert recorder.path == str(tmp_path / "rec")
    assert otel_agentrec.configure(tmp_path / "elsewhere") is recorder, "asked again, the answer is the same"
    assert not (tmp_path / "elsewhere").exists()
    assert f"not to {tmp_path / 'elsewhere'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("OTEL_AGENTREC_LOG_LEVEL", "error", "OTEL_PYTHON_TRACER_PROVIDER has no path to record to"),
        ("OTEL_AGENTREC_QUEUE", "none", "not recording: OTEL_AGENTREC_QUEUE='none' can't be used"),
        ("OTEL_AGENTREC_ENABLED", "false", None),
    ],
)
def test_without_recording_they_are_providers_all_the_same(
    named: None, monkeypatch: pytest.MonkeyPatch, capsys: Out, name: str, value: str, says: str | None
) -> None:
    monkeypatch.setenv(name, value)
    call()
    assert isinstance(trace.get_tracer_provider(), TracerProvider)
    assert isinstance(_logs.get_logger_provider(), LoggerProvider)
    lines = capsys.readouterr().err.splitlines()
    assert [says in line for line in lines] == [True] if says else lines == []


def test_opentelemetry_switched_off_is_said_once(
    named: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "rec"))
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    call()
    assert not (tmp_path / "rec").exists()
    assert capsys.readouterr().err.splitlines() == [
        "otel-agentrec: OTEL_SDK_DISABLED=true: OpenTelemetry is off, nothing is recorded"
    ]

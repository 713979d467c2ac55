"""The instrumentor: a configuration file's options switch recording on, the call that every instrumentor gets does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec import configure
from otel_agentrec.otel.instrumentor import AgentRecInstrumentor
from tests.capture.recording import events, types

pytestmark = pytest.mark.usefixtures("otel_globals")

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": "[]"}
Out = pytest.CaptureFixture[str]


@pytest.fixture
def instrumentor() -> Iterator[AgentRecInstrumentor]:
    """It is one per process."""
    one = AgentRecInstrumentor()
    yield one
    if one.is_instrumented_by_opentelemetry:
        one.uninstrument()


def call() -> None:
    with trace.get_tracer("app").start_as_current_span("chat m", attributes=CHAT):
        pass


def test_options_are_settings_and_the_global_provider_is_recorded(
    instrumentor: AgentRecInstrumentor, tmp_path: Path
) -> None:
    trace.set_tracer_provider(TracerProvider())
    instrumentor.instrument(path=str(tmp_path / "rec"), run_id="r-1")
    call()
    assert types(tmp_path / "rec") == ["NODE_STARTED", "NODE_RECORDED"]
    assert events(tmp_path / "rec", "NODE_RECORDED")[0]["run"] == "r-1"
    instrumentor.uninstrument()
    assert events(tmp_path / "rec")[-1]["type"] == "STREAM_SEALED"


def test_the_call_that_all_get_starts_nothing_and_spoils_nothing(
    instrumentor: AgentRecInstrumentor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "by-variable"))
    instrumentor.instrument(skip_dep_check=True)
    assert not instrumentor.is_instrumented_by_opentelemetry
    instrumentor.instrument(path=str(tmp_path / "rec"))
    instrumentor.instrument(skip_dep_check=True)
    call()
    assert [path.name for path in tmp_path.iterdir()] == ["rec"]
    assert capsys.readouterr().err == ""


def test_a_file_may_leave_the_path_to_the_variable(
    instrumentor: AgentRecInstrumentor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instrumentor.instrument(content="inline")
    assert not instrumentor.is_instrumented_by_opentelemetry
    monkeypatch.setenv("OTEL_AGENTREC_PATH", str(tmp_path / "rec"))
    instrumentor.instrument(content="inline")
    call()
    assert len(events(tmp_path / "rec", "NODE_RECORDED")) == 1
    assert not list((tmp_path / "rec").glob("*.content.jsonl"))


def test_an_option_that_can_not_be_used_is_said_and_harms_nobody(
    instrumentor: AgentRecInstrumentor, tmp_path: Path, capsys: Out
) -> None:
    instrumentor.instrument(path=str(tmp_path / "rec"), chain=True)
    assert not instrumentor.is_instrumented_by_opentelemetry
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("otel-agentrec: the instrumentor agentrec records nothing: unknown setting 'chain'")
    call()
    assert not (tmp_path / "rec").exists()


def test_a_recorder_that_it_only_joined_is_not_its_to_close(instrumentor: AgentRecInstrumentor, tmp_path: Path) -> None:
    recorder = configure(tmp_path / "rec")
    instrumentor.instrument(path=str(tmp_path / "rec"))
    instrumentor.uninstrument()
    assert not recorder.is_closed
    call()
    assert len(events(tmp_path / "rec", "NODE_RECORDED")) == 1

"""``show --follow``: a run is printed call by call while it goes on."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.emit import AgentRun, agent_run
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.cli import following
from otel_agentrec.cli.app import run

Out = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE", 0.02)


@pytest.fixture
def provider(tmp_path: Path) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path / "rec"))
    return provider


def step(agent: AgentRun, words: str) -> None:
    with agent.step() as one:
        with one.model_call("Where?", model="gpt-5") as model:
            model.response(words)
        with one.tool_call("look", {"at": words}) as tool:
            tool.result("seen")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_is_followed_until_it_has_ended(
    tmp_path: Path, provider: TracerProvider, capsys: Out, as_json: bool
) -> None:
    begun, looked = threading.Event(), threading.Event()

    def work() -> None:
        with agent_run("planner", run_id="run-1", tracer_provider=provider) as agent:
            step(agent, "Oslo")
            begun.set()
            looked.wait(5)
            step(agent, "Bergen")

    writer = threading.Thread(target=work)
    writer.start()
    begun.wait(5)
    threading.Timer(0.2, looked.set).start()
    assert run(["show", str(tmp_path / "rec"), "run-1", "--follow", *(["--json"] if as_json else [])]) == 0
    writer.join()
    provider.shutdown()
    lines = capsys.readouterr().out.splitlines()
    if as_json:
        assert [json.loads(line)["nodeType"] for line in lines] == ["MODEL", "TOOL"] * 2
        return
    assert [line.split()[0] for line in lines] == ["run", "step", "step", "step", "step", "run"]
    assert "open" in lines[0] and "→ Oslo" in lines[1] and "at=Bergen" in lines[4] and "  ok  " in lines[5]


def test_without_a_run_the_newest_and_those_that_come_are_followed_until_ctrl_c(
    tmp_path: Path, provider: TracerProvider, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(words: str) -> None:
        with agent_run(words, tracer_provider=provider) as agent:
            step(agent, words)

    told("first")
    time.sleep(0.005)  # runs are ordered by milliseconds
    told("second")
    come = iter(["third"])

    def sleep(_: float) -> None:
        time.sleep(0.005)
        for words in come:
            told(words)
            return
        raise KeyboardInterrupt

    monkeypatch.setattr(following, "sleep", sleep)
    assert run(["show", str(tmp_path / "rec"), "--follow"]) == 130
    provider.shutdown()
    agents = [line.split()[2] for line in capsys.readouterr().out.splitlines() if line.startswith("run ")]
    assert agents == ["second", "third"]


def test_while_nothing_is_written_nothing_is_read_again(
    tmp_path: Path, provider: TracerProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agent_run("planner", tracer_provider=provider) as agent:
        step(agent, "Oslo")
    looks = following._looks(tmp_path / "rec")
    next(looks)
    pauses = iter(range(3))

    def sleep(_: float) -> None:
        if next(pauses, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(following, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        next(looks)
    provider.shutdown()

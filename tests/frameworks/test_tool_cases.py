"""Agents of real frameworks whose tools run in one process, and are answered, or refused, in a fresh one.

See :mod:`tests.frameworks.tool_agents.cases` for what they do, and what the modes are.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

HERE = Path(__file__).parent
SECONDS = 180
"""For one process: importing a framework for the first time compiles it."""

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + 5 * SECONDS)]

AGENTS = {
    "openai_agents": None,
    "pydantic_ai": None,
    "langgraph": None,
    "strands": "strands",
    "smolagents": "smolagents",
}
"""Module of ``tool_agents`` -> file in ``requirements``; None: the environment of the examples."""
CLIENTS = {"mcp": None, "mcp, version 1": "smolagents"}
WITHOUT_IDS = {"smolagents", "mcp"}
WITHOUT_SPAN = {"langgraph", "mcp"}
REFUSED = "raised UnknownOutcomeError: nobody knows whether weather happened"
USE_NO_WEATHER = {"trouble", "retried", "progress", "text"}
"""Cases that call other tools."""

Played = dict[str, dict[str, Any]]
"""What each case did, by its name."""


def play(framework: str, requirements: str | None, modes: str, file: Path) -> dict[str, Played]:
    """What was played in each mode, in a process of its own."""
    python = (
        environments.python()
        if requirements is None
        else environments.python_with(HERE / "requirements" / f"{requirements}.txt")
    )
    done = subprocess.run(
        [python, "-m", "tests.frameworks.tool_agents.cases", framework, modes, file],
        env=environments.environment(),
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, Played] = json.loads(done.stdout.splitlines()[-1])
    return said


class Runs:
    """A framework's cases in all modes."""

    def __init__(self, name: str, file: Path) -> None:
        self.framework = name.partition(",")[0]
        requirements = {**AGENTS, **CLIENTS}[name]
        self.modes = {
            **play(self.framework, requirements, "keep", file),
            **play(self.framework, requirements, "answer,inner,stop", file),
        }
        self.keep, self.answer, self.inner, self.stop = self.modes.values()


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(request.param, tmp_path_factory.mktemp("tools") / "outcomes.json")


agents = pytest.mark.parametrize("runs", AGENTS, indirect=True)
everyone = pytest.mark.parametrize("runs", [*AGENTS, *CLIENTS], indirect=True)
langgraph = pytest.mark.parametrize("runs", ["langgraph"], indirect=True)


def of(played: Played, what: str) -> dict[str, Any]:
    return {name: case[what] for name, case in played.items()}


@everyone
def test_every_call_is_seen_once(runs: Runs) -> None:
    for name, case in runs.keep.items():
        inner = name == "nested"  # the tool that asks an agent does not count its runs
        assert len(case["calls"]) == len(case["ran"]) + inner, name
        assert case["with span"] == (runs.framework not in WITHOUT_SPAN), name


@agents
def test_a_call_is_as_the_model_made_it(runs: Runs) -> None:
    ids = [None, None] if runs.framework in WITHOUT_IDS else ["call-1", "call-2"]
    hook = {"langgraph": "langchain"}.get(runs.framework, runs.framework.replace("_", "-"))
    wanted = [
        [hook, "last_train", {"start": "Finse", "to": "Oslo"}, ids[1]],
        [hook, "weather", {"place": "Finse"}, ids[0]],
    ]
    assert runs.keep["whole"]["calls"] == runs.keep["streamed"]["calls"] == wanted


@everyone
def test_answered_tools_do_not_run_and_all_goes_as_it_went(runs: Runs) -> None:
    assert [ran for ran in of(runs.answer, "ran").values() if ran] == []
    assert of(runs.answer, "said") == of(runs.keep, "said")
    for name, case in runs.answer.items():
        if name != "nested":  # what happened inside the answered agent is not there
            assert case["calls"] == runs.keep[name]["calls"], name
        if name not in ("nested", "mcp", "called"):  # the MCP SDK has spans of its own for what it sends
            assert case["spans"] == runs.keep[name]["spans"], name


@agents
def test_the_agent_said_what_its_tools_gave_or_raised(runs: Runs) -> None:
    for name in ("whole", "streamed"):
        assert "Finse: light rain from 15:00" in runs.keep[name]["said"]
        assert "Finse to Oslo: 21:42, platform 3" in runs.keep[name]["said"]
    assert "the line from Nowhere is closed for 3 days" in runs.keep["trouble"]["said"]


@agents
def test_an_agent_that_is_a_tool_is_answered_as_a_whole_or_runs_again_with_its_tools_answered(runs: Runs) -> None:
    names = {mode: [call[1] for call in played["nested"]["calls"]] for mode, played in runs.modes.items()}
    both = ["expert", "weather"]
    assert names == {"keep": both, "answer": ["expert"], "inner": both, "stop": both}
    assert runs.inner["nested"]["ran"] == []
    assert of(runs.inner, "said") == of(runs.keep, "said")
    assert runs.inner["nested"]["spans"] == runs.keep["nested"]["spans"]
    knows = runs.framework in ("openai_agents", "strands", "smolagents")
    assert runs.keep["nested"]["containers"] == (["expert"] if knows else [])


@everyone
def test_a_refusal_comes_through(runs: Runs) -> None:
    for name, case in runs.stop.items():
        assert "weather" not in case["ran"], name
        if name not in USE_NO_WEATHER:
            assert case["said"] == REFUSED, name


@agents
def test_a_refusal_cuts_no_tool_beside_it(runs: Runs) -> None:
    assert runs.stop["beside"]["ran"] == ["ferry"]
    assert {name: case["cut"] for name, case in runs.stop.items() if case["cut"]} == {}


@langgraph
def test_where_a_framework_makes_text_of_exceptions_a_refusal_stays_one(runs: Runs) -> None:
    assert "Please fix your mistakes" in runs.keep["text of errors"]["said"]
    assert runs.stop["text of errors"]["said"] == REFUSED

"""Agents of real frameworks whose tools are recorded in one process and answered in a fresh one.

In the first process the agent is built before its framework is patched, in the second after.
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

TOGETHER = "autogen-haystack-llama-index"
FRAMEWORKS = {
    "agent_framework": "adk-agent-framework",
    "autogen": TOGETHER,
    "crewai": "crewai",
    "google_adk": "adk-agent-framework",
    "haystack": TOGETHER,
    "llama_index": TOGETHER,
}
"""Framework -> the requirements of its environment."""
GIVES_CALL_ID = {"agent_framework", "autogen", "google_adk"}
WET = {"name": "weather", "arguments": {"place": "Finse"}}
TRAIN = {"name": "last_train", "arguments": {"start": "Finse", "to": "Oslo"}}
NOWHERE = {"name": "last_train", "arguments": {"start": "Nowhere", "to": "Oslo"}}

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + 4 * SECONDS)]


def play(framework: str, mode: str, file: Path, program: str = "tool_agents") -> dict[str, Any]:
    python = environments.python_with(HERE / "requirements" / f"{FRAMEWORKS[framework]}.txt")
    done = subprocess.run(
        [python, "-m", f"tests.frameworks.{program}", framework, mode, file],
        env=environments.environment(),
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.fixture(scope="module", params=FRAMEWORKS)
def twice(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, Any]:
    """(framework, what its agent did, what it did when its tools were answered)."""
    file = tmp_path_factory.mktemp(request.param) / "outcomes.json"
    return request.param, play(request.param, "keep", file), play(request.param, "answer", file)


def test_every_call_is_seen_once_with_the_arguments_of_the_model(twice: tuple[str, Any, Any]) -> None:
    framework, real, _ = twice
    streamed = [WET] if framework == "llama_index" else [WET, TRAIN]
    called = [{"name": call["name"], "arguments": call["arguments"]} for call in real["calls"]]
    beside = len(streamed) + 2  # two calls side by side begin in any order
    assert sorted(called[:beside], key=str) == sorted([WET, TRAIN, *streamed], key=str)
    assert called[beside:] == [NOWHERE, NOWHERE]
    assert len(real["ran"]) == len(called)
    ids = {(call["name"], call["call_id"]) for call in real["calls"][:2]}
    known = framework in GIVES_CALL_ID
    assert ids == {("weather", "call-1" if known else None), ("last_train", "call-2" if known else None)}


def test_answered_tools_do_not_run_and_the_agent_says_the_same(twice: tuple[str, Any, Any]) -> None:
    _, real, answered = twice
    assert answered["ran"] == []
    assert "Finse to Oslo: 21:42, platform 3" in real["done"]["whole"]
    assert {case: answered["done"][case] for case in real["done"]} == real["done"]
    assert sorted(answered["calls"], key=str) == sorted(real["calls"], key=str)
    assert answered["requests"] == real["requests"]


def test_what_a_tool_raised_is_raised_again_as_the_same_class(twice: tuple[str, Any, Any]) -> None:
    framework, real, answered = twice
    raised = "haystack.tools.errors.ToolInvocationError" if framework == "haystack" else "LineClosed"
    for done in (real["done"], answered["done"]):
        assert done["by hand"].startswith("raised ") and raised in done["by hand"]
        assert done["by hand"].endswith("the line from Nowhere is closed for 3 days")


def test_spans_are_the_same(twice: tuple[str, Any, Any]) -> None:
    _, real, answered = twice
    for spans in (real["spans"], answered["spans"]):
        spans.pop("BaseWorkflowAgent.aggregate_tool_results", None)  # once for results that come together
    assert sum(real["spans"].values()) > 0
    assert sorted(answered["spans"].values()) == sorted(real["spans"].values())


def test_a_stopped_run_ends_at_once_and_its_model_is_told_nothing(twice: tuple[str, Any, Any]) -> None:
    _, _, answered = twice
    for how in ("stopped", "stopped streamed"):
        error, _, asked = answered["done"][how].partition(": nobody knows whether ")
        assert error == "raised otel_agentrec.errors.UnknownOutcomeError"
        assert asked in ("weather happened", "last_train happened")  # they run side by side
    assert answered["done"]["stopped requests"] == 2


# --- special cases, in the modes of tool_agents/cases.py --------------------------------------------------------------


@pytest.fixture(scope="module", params=FRAMEWORKS)
def special(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Mode → special case → what it did."""
    file = tmp_path_factory.mktemp(request.param) / "outcomes.json"
    kept = play(request.param, "keep", file, "tool_agents.cases")
    modes = {**kept, **play(request.param, "answer,inner,stop", file, "tool_agents.cases")}
    return {
        mode: {name: case for name, case in cases.items() if name not in ("whole", "streamed", "trouble")}
        for mode, cases in modes.items()
    }


def parts(said: str) -> list[str]:
    """What tools gave, in any order: some frameworks take results as they come."""
    return sorted(said.replace("They gave: ", "; ").split("; "))


def test_special_cases_go_as_they_went_when_they_are_answered(special: dict[str, Any]) -> None:
    for mode in ("answer", "inner"):
        for name, case in special[mode].items():
            assert (parts(case["said"]), case["ran"]) == (parts(special["keep"][name]["said"]), []), (mode, name)
    assert {name: len(case["calls"]) for name, case in special["inner"].items()} == {
        name: len(case["calls"]) for name, case in special["keep"].items()
    }


def test_an_agent_that_is_a_tool_is_answered_as_a_whole_or_runs_again(special: dict[str, Any]) -> None:
    names = {mode: [call[1] for call in cases["nested"]["calls"]] for mode, cases in special.items()}
    both = ["expert", "weather"]
    assert names == {"keep": both, "answer": ["expert"], "inner": both, "stop": both}


def test_a_refusal_cuts_no_tool_beside_it(special: dict[str, Any]) -> None:
    refused = "raised UnknownOutcomeError: nobody knows whether weather happened"
    for name in ("nested", "beside"):
        assert special["stop"][name]["said"] == refused
    assert special["stop"]["beside"]["ran"] == ["ferry"]
    assert [case["cut"] for case in special["stop"].values() if case["cut"]] == []


SAID = """
import asyncio, sys
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.install import install
from otel_agentrec.intercept.protocol import ToolOutcome

RAN = []

class Saying:
    def answer(self, call):
        return ToolOutcome({"receipt": "r-1"})

def pay(order: str) -> dict[str, str]:
    "Pay an order."
    RAN.append(order)
    return {"receipt": "r-1"}

def texts():
    if sys.argv[1] == "llama_index":
        from llama_index.core.tools import FunctionTool
        tool = FunctionTool.from_defaults(pay)
        both = [tool.call(order="o-1"), asyncio.run(tool.acall(order="o-1"))]
        return [(out.content, out.raw_output, out.tool_name, out.raw_input) for out in both]
    from agent_framework import FunctionTool, tool
    made = tool(pay)
    return [content.text for content in asyncio.run(made.invoke(arguments={"order": "o-1"}))]

plain, RAN[:] = texts(), []
install()
with using(tools=Saying()):
    assert texts() == plain, (texts(), plain)
assert not RAN
print("same")
"""


@pytest.mark.parametrize("framework", ["llama_index", "agent_framework"])
def test_what_an_operator_says_is_given_as_if_the_function_had_returned_it(framework: str) -> None:
    python = environments.python_with(HERE / "requirements" / f"{FRAMEWORKS[framework]}.txt")
    done = subprocess.run(
        [python, "-c", SAID, framework],
        env=environments.environment(),
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.stdout == "same\n", done.stderr[-4000:]

"""Agents of every framework whose tools are intercepted, unchanged, under ``otel-agentrec run`` with their usual telemetry.

Each is asked twice, whole and streamed, and calls two tools side by side; its first request is refused with a 429. It is
recorded twice, in two processes, and then answered from the first recording.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.journal.reader import Recording
from otel_agentrec.journal.resumekey import NAME as RESUME_KEY
from otel_agentrec.nodes.effects import Effect, read_effects
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.nodes.wire import WireRecord, read_wire
from otel_agentrec.records import NodeIoRecord, NodeType
from tests.frameworks.tool_agents import stage

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

HERE = Path(__file__).parent
SECONDS = 300
"""For one process: importing a framework for the first time compiles it."""

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + 4 * SECONDS)]

TOGETHER = "autogen-haystack-llama-index"


@dataclass(frozen=True)
class Case:
    """``module`` of ``tool_agents``; ``packages``: file in ``requirements``, None: the environment of the examples; ``rung``:
    by which a call finds its record (whole, and when it is streamed, where that is another one); ``off``: instrumentations that are not started; ``bare``: the
    framework's own telemetry is off."""

    module: str
    packages: str | None
    rung: str
    hook: str
    off: str = ""
    bare: bool = False
    tools: tuple[str, ...] = ("weather", "last_train", "weather", "last_train")


CASES = {
    "openai-agents": Case("openai_agents", None, "exact", "openai-agents"),
    "openai-agents, only its own spans": Case("openai_agents", None, "exact", "openai-agents", off="openai"),
    "openai-agents with MCP": Case("openai_agents_mcp", None, "exact", "openai-agents", tools=("weather", "weather")),
    "pydantic-ai": Case("pydantic_ai", None, "exact", "pydantic-ai", off="openai"),
    "pydantic-ai without telemetry": Case("pydantic_ai", None, "none", "pydantic-ai", off="openai", bare=True),
    "langgraph": Case("langgraph", None, "exact", "langchain"),
    "langgraph, traced by callbacks": Case("langgraph", None, "response_id", "langchain", off="openai"),
    "strands": Case("strands", "strands", "exact", "strands"),
    "smolagents": Case("smolagents", "smolagents", "exact", "smolagents"),
    "crewai": Case("crewai", "crewai", "none", "crewai"),
    "google-adk": Case("google_adk", "adk-agent-framework", "exact", "google-adk"),
    "agent-framework": Case("agent_framework", "adk-agent-framework", "exact", "agent-framework"),
    "autogen": Case("autogen", TOGETHER, "none", "autogen"),
    "llama-index": Case(
        "llama_index", TOGETHER, "exact, ancestor", "llama-index", tools=("weather", "last_train", "weather")
    ),
    "haystack": Case("haystack", TOGETHER, "none", "haystack"),
}
REFUSED = Turn(status=429, headers={"retry-after-ms": "5"}, when=When(step=1))
FINAL = Turn(
    tool_calls=[Call("final_answer", {"answer": "They gave: {last}"}, id="call-9")],
    when=When(last="light rain|platform 3"),
    times=0,
)
"""Smolagents says its answer by a call of a tool."""
RESULTS = {"weather": "Finse: light rain from 15:00", "last_train": "Finse to Oslo: 21:42, platform 3"}
ARGUMENTS = {"weather": {"place": "Finse"}, "last_train": {"start": "Finse", "to": "Oslo"}}


@dataclass
class Recorded:
    """What a process printed, and what it recorded."""

    path: Path
    said: dict[str, Any]

    @cached_property
    def records(self) -> list[NodeIoRecord]:
        """Those of the agent's process: a server of tools that it starts tells its side of a call in a trace of its own."""
        found = list(read_nodes(self.path))
        (own,) = {r.journal.stream for r in found if r.node_type is NodeType.MODEL and r.journal is not None}
        return [r for r in found if r.journal is not None and r.journal.stream == own]

    @property
    def models(self) -> list[NodeIoRecord]:
        return [r for r in self.records if r.node_type is NodeType.MODEL]

    @property
    def tools(self) -> list[NodeIoRecord]:
        return [r for r in self.records if r.node_type is NodeType.TOOL and r.tool_name != "final_answer"]

    @cached_property
    def wires(self) -> list[WireRecord]:
        return list(read_wire(self.path))

    @cached_property
    def effects(self) -> list[Effect]:
        found = read_effects(Recording(self.path), self.records)
        own = {record.journal.stream for record in self.records if record.journal is not None}
        return [effect for effect in found if effect.name != "final_answer" and effect.stream in own]


@dataclass
class Played:
    case: Case
    first: Recorded
    again: Recorded
    address: str
    """Of the model: nobody listens there any more."""


def command(case: Case, *words: str) -> list[str]:
    """The command line of the agent."""
    packages = case.packages
    python = (
        environments.python()
        if packages is None
        else environments.python_with(HERE / "requirements" / f"{packages}.txt")
    )
    bare = ["bare"] if case.bare else []
    return [str(python), "-m", "tests.frameworks.tool_agents.unchanged", case.module, *words, *bare]


def otel_agentrec(case: Case, *words: str) -> dict[str, Any]:
    """What the program printed that is run by this command."""
    more = {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": case.off} if case.off else {}
    done = subprocess.run(
        [sys.executable, "-m", "otel_agentrec", *words],
        env=environments.environment(**more),
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    printed = re.findall(r'{"whole":.*}', done.stdout)
    assert printed, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    said: dict[str, Any] = json.loads(printed[-1])
    return said


def script_of(case: Case) -> list[Turn]:
    return [REFUSED, *([FINAL] if case.module == "smolagents" else []), *stage.SCRIPT]


@pytest.fixture(scope="module", params=CASES)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp("whole")
    recorded: list[Recorded] = []
    for name in ("first", "again"):
        path = folder / name
        if recorded:  # keys differ from recording to recording, unless their secret is the same
            path.mkdir(mode=0o700)
            shutil.copy(folder / "first" / RESUME_KEY, path)
        with ScriptedServer(script_of(case), seed="whole") as server:
            address = server.base_url
            said = otel_agentrec(case, "run", "--out", str(path), "--", *command(case, address))
            assert [one.turn is not None for one in server.requests] == [True] * 5
        recorded.append(Recorded(path, said))
    first, again = recorded
    yield Played(case, first, again, address)


def test_the_agent_does_as_it_would(played: Played) -> None:
    said = played.first.said
    assert "light rain" in said["whole"] and "light rain" in said["streamed"]
    assert said["ran"] == sorted(played.case.tools)


def test_each_model_call_is_one_record_with_what_was_sent(played: Played) -> None:
    models = played.first.models
    assert [r.outputs["id"] for r in models] == [f"chatcmpl-whole{n:04d}" for n in (2, 3, 4, 5)]
    assert [r.retry_count for r in models] == [1, 0, 0, 0]
    assert models[0].retries == [{"statusCode": 429}]
    assert [len(r.wire_ids) for r in models] == [2, 1, 1, 1]
    assert {r.status for r in models} == {"ok"}
    for record in models:
        said = record.outputs["choices"][0]["message"]
        asked = [(call["id"], call["function"]["name"]) for call in said.get("tool_calls") or ()]
        assert [(call["id"], call["name"]) for call in record.tool_calls or ()] == asked
        if record.output_text is not None or said.get("content"):
            assert record.output_text == said["content"]


def test_each_call_is_hung_on_its_record_by_the_rung_that_is_expected(played: Played) -> None:
    first = played.first
    owned = [wire_id for record in first.models for wire_id in record.wire_ids]
    assert sorted(owned) == sorted(wire.wire_id for wire in first.wires)
    whole, _, streamed = played.case.rung.partition(", ")
    assert [wire.rung for wire in first.wires] == [whole] * 3 + [streamed or whole] * 2
    assert [wire.status for wire in first.wires] == [429, 200, 200, 200, 200]
    assert [(wire.attempt, wire.call == first.wires[0].wire_id) for wire in first.wires[:3]] == [
        (1, True), (2, True), (1, False),
    ]  # fmt: skip


def test_each_tool_is_one_record_with_what_it_was_given_and_gave(played: Played) -> None:
    tools = played.first.tools
    assert sorted(r.tool_name or "" for r in tools) == sorted(played.case.tools)
    for record in tools:
        name = str(record.tool_name)
        assert record.inputs["arguments"] == ARGUMENTS[name]
        assert RESULTS[name] in json.dumps(record.outputs)
        assert record.tool_call_id in ("call-1", "call-2")


def test_each_tool_is_one_effect_of_the_record(played: Played) -> None:
    first = played.first
    effects = first.effects
    assert sorted(e.name for e in effects) == sorted(played.case.tools)
    assert {(e.state, e.hook, e.lost) for e in effects} == {("done", played.case.hook, None)}
    spans = [span for record in first.tools for span in (record.span_id, *record.merged_span_ids)]
    assert all(e.span is not None and spans.count(e.span[1]) == 1 for e in effects)


def test_a_second_recording_has_the_same_keys_in_the_same_lanes(played: Played) -> None:
    one, other = played.first, played.again
    assert [wire.key for wire in one.wires] == [wire.key for wire in other.wires]
    assert all(wire.key for wire in one.wires)
    assert sorted((e.lane, str(e.key)) for e in one.effects) == sorted((e.lane, str(e.key)) for e in other.effects)
    assert one.said == other.said


def test_answered_from_the_recording_it_says_the_same_and_no_tool_runs(played: Played) -> None:
    case = played.case
    answered = otel_agentrec(case, "replay", str(played.first.path), "--", *command(case, played.address))
    assert answered == {**played.first.said, "ran": []}

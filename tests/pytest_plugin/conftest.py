"""A project of its own with an agent over the real openai SDK, a scripted model for it, and pytest runs in that project."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import otel_agentrec
from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.intercept import declared

OURS = [] if "agentrec" in entry_points(group="pytest11").names else ["-p", "otel_agentrec.pytest_plugin"]
"""How pytest finds the plugin where otel-agentrec is not installed."""

AGENT = """
import json
from openai import AsyncOpenAI, OpenAI
from otel_agentrec import resumable_tool

PROMPT = "You plan day trips. Look things up before you answer, and keep it short." + 40 * " Be kind."
OFFERED = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
RAN = []


@resumable_tool
def weather(place: str) -> str:
    RAN.append(place)
    return f"{place}: rain"


def asked(question, messages=()):
    return dict(model="gpt-5-mini", messages=[
        {"role": "system", "content": PROMPT}, {"role": "user", "content": question}, *messages], tools=OFFERED)


def run_tools(message):
    told = [message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)]
    for call in message.tool_calls:
        result = weather(**json.loads(call.function.arguments))
        told.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return told


def plan(question, steps=9):
    client, messages = OpenAI(), []
    for _ in range(steps):
        message = client.chat.completions.create(**asked(question, messages)).choices[0].message
        if not message.tool_calls:
            return message.content
        messages += run_tools(message)


async def plan_async(question):
    messages = []
    async with AsyncOpenAI() as client:
        while True:
            message = (await client.chat.completions.create(**asked(question, messages))).choices[0].message
            if not message.tool_calls:
                return message.content
            messages += run_tools(message)
"""

TEST = """
import agent


def test_plan(agentrec_recording):
    assert agent.plan("Oslo?") == "Take an umbrella."
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Asks for the weather, then answers, however often it is asked."""
    pytest.importorskip("openai")
    script = [
        Turn(tool_calls=[Call("weather", {"place": "Oslo"}, id="c1")], when=When(step=1), times=0),
        Turn("Take an umbrella.", times=0),
    ]
    with ScriptedServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-" + 40 * "a")
        yield server


@dataclass
class Result:
    """What a run of pytest said. ``outcomes``: test -> what became of it, by the last of its phases that did not pass."""

    code: int
    out: str
    outcomes: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        return self.out.splitlines()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            name = report.nodeid.rpartition("/")[2]
            self.outcomes[name] = report.outcome if report.when == "call" else f"{report.outcome} in {report.when}"


class Project:
    """A folder with ``agent.py`` and tests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("agent.py", AGENT)
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def change(self, old: str, new: str, name: str = "agent.py") -> None:
        text = (self.path / name).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        self.write(name, text.replace(old, new))

    def run(self, *words: str) -> Result:
        """pytest, in this process: what it has imported already is imported once."""
        for name in ("agent", "test_agent"):
            sys.modules.pop(name, None)
        result, out = Result(0, ""), io.StringIO()
        without = ("no:cacheprovider", "no:hypothesispytest", "no:xdist", "no:timeout")
        given = [*OURS, *(word for plugin in without for word in ("-p", plugin))]
        with contextlib.redirect_stdout(out):
            result.code = int(pytest.main([*given, "--capture=sys", "-W", "ignore", *words], plugins=[result]))
        result.out = out.getvalue()
        return result

    def run_alone(self, *words: str) -> str:
        """pytest in a process of its own, with all of its plugins -> what it printed."""
        command = [sys.executable, "-m", "pytest", *OURS, "-p", "no:cacheprovider", *words]
        paths = [str(Path(otel_agentrec.__file__).parent.parent), str(self.path)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=self.path, env=env, capture_output=True, text=True, timeout=100, check=False)
        return done.stdout + done.stderr

    def recordings(self) -> dict[str, bytes]:
        """Every file of every recording of the project."""
        found = [p for p in self.path.rglob("*") if p.is_file() and "recordings" in p.parts]
        return {str(p.relative_to(self.path)): p.read_bytes() for p in sorted(found)}

    def folders(self) -> list[str]:
        return sorted({str(Path(name).parent) for name in self.recordings()})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, otel_globals: None) -> Project:
    declared.forget()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the same second, another agent.py
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


@pytest.fixture
def recorded(project: Project, server: ScriptedServer) -> Project:
    """The project with ``test_plan`` recorded, and the model gone."""
    project.write("tests/test_agent.py", TEST)
    result = project.run("--agentrec=record")
    assert (result.code, result.outcomes) == (0, {"test_agent.py::test_plan": "passed"}), result.out
    server.stop()
    return project

"""The wire of a whole program: a real SDK, switched on from outside or by one line; nothing in the program knows of it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from otel_agentrec import configure
from otel_agentrec.capture import recorder
from otel_agentrec.cli.app import run
from otel_agentrec.demo.script import Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.export.spans import Exported
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.wire import read_wire
from otel_agentrec.settings import Settings
from tests.capture.recording import events
from tests.capture.shell import Shell

PROGRAM = """
import asyncio, os, sys
from openai import AsyncOpenAI, OpenAI
client = OpenAI(base_url=os.environ["MODEL"], api_key="none")
def ask(text, **more):
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], **more)
print(ask("Hello?").choices[0].message.content)
print("".join(c.choices[0].delta.content or "" for c in ask("A stream?", stream=True) if c.choices))
print(ask("Busy?").choices[0].message.content)
async def many():
    async with AsyncOpenAI(base_url=os.environ["MODEL"], api_key="none") as each:
        asked = (each.responses.create(model="m", input=f"Question {i}?") for i in range(4))
        return [answer.output_text for answer in await asyncio.gather(*asked)]
print(sorted(asyncio.run(many())))
"""
ANSWERS = "Good day.\nIn pieces.\nNot any more.\n['Answer.', 'Answer.', 'Answer.', 'Answer.']\n"


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    turns = [
        Turn("Good day.", when=When(last="Hello?")),
        Turn("In pieces.", when=When(last="A stream?")),
        Turn(status=429, headers={"retry-after-ms": "1"}, when=When(last="Busy?")),
        Turn("Not any more.", when=When(last="Busy?")),
        Turn("Answer.", times=0),
    ]
    with ScriptedServer(turns) as server:
        yield server


@pytest.fixture
def shell(tmp_path: Path, model: ScriptedServer) -> Shell:
    shell = Shell(tmp_path, model.base_url)
    shell.env["OTEL_TRACES_EXPORTER"] = "none"
    return shell


def check(shell: Shell, rungs: set[str]) -> list[Any]:
    records = shell.nodes()
    wires = list(read_wire(shell.rec))
    assert [r.output_text for r in records] == ["Good day.", "In pieces.", "Not any more.", *["Answer."] * 4]
    assert [r.retry_count for r in records] == [0, 0, 1, 0, 0, 0, 0]
    assert records[2].retries == [{"statusCode": 429}]
    assert len(wires) == 8
    assert {w.rung for w in wires} == rungs
    assert all(w.complete for w in wires)
    assert sorted(i for r in records for i in r.wire_ids) == sorted(w.wire_id for w in wires)
    assert records[1].outputs["choices"][0]["message"]["content"] == "In pieces."
    assert all(r.keys["wire"] for r in records)
    (covered,) = events(shell.rec, "COVERAGE")
    assert {"library": "httpx2", "covered": True}.items() <= {
        **next(row for row in covered["payload"]["points"] if row["library"] == "httpx2")
    }.items()
    return records


def test_under_run_each_call_of_an_instrumented_program_has_its_wire(shell: Shell) -> None:
    shell.write("app.py", PROGRAM)
    done = shell.run("python", "app.py")
    assert (done.returncode, done.stdout) == (0, ANSWERS), done.stderr
    check(shell, {"exact"})


def test_without_any_instrumentation_the_wire_makes_the_records(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.env["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = "*"
    shell.write("app.py", PROGRAM)
    done = shell.run("python", "app.py")
    assert (done.returncode, done.stdout) == (0, ANSWERS), done.stderr
    assert "7 model and tool calls recorded" in done.stderr
    records = check(shell, {"none"})
    assert records[0].inputs["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "Hello?"}]}]
    assert run(["nodes", str(shell.rec), "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [node["wire"]["rung"] for node in shown] == ["none"] * 7
    assert shown[0]["wire"]["requestBytes"] > 50
    assert run(["nodes", str(shell.rec), "--grep", "Busy"]) == 0
    assert "1 retry  wire 0." in capsys.readouterr().out
    spans = [span for _, _, span in Exported(Recording(shell.rec)).spans()]
    assert spans[-1].name == "app.py", "the run that no provider made a span of"
    assert all(span.resource.attributes["service.name"] for span in spans)


KILLED = """
import os, signal
from openai import OpenAI
from otel_agentrec import agent_run
client = OpenAI(base_url=os.environ["MODEL"], api_key="none")
with agent_run("asker"):
    for text in ("Hello?", "Again?", "Once more?"):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("time", range(3))
def test_who_is_killed_after_an_agent_has_ended_has_all_its_calls(shell: Shell, time: int) -> None:
    shell.env["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = "*"
    shell.write("app.py", KILLED)
    assert shell.run("python", "app.py").returncode == -signal.SIGKILL
    assert [(r.node_type, r.status, r.output_text) for r in shell.nodes()] == [
        ("MODEL", "ok", said) for said in ("Good day.", "Answer.", "Answer.")
    ]
    assert len(events(shell.rec, "RUN_ENDED")) == 1


def test_one_line_switches_it_on(shell: Shell) -> None:
    line = f"import otel_agentrec; otel_agentrec.configure({os.fspath(shell.rec)!r}, wire=True)\n"
    shell.write("app.py", line + PROGRAM)
    done = shell.plain("python", "app.py")
    assert (done.returncode, done.stdout) == (0, ANSWERS), done.stderr
    check(shell, {"none"})


@pytest.mark.parametrize("more", ["", "OTEL_AGENTREC_WIRE=false"])
def test_it_is_off_where_nobody_asked_for_it(shell: Shell, more: str) -> None:
    name, _, value = more.partition("=")
    line = f"import otel_agentrec; otel_agentrec.configure({os.fspath(shell.rec)!r})\n"
    shell.write("app.py", (line if not more else "") + PROGRAM)
    if more:
        shell.env.update({name: value, "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "*"})
    done = shell.plain("python", "app.py") if not more else shell.run("python", "app.py")
    assert (done.returncode, done.stdout) == (0, ANSWERS), done.stderr
    assert not shell.rec.exists() or not events(shell.rec, "WIRE_RECORDED")


@pytest.mark.parametrize("others", [0, 1])
def test_a_stream_that_is_dropped_without_close_keeps_what_has_come(
    tmp_path: Path, model: ScriptedServer, otel_globals: None, others: int
) -> None:
    """Whether or not another recorder watches, which goes on with it."""
    client = OpenAI(base_url=model.base_url, api_key="none")
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "A stream?"}], "stream": True}
    with ExitStack() as stack:
        for n in range(others):
            stack.enter_context(recorder.Recorder(Settings.load(path=tmp_path / f"other{n}", wire=True)))
        with configure(tmp_path / "rec", wire=True):
            stream = client.chat.completions.create(**asked)
            next(stream)
        if others:
            list(stream)
        (wire,) = read_wire(tmp_path / "rec")
        assert (wire.response.status, wire.response.end, wire.complete) == (200, "gone", False)
        assert wire.response.chunks[0][1].startswith(b"data: ")
    for n in range(others):
        (wire,) = read_wire(tmp_path / f"other{n}")
        assert (wire.response.end != "gone", wire.complete) == (True, True)

"""Every way of switching recording on gives what the table says of it, and any two together give no more and no less.

Programs in processes of their own, with the real openai SDK and OTel's instrumentation of it, against one scripted model.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.capture.ways import CODE, CONFIGURE, HOOK, INSTRUMENT, INSTRUMENTOR, PROVIDER, RUN, WAYS
from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.nodes.read import read_nodes
from tests.capture import shell as shells
from tests.capture.recording import events
from tests.capture.shell import ROOT, Shell, as_installed

APP = Path(__file__).with_name("ways_app.py")
TRACES_EXPORTER, FILE_EXPORTER = "OTEL_TRACES_EXPORTER", "OTEL_CONFIG_FILE, exporter"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@dataclass(frozen=True)
class Does:
    """What a user does for a way.

    Args:
        env: variables; ``REC`` in a value stands for the recording.
        code: what his program does itself.
        launcher: what he starts it with.
        file: what stands in his configuration file: the sections ``traces`` and ``logs`` and ``python``.
    """

    env: dict[str, str] = field(default_factory=dict)
    code: tuple[str, ...] = ("instrument",)
    launcher: str = ""
    file: tuple[str, ...] = ()


BY_PATH = {"OTEL_AGENTREC_PATH": "REC"}
HOW: dict[str, Does] = {
    RUN: Does(launcher="run", code=()),
    INSTRUMENT: Does(BY_PATH, launcher="instrument", code=()),
    PROVIDER: Does(
        {**BY_PATH, "OTEL_PYTHON_TRACER_PROVIDER": "agentrec", "OTEL_PYTHON_LOGGER_PROVIDER": "agentrec"},
    ),
    TRACES_EXPORTER: Does(
        {**BY_PATH, "OTEL_TRACES_EXPORTER": "agentrec", "OTEL_LOGS_EXPORTER": "agentrec"},
        ("configurator", "instrument"),
    ),
    FILE_EXPORTER: Does({}, ("configurator", "instrument"), file=("exporter",)),
    INSTRUMENTOR: Does({}, ("configurator", "instrument"), file=("instrumentor",)),
    CONFIGURE: Does(code=("configure", "instrument")),
    CODE: Does({CONTENT: "SPAN_ONLY"}, ("processor", "instrument")),
    HOOK: Does({"OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK": "agentrec"}),
}
BY_NAME = {way.name: way for way in WAYS}
ALONE = [name for name in HOW if BY_NAME[name].alone]
NEW_EACH_TIME = frozenset(
    [
        "recordId",
        "nodeId",
        "runId",
        "turnId",
        "traceId",
        "spanId",
        "parentSpanId",
        "responseId",
        "journal",
        "startedAtEpochMs",
        "capturedAtEpochMs",
        "durationMs",
        "keys",
    ]
)
NEEDS_FILE = {FILE_EXPORTER, INSTRUMENTOR}

PAIRS = list(itertools.combinations(HOW, 2))
ALWAYS = {
    (RUN, INSTRUMENT),
    (RUN, TRACES_EXPORTER),
    (INSTRUMENT, INSTRUMENTOR),
    (INSTRUMENT, TRACES_EXPORTER),
    (PROVIDER, CONFIGURE),
    (FILE_EXPORTER, INSTRUMENTOR),
    (RUN, CODE),
    (INSTRUMENT, HOOK),
}
"""Pairs that are tried by default: each way at least once, and all whose parts meet in the same callbacks."""


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    turns = [
        Turn(
            tool_calls=[Call("look_up", {"what": "sky"}, "call-1"), Call("look_up", {"what": "train"}, "call-2")],
            when=When(last="Plan", step=1),
            times=0,
        ),
        Turn("Go early.", when=When(any="Plan"), times=0),
        Turn("Good day.", times=0),
    ]
    with ScriptedServer(turns) as server:
        yield server.base_url


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return as_installed(tmp_path_factory.mktemp("site") / "packages")


@pytest.fixture
def shell(tmp_path: Path, model: str, site: Path) -> Shell:
    shell = Shell(tmp_path, model)
    shell.env["PYTHONPATH"] = f"{ROOT}:{site}"
    shell.env["REC"] = str(shell.rec)
    shell.env["OTEL_AGENTREC_WIRE"] = "false"  # what the spans tell is compared here
    shell.env.update(dict.fromkeys(("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "none"))
    return shell


def start(shell: Shell, ways: tuple[str, ...], mode: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The agent, with recording switched on in all these ways."""
    done = [HOW[way] for way in ways]
    for one in done:
        shell.env.update({name: value.replace("REC", str(shell.rec)) for name, value in one.env.items()})
    parts = [part for one in done for part in one.file]
    if parts:
        shell.env["OTEL_CONFIG_FILE"] = str(shell.write("otel.yaml", yaml(parts, shell.rec)))
    launchers = {one.launcher for one in done} - {""}
    code = {part for one in done for part in one.code}
    if launchers:
        code -= {"instrument", "configurator"}  # the launcher sees to it
    shell.env["WAYS_IN_CODE"] = ",".join(code)
    shell.env.update(env)
    argv = [sys.executable, str(APP), mode]
    if "instrument" in launchers:
        argv = [*shells.INSTRUMENT, *argv]
    return shell.run(*argv) if "run" in launchers else shell.plain(*argv)


def yaml(parts: list[str], rec: Path) -> str:
    lines = ['file_format: "1.0"']
    for section in ("tracer_provider", "logger_provider"):
        exporter = f"{{agentrec: {{path: {rec}}}}}" if "exporter" in parts else "{console: {}}"
        lines += [f"{section}:", "  processors:", f"    - simple: {{exporter: {exporter}}}"]
    if "instrumentor" in parts:
        lines += ["instrumentation/development:", "  python:", f"    agentrec: {{path: {rec}}}"]
    return "\n".join(lines) + "\n"


def told(rec: Path) -> list[dict[str, Any]]:
    """The records of a recording, without ids that are made anew and times."""
    records = [record.to_json() for record in read_nodes(rec)]
    return [{key: value for key, value in record.items() if key not in NEW_EACH_TIME} for record in records]


def skip_without_file(*ways: str) -> None:
    if NEEDS_FILE & set(ways) and find_spec("opentelemetry.configuration") is None:
        pytest.skip("opentelemetry-configuration is not installed")


def check_whole(shell: Shell, done: subprocess.CompletedProcess[str]) -> None:
    """The agent's four calls, each once, all of them whole."""
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    records = [record for record in read_nodes(shell.rec) if record.agent_name == "planner"]
    assert [(r.node_type.value, r.model_id or r.tool_name, r.status) for r in records] == [
        ("MODEL", "m", "ok"),
        ("TOOL", "look_up", "ok"),
        ("TOOL", "look_up", "ok"),
        ("MODEL", "m", "ok"),
    ]
    first, *tools, last = records
    assert [(c["id"], c["name"]) for c in first.tool_calls or ()] == [("call-1", "look_up"), ("call-2", "look_up")]
    assert [tool.outputs for tool in tools] == [{"found": "sky"}, {"found": "train"}]
    assert [tool.tool_call_id for tool in tools] == ["call-1", "call-2"]
    assert last.output_text == "Go early."
    assert first.input_tokens
    assert [message["role"] for message in last.inputs["messages"]] == ["user", "assistant", "tool", "tool"]
    assert len({record.run_id for record in records}) == 1
    report = verify(shell.rec)
    assert (report.exit_code, report.end) == (0, "proven_close")


@pytest.fixture(scope="module")
def same() -> list[list[dict[str, Any]]]:
    """What the ways that ran so far recorded."""
    return []


@pytest.mark.parametrize("name", ALONE)
def test_a_way_records_the_agent_and_what_the_table_says_besides(
    shell: Shell, name: str, same: list[list[dict[str, Any]]]
) -> None:
    skip_without_file(name)
    way = BY_NAME[name]
    done = start(shell, (name,), "whole")
    check_whole(shell, done)
    records = told(shell.rec)
    assert len(records) == (5 if way.unsampled else 4)
    same.append(records[:4])
    assert records[:4] == same[0], "each way records the same"
    assert bool(events(shell.rec, "NODE_STARTED")) == way.starts
    assert (HOW[name].code == ()) == way.begins, "whether the program had to start the instrumentation itself"
    assert (CONTENT not in HOW[name].env) == way.asks, "whether content had to be asked for"


@pytest.mark.parametrize("name", ALONE)
def test_what_a_way_leaves_of_a_killed_program(shell: Shell, name: str) -> None:
    """Messages go into log records here. One call was flushed, one has ended, one is open when the process is killed."""
    skip_without_file(name)
    way = BY_NAME[name]
    in_events = {CONTENT: "EVENT_ONLY", "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT": "true"}
    done = start(shell, (name,), "killed", **in_events)
    assert done.returncode == -9, done.stderr
    records = list(read_nodes(shell.rec))
    models = [record for record in records if record.node_type.value == "MODEL"]
    assert len(models) == (2 if way.kept else 1)
    assert (models[0].output_text == "Good day.") == way.logs
    assert [(r.tool_name, r.status) for r in records if r not in models] == [("unfinished", "interrupted")] * way.starts
    assert verify(shell.rec).exit_code == 3, "what is there is intact, its end is not proven"


@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, id=" + ".join(pair), marks=() if pair in ALWAYS else pytest.mark.slow) for pair in PAIRS],
)
def test_two_ways_together_record_each_call_once(shell: Shell, pair: tuple[str, str]) -> None:
    skip_without_file(*pair)
    done = start(shell, pair, "whole")
    check_whole(shell, done)
    assert len(list(read_nodes(shell.rec))) == (5 if any(BY_NAME[name].unsampled for name in pair) else 4)
    heard = set(pair) - {HOOK}
    if "configurator" in shell.env["WAYS_IN_CODE"] or {RUN, INSTRUMENT} & heard:
        heard.discard(PROVIDER)  # a provider is set before anybody asks for this one
    if NEEDS_FILE & heard:
        heard.discard(TRACES_EXPORTER)  # with a file, the variables don't count
    has_starts = any(BY_NAME[name].starts for name in heard)
    started = [e["trace"]["spanId"] for e in events(shell.rec, "NODE_STARTED")]
    assert len(started) == len(set(started)) == (4 if has_starts else 0), "the way that tells more is heard"
    assert RUN not in pair or "model and tool calls recorded in" in done.stderr
    told = [line for line in done.stderr.splitlines() if "already recording through" in line]
    assert len(told) == (len(heard) == 2 and heard != {RUN, INSTRUMENT}), "the first way in is named, once"


def test_with_content_off_a_warning_names_the_variable(shell: Shell) -> None:
    shell.env[CONTENT] = "NO_CONTENT"
    done = start(shell, (RUN,), "whole")
    assert done.returncode == 0, done.stderr
    first, *_ = read_nodes(shell.rec)
    assert (first.inputs["messages"], first.model_id, bool(first.input_tokens)) == (None, "m", True)
    (warning,) = (line for line in done.stderr.splitlines() if CONTENT in line)
    assert f"set {CONTENT}=SPAN_ONLY" in warning


def test_the_pairs_that_are_always_tried_hold_every_way() -> None:
    assert set(PAIRS) >= ALWAYS
    assert {name for pair in ALWAYS for name in pair} == set(HOW) == set(BY_NAME)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in (RUN, TRACES_EXPORTER, CONFIGURE) else pytest.mark.slow) for name in ALONE],
)
def test_beside_any_way_the_completion_hook_tells_what_was_said(shell: Shell, name: str) -> None:
    skip_without_file(name)
    done = start(shell, (name, HOOK), "whole", **{CONTENT: "NO_CONTENT"})
    assert done.returncode == 0, done.stderr
    models = [record for record in read_nodes(shell.rec) if record.node_type.value == "MODEL"]
    assert [(r.output_text, r.inputs["messages"][-1]["role"]) for r in models] == [
        (None, "user"),
        ("Go early.", "tool"),
        ("Good day.", "user"),
    ]
    assert [r.model_id for r in models[:2]] == ["m", "m"], "the last call was not sampled"
    assert len(models[0].tool_calls or ()) == 2
    assert verify(shell.rec).exit_code == 0

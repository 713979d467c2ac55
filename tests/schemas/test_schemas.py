"""The schemas that are shipped say what is written and printed: no event, cell or record of ours contradicts them, and
what is no event, cell or record does."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from opentelemetry.sdk.trace import TracerProvider

import otel_agentrec
from otel_agentrec import agent_run, ingest, read_nodes
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.cli.app import run
from otel_agentrec.journal.content import erased_line
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.events import TYPES
from otel_agentrec.journal.journal import Journal
from otel_agentrec.journal.store import FileEventStore
from otel_agentrec.schemas import FORMAT_DIRECTORY, NAMES, load
from otel_agentrec.schemas.build import as_text, build
from otel_agentrec.settings import Settings

Json = Any
Out = pytest.CaptureFixture[str]
DATA = Path(__file__).parent.parent / "data"
CONTENT = ("detached", "inline", "off")
VALIDATORS = {name: Draft202012Validator(load(name)) for name in NAMES}


def check(name: str, value: Json) -> None:
    error = next(VALIDATORS[name].iter_errors(value), None)
    if error is not None:
        leaf = min(error.context, key=lambda e: len(e.path), default=error) if error.context else error
        pytest.fail(f"{name} at {list(error.absolute_path)}: {leaf.message[:300]}\n{json.dumps(value)[:600]}")


def events(recording: Path) -> Iterator[dict[str, Json]]:
    for path in sorted(recording.rglob("*.jsonl")):
        if not path.name.endswith(".content.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                yield json.loads(line)["event"]


def cells(recording: Path) -> Iterator[dict[str, Json]]:
    for path in sorted(recording.rglob("*.content.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def check_recording(recording: Path) -> None:
    for event in events(recording):
        check("event", event)
    for cell in cells(recording):
        check("cell", cell)
    for record in read_nodes(recording):
        check("record", json.loads(json.dumps(record.to_json())))


# --- generated and shipped ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shipped_is_what_the_code_says(name: str) -> None:
    place = Path(otel_agentrec.__file__).parent / "schemas" / FORMAT_DIRECTORY / f"{name}.json"
    assert place.read_text(encoding="utf-8") == as_text(build()[name]), "python -m otel_agentrec.schemas writes it anew"


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(load(name))


def test_every_event_type_has_one_and_unknown_names_none() -> None:
    assert set(load("event")["$defs"]) >= set(TYPES)
    assert load("event")["properties"]["type"]["enum"] == list(TYPES)
    with pytest.raises(KeyError, match="there is no schema 'runs'"):
        load("runs")


# --- everything we write -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("configuration", sorted(p.name for p in (DATA / "corpus").iterdir()))
def test_recordings_of_real_telemetry(configuration: str, tmp_path: Path) -> None:
    ingest(sorted((DATA / "corpus" / configuration).glob("*.jsonl")), tmp_path / "rec")
    check_recording(tmp_path / "rec")


@pytest.mark.parametrize("content", CONTENT)
def test_recordings_of_the_cases(content: Any, tmp_path: Path) -> None:
    files = sorted((DATA / "cases").glob("*/*.otlp.jsonl"))
    assert files
    ingest(files, tmp_path / "rec", content=content)
    check_recording(tmp_path / "rec")


@pytest.mark.parametrize("content", CONTENT)
def test_live_recordings(content: str, tmp_path: Path) -> None:
    recorder = Recorder(Settings.load(path=tmp_path / "rec", content=content))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(AgentRecSpanProcessor(recorder=recorder))
    with agent_run("clerk", session_id="s", tracer_provider=provider) as outer:
        with outer.step() as step:
            with step.model_call("What is up?", model="gpt-5") as call:
                call.retry(TimeoutError("slow"))
                call.response("Nothing.")
            with pytest.raises(ValueError), step.tool_call("search", {"q": 2**70, "x": float("nan")}, call_id="c1"):
                raise ValueError("no")
        with (
            agent_run("helper", tracer_provider=provider) as inner,
            inner.step() as step,
            step.model_call("And you?", model="gpt-5") as call,
        ):
            call.response("Fine.")
        outer.final_output("All well.")
    tracer = provider.get_tracer("agent")
    tracer.start_span("embeddings e", attributes={"gen_ai.operation.name": "embeddings"}).end()
    left = tracer.start_span("execute_tool f", attributes={"gen_ai.operation.name": "execute_tool"})
    lost = tracer.start_span("chat m", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    del lost
    recorder._journal.drop(2, "test")
    recorder.shutdown()
    assert left.is_recording()
    check_recording(tmp_path / "rec")


@pytest.mark.slow
def test_the_demo_and_its_scores(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    root = str(Path(otel_agentrec.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])))
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--out", "rec"]) == 0
    record = next(read_nodes(tmp_path / "rec"))
    assert run(["score", "rec", record.record_id, "quality=0.5", "tone=calm", "--explanation", "why"]) == 0
    capsys.readouterr()
    assert run(["nodes", "rec", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 4
    for line in lines:
        check("record", json.loads(line))
    check_recording(tmp_path / "rec")


def test_segments_late_spans_and_forks(tmp_path: Path) -> None:
    recorder = Recorder(Settings.load(path=tmp_path / "rec", segment_bytes=4096))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(AgentRecSpanProcessor(recorder=recorder))
    tracer = provider.get_tracer("agent")
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.output.messages": "[]"}
    for _ in range(9):
        tracer.start_span("chat m", attributes=chat).end()
    if hasattr(os, "fork"):
        across = tracer.start_span("chat m", attributes=chat)
        pid = os.fork()
        if pid == 0:
            try:
                across.end()
                tracer.start_span("chat m", attributes=chat).end()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        across.end()
    provider.shutdown()
    tracer.start_span("chat m", attributes=chat).end()
    recorder.shutdown()
    check_recording(tmp_path / "rec")
    found = list(events(tmp_path / "rec"))
    opened = [e["payload"] for e in found if e["type"] == "STREAM_OPENED"]
    assert any("prevStream" in p for p in opened) and any("late" in p for p in opened)
    if hasattr(os, "fork"):
        assert any("forkedFrom" in e["payload"] for e in found if e["type"] == "NODE_AMENDED")
        assert any("parentStream" in p for p in opened)


def test_named_streams_that_were_torn(tmp_path: Path) -> None:
    store = FileEventStore(tmp_path / "rec")
    store.append("sessions/a", [NewEvent("EVALUATED", {"recordId": "r", "name": "n", "explanation": "why"})])
    with (tmp_path / "rec" / "sessions" / "a.jsonl").open("ab") as file:
        file.write(b'{"event":')
    store.append("sessions/a", [NewEvent("EVALUATED", {"recordId": "r", "name": "n", "score": 1})])
    assert "RECOVERED" in [e["type"] for e in events(tmp_path / "rec")]
    for event in events(tmp_path / "rec"):
        check("event", event)


def test_events_of_every_kind_of_value(tmp_path: Path) -> None:
    """What an agent hands over may be anything; what is written of it is still by the schema."""
    odd = {
        "$c": "0" * 64,
        "$$": [],
        "int": 2**64,
        "hex": 1 << 5_000,
        "nan": float("nan"),
        "minus zero": -0.0,
        "bytes": b"\x00\xff",
        "half": "\ud83d",
        "map": {1: "x", "a": {None: []}},
        "deep": _deep(200),
    }
    for content in CONTENT:
        journal = Journal(tmp_path / content, origin="here", content=content)  # type: ignore[arg-type]
        facts = {"model": "\ud83d", "inputTokens": 2**60, "otherTokens": {"x": 2**60}, "arguments": odd, "result": odd}
        journal.append("NODE_RECORDED", {"type": "TOOL", "name": "f", "facts": facts})
        journal.append("PROVIDER_SEEN", {"resource": odd})
        journal.append("LOG_RECORDED", {"name": "x", "body": odd, "attributes": odd})
        journal.append("EVALUATED", {"recordId": "r", "name": "n", "score": float("inf"), "explanation": odd})
        journal.seal()
        for event in events(tmp_path / content):
            check("event", event)
        for cell in cells(tmp_path / content):
            check("cell", cell)


def _deep(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


def test_an_erased_cell() -> None:
    check("cell", json.loads(erased_line(3, 17, 80)))


# --- and nothing else --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rec")
    ingest(sorted((DATA / "corpus" / "otel-genai-openai-span").glob("s3_*.jsonl")), out)
    return out


def node_of(recording: Path) -> dict[str, Json]:
    return next(
        e for e in events(recording) if e["type"] == "NODE_RECORDED" and e["payload"]["facts"].get("outputMessages")
    )


def _set(*path: Any) -> Callable[[dict[str, Json]], None]:
    """Change the value at a path: the last word is the value."""
    *above, key, value = path

    def change(whole: dict[str, Json]) -> None:
        at: Json = whole
        for step in above:
            at = at[step]
        at[key] = value

    return change


def _drop(*path: Any) -> Callable[[dict[str, Json]], None]:
    *above, key = path

    def change(whole: dict[str, Json]) -> None:
        at: Json = whole
        for step in above:
            at = at[step]
        del at[key]

    return change


OUT = ("payload", "facts", "outputMessages", "$list", 0)


@pytest.mark.parametrize(
    "change",
    [
        _set("v", "agentrec/2"),
        _set("seq", -1),
        _set("seq", "1"),
        _set("ts", "now"),
        _set("mono", 12),
        _set("id", "1"),
        _set("type", "NODE_RECORDE"),
        _set("more", 1),
        _drop("stream"),
        _drop("payload"),
        _set("trace", "spanid", "x"),
        _set("payload", "type", "AGENT"),
        _set("payload", "startedAt", 17),
        _set("payload", "nme", "x"),
        _drop("payload", "name"),
        _set("payload", "header", "3"),
        _set("payload", "facts", "tokens", 3),
        _set("payload", "facts", "inputTokens", "3"),
        _set("payload", "facts", "streamed", "yes"),
        _set("payload", "facts", "finishReasons", "stop"),
        _set("payload", "facts", "outputMessages", "n", -1),
        _set(*OUT, "$c", "xyz"),
        _drop(*OUT, "bytes"),
        _set(*OUT, "text", "in the clear"),
        _set("payload", "facts", "outputMessages", "$list", 0, [1, 2]),
        _set("payload", "facts", "messages", {"$ref": 1}),
        _set("payload", "facts", "result", {"$c": "short", "bytes": 1}),
        _set("payload", "facts", "attributes", {"$int": 5}),
    ],
)
def test_a_changed_event_is_none(recorded: Path, change: Callable[[Json], None]) -> None:
    event = copy.deepcopy(node_of(recorded))
    assert VALIDATORS["event"].is_valid(event)
    change(event)
    assert not VALIDATORS["event"].is_valid(event)


def test_a_payload_of_another_type_is_none(recorded: Path) -> None:
    event = copy.deepcopy(node_of(recorded))
    for other in ("DROPPED", "RUN_ENDED", "STREAM_OPENED", "STEP_ENDED", "NODE_STARTED"):
        event["type"] = other
        assert not VALIDATORS["event"].is_valid(event), other


@pytest.mark.parametrize(
    "change",
    [_set("i", -1), _set("salt", "0" * 31), _set("salt", None), _drop("value"), _set("value", {"$c": 1}), _set("x", 1)],
)
def test_a_changed_cell_is_none(recorded: Path, change: Callable[[Json], None]) -> None:
    cell = next(cells(recorded))
    assert VALIDATORS["cell"].is_valid(cell)
    change(cell)
    assert not VALIDATORS["cell"].is_valid(cell)


@pytest.mark.parametrize(
    "change",
    [
        _drop("runId"),
        _set("runid", None),
        _set("nodeType", "AGENT"),
        _set("status", "fine"),
        _set("inputTokens", "3"),
        _set("retryCount", None),
        _set("inputs", {"name": "f", "arguments": {}, "callId": None}),
        _set("inputs", "messages", {"$ref": 1}),
        _set("journal", "hash", "0"),
        _set("toolCalls", [{"id": "x"}]),
        _set("evaluations", [{"name": "x"}]),
        _set("error", "boom"),
    ],
)
def test_a_changed_record_is_none(recorded: Path, change: Callable[[Json], None]) -> None:
    record = json.loads(json.dumps(next(read_nodes(recorded)).to_json()))
    assert VALIDATORS["record"].is_valid(record)
    change(record)
    assert not VALIDATORS["record"].is_valid(record)

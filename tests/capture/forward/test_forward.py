"""Spans that are handed on: each with the stamp of its event and what viewers need, whatever recording does meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import otel_agentrec
from otel_agentrec import AgentRecSpanProcessor, agent_run, read_nodes, verify
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.journal.stamps import Stamp, stamp_of
from otel_agentrec.settings import Settings
from tests.capture.forward.sinks import HttpSink, attributes, until

SAID = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where is Finse?"}]}])
ANSWERED = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "West of Oslo."}]}])
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.input.messages": SAID,
    "gen_ai.output.messages": ANSWERED,
    "gen_ai.conversation.id": "s1",
}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "weather",
    "gen_ai.tool.call.arguments": '{"place":"Finse"}',
    "gen_ai.tool.call.result": "Rain.",
}
KEY = "sk-proj-" + "a1B2" * 12
MODES = ("written", "fsync", "deferred")


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    return tmp_path / "rec"


@pytest.fixture
def kept() -> InMemorySpanExporter:
    return InMemorySpanExporter()


def provider(*processors: SpanProcessor) -> TracerProvider:
    made = TracerProvider(shutdown_on_exit=False)
    for one in processors:
        made.add_span_processor(one)
    return made


def lines(rec: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The lines of a recording by stream and seq."""
    found = {}
    for file in rec.glob("*.jsonl"):
        if file.name != "index.jsonl" and not file.name.endswith(".content.jsonl"):
            for line in file.read_text().splitlines():
                held = json.loads(line)
                found[held["event"]["stream"], held["event"]["seq"]] = held
    return found


def stamps(kept: InMemorySpanExporter) -> dict[str, Stamp | None]:
    """Span name -> its stamp, of all but checkpoints."""
    spans = kept.get_finished_spans()
    return {s.name: stamp_of(s.attributes or {}) for s in spans if s.name != "agentrec.checkpoint"}


def agree(rec: Path, stamp: Stamp | None, span: ReadableSpan) -> None:
    """A stamp says what stands in the journal."""
    assert stamp is not None
    line = lines(rec)[stamp.stream, stamp.seq]
    assert (line["hash"], line["prevHash"]) == (stamp.hash, stamp.prev_hash)
    assert line["event"]["trace"]["spanId"] == f"{span.context.span_id:016x}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", ["a thread", "an event loop"])
def test_every_span_comes_with_the_stamp_of_its_line(
    rec: Path, kept: InMemorySpanExporter, mode: str, place: str
) -> None:
    tracers = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)], durability=mode))
    tracer = tracers.get_tracer("app")

    async def work() -> None:
        with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
            with tracer.start_as_current_span("chat m", attributes=CHAT):
                pass
            large = {**CHAT, "gen_ai.input.messages": SAID.replace("Finse", "Finse" * 100_000)}
            tracer.start_span("large", attributes=large).end()
            tracer.start_span("weather", attributes=TOOL).end()
            tracer.start_span("GET", attributes={"http.request.method": "GET"}).end()

    if place == "a thread":
        coroutine = work()
        with pytest.raises(StopIteration):
            coroutine.send(None)
    else:
        asyncio.run(work())
    tracers.force_flush()
    told = stamps(kept)
    assert sorted(told) == ["GET", "agent", "chat m", "large", "weather"]
    assert told["GET"] is None
    for span in kept.get_finished_spans():
        if span.name in ("agent", "chat m", "large", "weather"):
            agree(rec, told[span.name], span)
    records = {r.record_id for r in read_nodes(rec)}
    assert records == {s.record_id for name in ("chat m", "large", "weather") if (s := told[name]) is not None}
    tracers.shutdown()
    assert verify(rec).end == "proven_close"


def test_what_viewers_need_is_there_and_nothing_twice(rec: Path, kept: InMemorySpanExporter) -> None:
    tracers = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)]))
    tracer = tracers.get_tracer("app")
    with tracer.start_as_current_span(
        "agent", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "s1", "user.id": "u1"}
    ) as agent:
        agent.set_attribute("gen_ai.input.messages", SAID)
        agent.set_attribute("gen_ai.output.messages", ANSWERED)
        tracer.start_span("weather", attributes=TOOL).end()
        tracer.start_span("chat m", attributes=CHAT).end()
    spans = {s.name: dict(s.attributes or {}) for s in kept.get_finished_spans()}
    tool, agent_told, chat = spans["weather"], spans["agent"], spans["chat m"]
    assert (tool["input.value"], tool["input.mime_type"]) == ('{"place":"Finse"}', "application/json")
    assert (tool["output.value"], tool["output.mime_type"]) == ("Rain.", "text/plain")
    assert (agent_told["input.value"], agent_told["output.value"]) == ("Where is Finse?", "West of Oslo.")
    assert (agent_told["session.id"], agent_told["user.id"]) == ("s1", "u1")
    assert "session.id" not in tool and tool["gen_ai.conversation.id"] == "s1"
    added = {name for name in chat if name not in CHAT and not name.startswith(("agentrec.", "langfuse."))}
    assert added == set()
    assert chat["langfuse.observation.metadata.agentrec_hash"] == chat["agentrec.hash"]


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_that_tells_nothing_itself_shows_what_its_calls_tell(
    rec: Path, kept: InMemorySpanExporter, mode: str
) -> None:
    tracers = provider(AgentRecSpanProcessor(rec, durability=mode, forward=[SimpleSpanProcessor(kept)]))
    tracer = tracers.get_tracer("app")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        with tracer.start_as_current_span("some step of a framework"):
            tracer.start_span("chat m", attributes=CHAT).end()
        tracer.start_span("weather", attributes=TOOL).end()
    tracers.shutdown()
    spans = {s.name: dict(s.attributes or {}) for s in kept.get_finished_spans()}
    assert (spans["agent"]["input.value"], spans["agent"]["output.value"]) == ("Where is Finse?", "West of Oslo.")


def test_rules_of_redaction_hold_for_what_an_agent_shows_of_its_calls(rec: Path, kept: InMemorySpanExporter) -> None:
    tracers = provider(AgentRecSpanProcessor(rec, redact="email,$..diary", forward=[SimpleSpanProcessor(kept)]))
    tracer = tracers.get_tracer("app")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        said = SAID.replace("Finse", f"Finse {KEY} a@example.com")
        tracer.start_span("chat m", attributes={**CHAT, "gen_ai.input.messages": said}).end()
    tracers.shutdown()
    agent = next(dict(s.attributes or {}) for s in kept.get_finished_spans() if s.name == "agent")
    assert str(agent["input.value"]).startswith("Where is Finse ")
    assert KEY not in str(agent) and "a@example.com" not in str(agent)


def test_what_a_hand_written_agent_says_beside_its_spans_goes_out_with_them(
    rec: Path, kept: InMemorySpanExporter
) -> None:
    tracers = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)]))
    with (
        agent_run("planner", session_id="s1", input="Go?", tracer_provider=tracers) as run,
        run.step() as step,
        step.model_call("Where?", model="m", instructions="Be brief.") as call,
    ):
        call.response({"model": "m", "choices": [{"message": {"role": "assistant", "content": "Finse."}}]})
    chat = next(dict(s.attributes or {}) for s in kept.get_finished_spans() if s.name.startswith("chat"))
    assert "Where?" in chat["gen_ai.input.messages"] and "Finse." in chat["gen_ai.output.messages"]
    assert "Be brief." in chat["gen_ai.system_instructions"]


class TestSecrets:
    @pytest.mark.parametrize("rules", ["default", "email", "$..diary"])
    def test_what_the_recording_lacks_does_not_leave(self, rec: Path, kept: InMemorySpanExporter, rules: str) -> None:
        tracers = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)], redact=rules))
        tracer = tracers.get_tracer("app")
        said = SAID.replace("Finse", f"Finse {KEY} a@example.com")
        arguments = json.dumps({"place": "Finse", "diary": "open sesame", "api_key": KEY})
        tracer.start_span("chat m", attributes={**CHAT, "gen_ai.input.messages": said}).end()
        tracer.start_span("weather", attributes={**TOOL, "gen_ai.tool.call.arguments": arguments}).end()
        with tracer.start_as_current_span(
            f"GET {KEY}", attributes={"url.full": f"https://h/?key={KEY}", "password": "hunter2", "n": 1}
        ) as span:
            span.add_event("said", {"text": KEY})
            span.set_status(trace.StatusCode.ERROR, f"with {KEY}")
        text = "".join(s.to_json() for s in kept.get_finished_spans())
        assert KEY not in text and "hunter2" not in text
        assert ("a@example.com" in text) == (rules != "email")
        assert ("open sesame" in text) == (rules != "$..diary")
        assert "place" in text and len(kept.get_finished_spans()) == 3

    def test_whose_span_it_is_and_the_state_of_a_trace_may_hold_them_too(
        self, rec: Path, kept: InMemorySpanExporter
    ) -> None:
        tracers = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)]))
        state = trace.TraceState([("vendor", KEY), ("other", "1")])
        above = trace.SpanContext(1 << 100, 5, True, trace.TraceFlags(1), state)
        tracer = tracers.get_tracer(f"app of {KEY}", KEY, None, {"password": "hunter2", "team": "blue"})
        within = trace.set_span_in_context(trace.NonRecordingSpan(above))
        tracer.start_span("GET", within, links=[trace.Link(above)]).end()
        (span,) = kept.get_finished_spans()
        sent = encode_spans([span]).SerializeToString()
        assert KEY.encode() not in sent and b"hunter2" not in sent
        assert span.context.trace_state == span.links[0].context.trace_state == {"other": "1"}
        assert span.context.trace_id == 1 << 100 and b"blue" in sent

    def test_they_leave_where_the_recording_keeps_them(self, rec: Path, kept: InMemorySpanExporter) -> None:
        tracers = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)], redact="off"))
        tracers.get_tracer("app").start_span("chat m", attributes={**CHAT, "note": KEY}).end()
        assert (kept.get_finished_spans()[0].attributes or {})["note"] == KEY

    def test_without_content_nothing_is_added_to_what_the_span_says_itself(
        self, rec: Path, kept: InMemorySpanExporter
    ) -> None:
        tracers = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)], content="off"))
        tracers.get_tracer("app").start_span("weather", attributes=TOOL).end()
        told = dict(kept.get_finished_spans()[0].attributes or {})
        assert {name: told[name] for name in TOOL} == TOOL
        assert "input.value" not in told and "agentrec.hash" in told


class TestOrder:
    """Every order in which processors of ours come, on one recorder, hands on each span once, stamped."""

    def both(self, rec: Path, kept: InMemorySpanExporter, order: str) -> Iterator[Callable[[], SpanProcessor]]:
        makers: dict[str, Callable[[], SpanProcessor]] = {
            "p": lambda: AgentRecSpanProcessor(rec),
            "f": lambda: AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)]),
        }
        return (makers[letter] for letter in order)

    @pytest.mark.parametrize("order", ["f", "pf", "fp", "pfp"])
    @pytest.mark.parametrize("mode", MODES)
    def test_in_one_provider(
        self,
        rec: Path,
        kept: InMemorySpanExporter,
        order: str,
        mode: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("OTEL_AGENTREC_DURABILITY", mode)
        tracers = provider(*(make() for make in self.both(rec, kept, order)))
        for _ in range(3):
            tracers.get_tracer("app").start_span("chat m", attributes=CHAT).end()
        tracers.shutdown()
        told = [stamp_of(s.attributes or {}) for s in kept.get_finished_spans() if s.name == "chat m"]
        assert len(told) == 3 and None not in told
        assert len({stamp.hash for stamp in told if stamp is not None}) == 3
        assert len(list(read_nodes(rec))) == 3

    def test_spans_of_another_provider_are_not_handed_on(self, rec: Path, kept: InMemorySpanExporter) -> None:
        one = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)]))
        other = provider(AgentRecSpanProcessor(rec))
        one.get_tracer("app").start_span("mine", attributes=CHAT).end()
        other.get_tracer("app").start_span("not mine", attributes=CHAT).end()
        assert list(stamps(kept)) == ["mine"]


class Broken(SpanProcessor):
    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("on_end")

    def shutdown(self) -> None:
        raise RuntimeError("shutdown")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        raise RuntimeError("force_flush")


def test_a_broken_processor_is_counted_and_harms_nobody(
    rec: Path, kept: InMemorySpanExporter, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = AgentRecSpanProcessor(rec, forward=[Broken(), SimpleSpanProcessor(kept)])
    tracers = provider(ours)
    for _ in range(3):
        tracers.get_tracer("app").start_span("chat m", attributes=CHAT).end()
    assert not tracers.force_flush()
    tracers.shutdown()
    assert len(stamps(kept)) == 1 and len(list(read_nodes(rec))) == 3
    told = ours.recorder.stats()
    assert (told["forwarded"], told["swallowed.a forward processor's on_end"]) == (3, 4)  # and the checkpoint
    assert capsys.readouterr().err.count("a forward processor's on_end") == 1


class Cancelled(SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        raise asyncio.CancelledError


def test_what_no_guard_may_stop_does_not_stop_the_thread_that_writes(rec: Path) -> None:
    ours = AgentRecSpanProcessor(rec, forward=[Cancelled()], durability="deferred")
    tracers = provider(ours)
    for _ in range(3):
        tracers.get_tracer("app").start_span("chat m", attributes=CHAT).end()
        assert ours.recorder.force_flush()
    ours.recorder.shutdown()
    assert len(list(read_nodes(rec))) == 3 and verify(rec).exit_code == 0
    told = ours.recorder.stats()
    assert (told["swallowed.a deferred record"], told["swallowed.a forward processor's on_end"]) == (
        3,
        1,
    )  # a checkpoint


class Echo(SpanProcessor):
    """Ends two spans for each that it is given."""

    def __init__(self) -> None:
        self.provider: TracerProvider | None = None

    def on_end(self, span: ReadableSpan) -> None:
        if self.provider is not None:
            for _ in range(2):
                self.provider.get_tracer("echo").start_span("echo").end()


def test_a_processor_that_answers_each_span_with_others_comes_to_an_end(rec: Path, kept: InMemorySpanExporter) -> None:
    echo = Echo()
    ours = AgentRecSpanProcessor(rec, forward=[echo, SimpleSpanProcessor(kept)])
    tracers = echo.provider = provider(ours)
    tracers.get_tracer("app").start_span("chat m", attributes=CHAT).end()
    echo.provider = None
    tracers.shutdown()
    assert ours.recorder.stats()["forward_lost"] > 0 and "chat m" in stamps(kept)


def test_spans_go_on_when_recording_is_over_or_off(rec: Path, kept: InMemorySpanExporter, tmp_path: Path) -> None:
    ours = AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)])
    tracers = provider(ours)
    ours.recorder.shutdown()
    tracers.get_tracer("app").start_span("late", attributes=CHAT).end()
    off = provider(AgentRecSpanProcessor(tmp_path / "off", forward=[SimpleSpanProcessor(kept)], enabled=False))
    off.get_tracer("app").start_span("off", attributes=CHAT).end()
    assert stamps(kept) == {"late": None, "off": None}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_sends_its_own_spans(rec: Path, sink: HttpSink) -> None:
    exporter = OTLPSpanExporter(f"{sink.url}/v1/traces")
    tracers = provider(AgentRecSpanProcessor(rec, forward=[BatchSpanProcessor(exporter)]))
    tracers.get_tracer("app").start_span("parent", attributes=CHAT).end()
    pid = os.fork()
    if pid == 0:
        tracers.get_tracer("app").start_span("child", attributes=CHAT).end()
        tracers.shutdown()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    tracers.shutdown()
    told = {s.name: attributes(s) for s in sink.spans if s.name != "agentrec.checkpoint"}
    assert sorted(s.name for s in sink.spans if s.name != "agentrec.checkpoint") == ["child", "parent"]
    assert told["child"]["agentrec.stream"] != told["parent"]["agentrec.stream"]
    for one in told.values():
        line = lines(rec)[one["agentrec.stream"], one["agentrec.seq"]]
        assert line["hash"] == one["agentrec.hash"]


def test_what_a_full_queue_dropped_still_goes_on(rec: Path, kept: InMemorySpanExporter) -> None:
    settings = Settings.load(path=rec, durability="deferred", queue=1)
    recorder = Recorder(settings)
    ours = AgentRecSpanProcessor(recorder=recorder, forward=[SimpleSpanProcessor(kept)])
    tracers = provider(ours)
    assert recorder._deferred is not None
    with recorder._deferred._working:  # nothing is written meanwhile
        for n in range(5):
            tracers.get_tracer("app").start_span(f"chat {n}", attributes=CHAT).end()
    recorder.force_flush()
    assert sorted(stamps(kept)) == [f"chat {n}" for n in range(5)]
    recorder.shutdown()


class TestCheckpoints:
    def test_an_orderly_end_says_how_far_the_stream_came(self, rec: Path, sink: HttpSink) -> None:
        exporter = OTLPSpanExporter(f"{sink.url}/v1/traces")
        tracers = provider(AgentRecSpanProcessor(rec, forward=[BatchSpanProcessor(exporter)]))
        tracers.get_tracer("app").start_span("chat m", attributes=CHAT).end()
        tracers.shutdown()
        until(lambda: sink.named("agentrec.checkpoint"))
        (told,) = sink.named("agentrec.checkpoint")
        all_lines = lines(rec)
        last = max(all_lines)
        assert told == {
            "agentrec.stream": last[0],
            "agentrec.size": len(all_lines),
            "agentrec.hash": all_lines[last]["hash"],
        }

    def test_one_comes_along_every_so_many_events(self, rec: Path, kept: InMemorySpanExporter) -> None:
        tracers = provider(AgentRecSpanProcessor(rec, forward=[SimpleSpanProcessor(kept)]))
        for _ in range(300):
            tracers.get_tracer("app").start_span("chat m", attributes=CHAT).end()
        found = [s.attributes for s in kept.get_finished_spans() if s.name == "agentrec.checkpoint"]
        assert len(found) == 2
        for told in found:
            assert told is not None
            line = lines(rec)[str(told["agentrec.stream"]), int(str(told["agentrec.size"])) - 1]
            assert line["hash"] == told["agentrec.hash"]


@pytest.mark.usefixtures("otel_globals")
def test_one_line_in_the_program_does_it_too_and_said_again_changes_nothing(
    rec: Path, kept: InMemorySpanExporter, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = SimpleSpanProcessor(kept)
    recorder = otel_agentrec.configure(rec, forward=[inner])
    assert otel_agentrec.configure(rec, forward=[inner]) is recorder
    trace.get_tracer("app").start_span("chat m", attributes=CHAT).end()
    later = InMemorySpanExporter()
    otel_agentrec.configure(rec, forward=[SimpleSpanProcessor(later)])
    trace.get_tracer("app").start_span("another", attributes=CHAT).end()
    recorder.shutdown()
    assert [s.name for s in kept.get_finished_spans()] == ["chat m", "another", "agentrec.checkpoint"]
    assert [s.name for s in later.get_finished_spans()] == ["another", "agentrec.checkpoint"]
    assert None not in [*stamps(kept).values(), *stamps(later).values()]
    assert capsys.readouterr().err == ""

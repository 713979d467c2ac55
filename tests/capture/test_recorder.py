"""The live edge: what is journalled when, and that it never gets in the program's way."""

from __future__ import annotations

import gc
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from otel_agentrec.errors import ConfigurationError
from tests.capture.recording import contents, events, streams, types

MESSAGES = '[{"role":"user","parts":[{"type":"text","content":"What is up?"}]}]'
ANSWER = '[{"role":"assistant","parts":[{"type":"text","content":"All well."}],"finish_reason":"stop"}]'
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": MESSAGES}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "gen_ai.tool.call.id": "c1"}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}


class Live:
    """A provider with our processor, and the recording it writes."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.processor = AgentRecSpanProcessor(path, **settings)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("demo")

    @property
    def stats(self) -> dict[str, int]:
        return self.processor.recorder.stats()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    live = Live(tmp_path / "rec")
    yield live
    live.processor.recorder.shutdown()


def span_of(event: dict[str, Any]) -> str:
    return str(event["trace"]["spanId"])


def test_each_step_is_journalled_at_its_start_and_at_its_end(live: Live) -> None:
    with live.tracer.start_as_current_span("invoke_agent a", attributes=AGENT):
        with live.tracer.start_as_current_span("chat m", attributes=CHAT) as span:
            assert types(live.path) == ["RUN_STARTED", "NODE_STARTED"], "a kill from here on leaves a trace"
            span.set_attribute("gen_ai.output.messages", ANSWER)
        with live.tracer.start_as_current_span("execute_tool t", attributes=TOOL):
            pass
        with live.tracer.start_as_current_span("embeddings m", attributes={"gen_ai.operation.name": "embeddings"}):
            pass
        assert types(live.path)[2:] == [
            "NODE_RECORDED", "NODE_STARTED", "NODE_RECORDED", "STEP_STARTED", "STEP_ENDED",
        ]  # fmt: skip
    live.provider.shutdown()
    assert types(live.path)[-1] == "RUN_ENDED"
    assert events(live.path)[-1]["type"] == "STREAM_SEALED"
    assert "All well." in contents(live.path)


def test_an_agent_inside_an_agent_is_a_handoff_and_paths_name_the_steps_above(live: Live) -> None:
    http = live.provider.get_tracer("opentelemetry.instrumentation.httpx")
    with (
        live.tracer.start_as_current_span("invoke_agent a", attributes=AGENT) as outer,
        http.start_as_current_span("GET"),
        live.tracer.start_as_current_span("some function"),
        live.tracer.start_as_current_span("invoke_agent b", attributes=AGENT) as inner,
        live.tracer.start_as_current_span("chat m", attributes=CHAT),
    ):
        pass
    ids = [f"{span.get_span_context().span_id:016x}" for span in (inner, outer)]
    assert types(live.path) == [
        "RUN_STARTED", "HANDOFF_STARTED", "NODE_STARTED", "NODE_RECORDED", "HANDOFF_ENDED", "RUN_ENDED",
    ]  # fmt: skip
    assert [e["trace"].get("path", []) for e in events(live.path, "NODE_RECORDED", "HANDOFF_ENDED", "RUN_ENDED")] == [
        ids, ids[1:], [],
    ]  # fmt: skip


def test_a_span_that_shows_only_at_its_end_what_it_is_still_gets_its_record(live: Live) -> None:
    with live.tracer.start_as_current_span("work") as span:
        span.set_attributes(CHAT)
    assert types(live.path) == ["NODE_RECORDED"]


def test_an_agent_that_shows_late_is_known_before_its_first_step(live: Live) -> None:
    with live.tracer.start_as_current_span("work") as span:
        span.set_attributes(AGENT)
        with live.tracer.start_as_current_span("chat m", attributes=CHAT):
            pass
    assert types(live.path) == ["RUN_STARTED", "NODE_STARTED", "NODE_RECORDED", "RUN_ENDED"]


def test_a_span_whose_start_was_not_seen_is_recorded(live: Live) -> None:
    late = Live(live.path)
    span = TracerProvider(active_span_processor=late.provider._active_span_processor)
    late.provider._active_span_processor._span_processors = ()
    open_span = span.get_tracer("demo").start_span("chat m", attributes=CHAT)
    late.provider.add_span_processor(late.processor)
    open_span.end()
    assert types(live.path) == ["NODE_RECORDED"]


@pytest.mark.parametrize("scope", ["opentelemetry.instrumentation.httpx", "opentelemetry.instrumentation.sqlalchemy"])
def test_foreign_spans_leave_nothing(live: Live, scope: str) -> None:
    for _ in range(3):
        with live.provider.get_tracer(scope).start_as_current_span("GET"):
            pass
    assert not live.path.exists()
    assert live.stats["open"] == 0


def test_http_attempts_below_a_model_call_are_its_retries(live: Live) -> None:
    http = live.provider.get_tracer("opentelemetry.instrumentation.httpx")
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        for status in (429, 500, 200):
            request = {"http.request.method": "POST", "url.full": "http://x/v1", "http.response.status_code": status}
            with http.start_as_current_span("POST", kind=trace.SpanKind.CLIENT, attributes=request):
                pass
    (node,) = events(live.path, "NODE_RECORDED")
    facts = node["payload"]["facts"]
    assert [retry["statusCode"] for retry in facts["retries"]] == [429, 500]
    assert facts["retryCount"] == 2
    assert len(node["payload"]["via"]) == 3


def test_the_request_header_is_said_once_and_two_agents_do_not_flip_it(live: Live) -> None:
    def call(instructions: str) -> None:
        said = f'[{{"type":"text","content":"{instructions}"}}]'
        with live.tracer.start_as_current_span("chat m", attributes={**CHAT, "gen_ai.system_instructions": said}):
            pass

    for instructions in ("be kind", "be brief", "be kind", "be brief"):
        call(instructions)
    headers = {e["seq"] for e in events(live.path, "REQUEST_HEADER")}
    assert len(headers) == 2
    named = [e["payload"]["header"] for e in events(live.path, "NODE_RECORDED")]
    assert named[:2] == named[2:]
    assert set(named) == headers


def test_each_segment_stands_alone(tmp_path: Path) -> None:
    live = Live(tmp_path / "rec", segment_bytes=4_000)
    attributes = {**CHAT, "gen_ai.system_instructions": '[{"type":"text","content":"be kind"}]'}
    for _ in range(30):
        with live.tracer.start_as_current_span("chat m", attributes=attributes):
            pass
    found = streams(live.path)
    assert len(found) > 5
    nodes = 0
    for name, stream in found.items():
        for event in stream:
            if event["type"] == "NODE_RECORDED":
                nodes += 1
                assert stream[event["payload"]["header"]]["type"] == "REQUEST_HEADER", name
                assert stream[event["payload"]["provider"]]["type"] == "PROVIDER_SEEN", name
    assert nodes == 30


def test_a_recording_deleted_under_the_program_goes_on_in_a_new_stream_that_stands_alone(live: Live) -> None:
    attributes = {**CHAT, "gen_ai.system_instructions": '[{"type":"text","content":"be kind"}]'}
    for _ in range(2):
        with live.tracer.start_as_current_span("chat m", attributes=attributes):
            if live.path.exists():
                shutil.rmtree(live.path)
    (stream,) = streams(live.path).values()
    (node,) = [e for e in stream if e["type"] == "NODE_RECORDED"]
    assert stream[node["payload"]["header"]]["type"] == "REQUEST_HEADER"
    assert [e["payload"]["reason"] for e in stream if e["type"] == "DROPPED"]


def test_each_provider_is_seen_once_with_sampler_and_limits(live: Live) -> None:
    other = Live(live.path)
    for one in (live, live, other):
        with one.tracer.start_as_current_span("chat m", attributes=CHAT):
            pass
    seen = events(live.path, "PROVIDER_SEEN")
    assert len(seen) == 2
    assert seen[0]["payload"]["limits"]["max_span_attributes"] == 128
    assert "ParentBased" in seen[0]["payload"]["sampler"]
    assert [e["payload"]["provider"] for e in events(live.path, "NODE_RECORDED")] == [
        seen[0]["seq"], seen[0]["seq"], seen[1]["seq"],
    ]  # fmt: skip


def test_an_open_call_at_shutdown_is_interrupted_with_what_is_known(live: Live) -> None:
    span = live.tracer.start_span("chat m", attributes=CHAT)
    span.add_event("gen_ai.choice.delta", {"content": "All w"})
    live.provider.shutdown()
    (interrupted,) = events(live.path, "NODE_INTERRUPTED")
    assert interrupted["payload"]["reason"] == "shutdown"
    assert interrupted["payload"]["record"]["facts"]["status"] == "partial"
    assert "All w" in contents(live.path)
    span.end()
    first, late = streams(live.path).values()
    assert first[-1]["type"] == "STREAM_SEALED"
    assert late[0]["payload"]["late"] is True
    assert "NODE_RECORDED" in [e["type"] for e in late], "a later end wins"
    assert live.stats["late"] == 1


def test_a_call_that_the_garbage_collector_took_is_interrupted_with_what_is_known(live: Live) -> None:
    span = live.tracer.start_span("chat m", attributes=CHAT)
    span.add_event("gen_ai.choice.delta", {"content": "All w"})
    del span
    gc.collect()
    (interrupted,) = events(live.path, "NODE_INTERRUPTED")
    assert interrupted["payload"]["reason"] == "abandoned"
    assert "All w" in contents(live.path)
    assert (live.stats["abandoned"], live.stats["open"]) == (1, 0)


def test_a_call_of_an_unknown_kind_that_does_not_end_is_closed_too(live: Live) -> None:
    tracer = live.provider.get_tracer("opentelemetry.util.genai.handler")  # a scope of agent steps only
    span = tracer.start_span("something")
    assert types(live.path) == ["NODE_STARTED"]
    live.provider.shutdown()
    assert [e["payload"] for e in events(live.path, "NODE_INTERRUPTED")] == [{"reason": "shutdown"}]
    assert span.is_recording()


def test_a_call_is_interrupted_only_once(live: Live) -> None:
    span = live.tracer.start_span("chat m", attributes=CHAT)
    live.provider.shutdown()
    del span
    gc.collect()
    assert len(events(live.path, "NODE_INTERRUPTED")) == 1


def test_the_first_line_says_what_writes_and_under_which_settings(tmp_path: Path) -> None:
    opened = []
    for name, content in (("a", "detached"), ("a", "detached"), ("b", "inline")):
        live = Live(tmp_path / name, content=content)
        with live.tracer.start_as_current_span("chat m", attributes=CHAT):
            pass
        live.processor.recorder.shutdown()
        opened.append(events(tmp_path / name, "STREAM_OPENED")[-1]["payload"])
    assert set(opened[0]["sdk"]) == {"otel-agentrec", "opentelemetry-sdk", "python"}
    assert opened[0]["configDigest"] == opened[1]["configDigest"] != opened[2]["configDigest"]


def test_the_stream_is_sealed_after_the_last_processor(live: Live) -> None:
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(AgentRecLogProcessor(live.processor))
    other = Live(live.path)
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        pass
    for provider in (live.provider, logs):
        provider.shutdown()
        assert "STREAM_SEALED" not in [e["type"] for e in events(live.path)]
    other.provider.shutdown()
    assert events(live.path)[-1]["type"] == "STREAM_SEALED"


def test_a_second_processor_of_the_same_path_records_nothing_twice(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    live.provider.add_span_processor(AgentRecSpanProcessor(live.path))
    for late in (False, True):
        with live.tracer.start_as_current_span("chat m", attributes=None if late else CHAT) as span:
            span.set_attributes(CHAT)
    assert len(events(live.path, "NODE_RECORDED")) == 2
    assert capsys.readouterr().err.count("already recording through AgentRecSpanProcessor") == 1


def test_the_first_call_without_messages_is_told_with_the_variable_that_mends_it(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with live.tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
            pass
    assert capsys.readouterr().err.count("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY") == 1
    assert live.stats["content_missing"] == 2


def test_more_open_spans_than_the_table_holds_are_evicted_and_counted(live: Live) -> None:
    live.processor.recorder._tracker.table._max_open = 2
    spans = [live.tracer.start_span(f"chat {i}", attributes=CHAT) for i in range(3)]
    (evicted,) = events(live.path, "NODE_INTERRUPTED")
    assert (evicted["payload"]["reason"], evicted["payload"]["record"]["name"]) == ("evicted", "chat 0")
    assert live.stats["evicted"] == 1
    for span in spans:
        span.end()
    assert len(events(live.path, "NODE_RECORDED")) == 3, "an evicted span still gets its record"


def test_calls_of_many_threads_are_all_recorded(live: Live) -> None:
    def work() -> None:
        for _ in range(20):
            with live.tracer.start_as_current_span("chat m", attributes=CHAT):
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({span_of(e) for e in events(live.path, "NODE_RECORDED")}) == 160
    assert live.stats["nodes"] == 160


def test_other_exporters_still_get_every_span(live: Live) -> None:
    exporter = InMemorySpanExporter()
    live.provider.add_span_processor(SimpleSpanProcessor(exporter))
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        pass
    assert [span.name for span in exporter.get_finished_spans()] == ["chat m"]


def test_after_the_recorder_was_shut_down_its_processor_is_inert(live: Live) -> None:
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        pass
    live.processor.recorder.shutdown()
    before = events(live.path)
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        pass
    live.provider.force_flush()
    live.provider.shutdown()
    assert events(live.path) == before
    assert before[-1]["type"] == "STREAM_SEALED"


def test_a_processor_without_a_path_says_where_to_give_one() -> None:
    with pytest.raises(ConfigurationError) as error:
        AgentRecSpanProcessor()
    assert "OTEL_AGENTREC_PATH" in error.value.hint


def callables_handed_to_otel() -> list[tuple[str, str]]:
    """(processor class, method) for each method of OTel's interfaces that our processors override."""
    found = []
    for ours in (AgentRecSpanProcessor, AgentRecLogProcessor):
        for base in ours.__mro__[1:-1]:
            names = [name for name, thing in vars(base).items() if callable(thing) and name[:2] != "__"]
            found += [(ours.__name__, name) for name in names if name in vars(ours)]
    return sorted(set(found))


@pytest.mark.parametrize("error", [ValueError, RecursionError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(("kind", "method"), callables_handed_to_otel())
def test_an_exception_in_any_callable_handed_to_otel_stays_inside(
    live: Live,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    method: str,
    error: type[BaseException],
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise error("planted")

    handed: Callable[..., Any] = {"AgentRecSpanProcessor": AgentRecSpanProcessor}.get(kind, AgentRecLogProcessor)
    monkeypatch.setattr(vars(handed)[method], "__wrapped__", fail)
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(AgentRecLogProcessor(live.processor))
    last = InMemorySpanExporter()
    live.provider.add_span_processor(SimpleSpanProcessor(last))

    def agent() -> None:
        with live.tracer.start_as_current_span("chat m", attributes=CHAT):
            logs.get_logger("x").emit(event_name="gen_ai.evaluation.result")
        for provider in (live.provider, logs):
            provider.force_flush()
            provider.shutdown()

    if issubclass(error, Exception):
        agent()
        assert last.get_finished_spans(), "the processors behind ours were called"
        assert live.stats["swallowed"] >= 1
        assert live.stats[f"swallowed.{method}"] >= 1
        assert capsys.readouterr().err.count("was swallowed") == 1
    else:
        with pytest.raises(error):
            agent()


def test_an_exception_in_the_finaliser_of_a_span_stays_inside(
    live: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: Any) -> None:
        raise RecursionError("planted")

    monkeypatch.setattr(live.processor.recorder._tracker, "abandoned", fail)
    span = live.tracer.start_span("chat m", attributes=CHAT)
    del span
    gc.collect()
    assert live.stats["swallowed.a span's finaliser"] == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "planted" in line]
    assert "was swallowed" in line, "and not Python's own report of it"


def test_a_span_that_could_not_be_recorded_is_counted_in_the_chain(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise ValueError("planted")

    with monkeypatch.context() as broken:
        broken.setattr("otel_agentrec.capture.dialects.read", fail)
        with live.tracer.start_as_current_span("chat m", attributes=CHAT):
            pass
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        pass
    (dropped,) = events(live.path, "DROPPED")
    assert dropped["payload"] == {"count": 2, "reason": "ValueError while recording"}, "its start and its end"
    assert (live.stats["dropped"], live.stats["swallowed"], live.stats["nodes"]) == (2, 2, 1)


def test_the_last_line_of_a_stream_says_what_its_process_counted(tmp_path: Path) -> None:
    class Bad:
        def capture(self, record: object) -> None:
            raise ValueError("no")

        def close(self) -> None: ...

    live = Live(tmp_path, sinks=[Bad()])
    bare = {"gen_ai.operation.name": "chat"}
    for _ in range(2):
        live.tracer.start_span("chat m", attributes=bare).end()
    live.provider.shutdown()
    live.tracer.start_span("chat m", attributes=bare).end()
    live.processor.recorder.shutdown()
    first, second = (e["payload"]["counters"] for e in events(tmp_path, "STREAM_SEALED"))
    assert (first["swallowed"], first["content_missing"], "late" in first) == (2, 2, False)
    assert (second["content_missing"], second["late"] >= 1) == (1, True), "each says what is new"

"""Log records at the live edge: joined to their span, or recorded as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec import read_nodes
from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from tests.capture.recording import contents, events, types
from tests.redaction.secrets import SHAPED

DETAILS, USER, CHOICE = "gen_ai.client.inference.operation.details", "gen_ai.user.message", "gen_ai.choice"
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}


class Live:
    """A tracer and a logger provider with our processors, and the recording that they write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spans = TracerProvider(shutdown_on_exit=False)
        self.logs = LoggerProvider(shutdown_on_exit=False)
        processor = AgentRecSpanProcessor(path)
        self.recorder = processor.recorder
        self.spans.add_span_processor(processor)
        self.logs.add_log_record_processor(AgentRecLogProcessor(processor))
        self.tracer = self.spans.get_tracer("demo")

    def say(self, name: str, body: Any = None, scope: str = "demo", **attributes: Any) -> None:
        self.logs.get_logger(scope).emit(event_name=name, body=body, attributes=attributes)

    def recorded(self) -> list[dict[str, Any]]:
        return events(self.path, "LOG_RECORDED")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    live = Live(tmp_path / "rec")
    yield live
    live.recorder.shutdown()


def test_records_of_an_open_span_become_part_of_its_record(live: Live) -> None:
    body = {"content": "What is up?"}
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        live.say(USER, body)
        live.say(CHOICE, {"message": {"content": "All well."}, "finish_reason": "stop"})
        body["content"] = ""  # the program goes on using its objects
    (record,) = read_nodes(live.path)
    assert record.inputs["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "What is up?"}]}]
    assert (record.output_text, record.finish_reasons) == ("All well.", ["stop"])
    assert live.recorded() == []


def test_what_belongs_to_no_open_span_is_recorded_at_once(live: Live) -> None:
    live.say(USER, {"content": "no span at all"})
    (alone,) = live.recorded()
    assert alone.get("trace") is None
    assert "no span at all" in contents(live.path)
    with live.tracer.start_as_current_span("chat m", attributes=CHAT) as span:
        pass
    with trace.use_span(span):
        live.say(CHOICE, {"message": {"content": "too late"}})
    late = live.recorded()[1]
    assert late["trace"]["spanId"] == f"{span.get_span_context().span_id:016x}"
    live.say("gen_ai.evaluation.result", None, **{"gen_ai.evaluation.score.value": 1.0, "gen_ai.conversation.id": "s"})
    assert (live.recorded()[2]["payload"]["name"], live.recorded()[2]["session"]) == ("gen_ai.evaluation.result", "s")


def test_what_names_the_agent_but_tells_of_a_call_is_not_the_agents(live: Live) -> None:
    with live.tracer.start_as_current_span("invoke_agent a", attributes=AGENT) as agent:
        live.say(USER, {"content": "hi"})
        assert len(live.recorded()) == 1, "nobody else will take it, so it is not held back"
        live.say(DETAILS, **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "a1"})
    assert [e["trace"]["spanId"] for e in live.recorded()] == [f"{agent.get_span_context().span_id:016x}"]
    (ended,) = events(live.path, "RUN_ENDED")
    assert ended["payload"]["facts"]["agentId"] == "a1"
    assert "messages" not in ended["payload"]["facts"]


def test_records_that_name_the_span_around_a_call_reach_the_call(live: Live) -> None:
    with live.tracer.start_as_current_span("invoke_agent a", attributes=AGENT):
        for n in range(2):
            call = live.tracer.start_span("chat m", attributes=CHAT)  # never the current span
            live.say(USER, {"content": f"question {n}"})
            live.say(USER, {"content": {"tools": [{"name": "f"}]}})
            live.say(CHOICE, {"index": 0, "message": {"content": f"answer {n}"}, "finish_reason": "stop"})
            call.end()
    for n, record in enumerate(read_nodes(live.path)):
        assert [p["content"] for m in record.inputs["messages"] for p in m["parts"]] == [f"question {n}"]
        assert (record.output_text, record.finish_reasons) == (f"answer {n}", ["stop"])
        assert record.inputs["tools"] == [{"name": "f"}]
    assert all("body" not in e["payload"] for e in live.recorded())
    assert len(events(live.path, "REQUEST_HEADER")) == 1
    assert not live.recorder.stats().get("content_missing")


def test_a_span_that_proves_to_be_no_model_call_leaves_its_records(live: Live) -> None:
    with live.tracer.start_as_current_span("POST /chat"):
        live.say(USER, {"content": "hi"})
        assert live.recorded() == [], "it may still tell that it is a model call"
    with live.tracer.start_as_current_span("late") as span:
        live.say(USER, {"content": "ho"})
        span.set_attributes(CHAT)
    assert [e["payload"]["name"] for e in live.recorded()] == [USER]
    assert types(live.path) == ["LOG_RECORDED", "NODE_RECORDED"]


def test_the_path_leads_to_the_steps_above(live: Live) -> None:
    http = live.spans.get_tracer("opentelemetry.instrumentation.httpx")
    with (
        live.tracer.start_as_current_span("invoke_agent a", attributes=AGENT) as agent,
        http.start_as_current_span("POST"),
    ):
        live.say(USER, {"content": "hi"})
    assert [e["trace"]["path"] for e in live.recorded()] == [[f"{agent.get_span_context().span_id:016x}"]]


def test_records_of_a_span_that_never_ends_are_kept(live: Live) -> None:
    call = live.tracer.start_span("chat m", attributes=CHAT)
    other = live.tracer.start_span("some function")
    for span in (call, other):
        with trace.use_span(span):
            live.say(USER, {"content": "hi"})
    live.recorder.shutdown()
    assert types(live.path) == ["NODE_STARTED", "NODE_INTERRUPTED", "LOG_RECORDED"]
    (record,) = read_nodes(live.path)
    assert record.inputs["messages"][0]["parts"][0]["content"] == "hi"


def test_other_records_leave_nothing(live: Live) -> None:
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        live.say("something.else", x=1)
        live.say("", "a plain line")
        live.say(USER, {"content": "hi"}, scope="opentelemetry.instrumentation.httpx")
        live.say(USER, {"content": "hi"}, scope="otel_agentrec.capture")
    assert live.recorded() == []
    assert "hi" not in contents(live.path)
    assert live.recorder.stats()["swallowed"] == 0


def test_more_records_than_a_span_may_hold_are_recorded_by_themselves(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("otel_agentrec.capture.opening.MAX_LOGS", 2)
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        for n in range(3):
            live.say(USER, {"content": f"{n}"})
    (record,) = read_nodes(live.path)
    assert len(record.inputs["messages"]) == 2
    assert (len(live.recorded()), live.recorder.stats()["logs_recorded"]) == (1, 1)


def test_event_names_in_attributes_are_known_as_well(live: Live) -> None:
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        live.logs.get_logger("old").emit(attributes={"event.name": USER}, body={"content": "hi"}, severity_text="INFO")
    (record,) = read_nodes(live.path)
    assert record.inputs["messages"][0]["parts"][0]["content"] == "hi"


def test_secrets_in_log_records_are_not_written(live: Live) -> None:
    secret = SHAPED["openai"]
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        live.say(USER, {"content": f"my key is {secret}"})
    live.say(USER, {"content": secret}, key=secret)
    live.say(DETAILS, f'{{"content": "{secret}"}}', **{"gen_ai.conversation.id": secret})
    assert len(live.recorded()) == 2
    live.recorder.shutdown()
    assert all(secret.encode() not in file.read_bytes() for file in live.path.iterdir() if file.is_file())

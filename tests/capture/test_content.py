"""Content is asked for in every spelling, and a warning names the switch of the instrumentation that left it out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.configure import configure
from otel_agentrec.capture.content import CONTENT_VARIABLES, advice, ask_for_content
from otel_agentrec.capture.processors import AgentRecSpanProcessor

CAPTURE, OPT_IN = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "OTEL_SEMCONV_STABILITY_OPT_IN"
CHAT = {"gen_ai.operation.name": "chat"}


@pytest.mark.usefixtures("otel_globals")
def test_configure_asks_in_every_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CONTENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with configure(tmp_path / "rec"):
        assert {name: os.environ.get(name) for name in CONTENT_VARIABLES} == CONTENT_VARIABLES


@pytest.mark.parametrize(
    ("set_by_user", "becomes"),
    [
        ({"TRACELOOP_TRACE_CONTENT": "false"}, {"TRACELOOP_TRACE_CONTENT": "false"}),
        ({CAPTURE: "EVENT_ONLY"}, {CAPTURE: "EVENT_ONLY", OPT_IN: "gen_ai_latest_experimental"}),
        ({CAPTURE: ""}, {CAPTURE: "SPAN_ONLY"}),
        ({OPT_IN: "http"}, {OPT_IN: "http,gen_ai_latest_experimental"}),
        ({OPT_IN: "gen_ai_latest_experimental,gen_ai_tool_definitions"}, {}),
    ],
)
def test_what_the_user_set_stays(set_by_user: dict[str, str], becomes: dict[str, str]) -> None:
    environ = dict(set_by_user)
    ask_for_content(environ)
    assert environ == {**CONTENT_VARIABLES, **set_by_user, **becomes}


def test_who_speaks_to_older_instrumentations_is_still_understood() -> None:
    environ = {CAPTURE: "true"}
    ask_for_content(environ)
    assert environ[CAPTURE] == "true"
    assert OPT_IN not in environ, "with it, true would mean nothing to them"


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ("opentelemetry.instrumentation.genai.anthropic", f"set {CAPTURE}=SPAN_ONLY before"),
        ("opentelemetry.instrumentation.openai_v2", f"set {CAPTURE}=true before"),
        ("opentelemetry.instrumentation.openai.v1", "set TRACELOOP_TRACE_CONTENT=true before"),
        ("com.anthropic.sdk.python", "set ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content before"),
        ("openinference.instrumentation.openai", "set OPENINFERENCE_HIDE_INPUTS=false before"),
        ("haystack", "set HAYSTACK_CONTENT_TRACING_ENABLED=true before"),
        ("agent_framework", "in code: enable_instrumentation(enable_sensitive_data=True)"),
        ("an.agent", f"set {CAPTURE}=SPAN_ONLY before"),
    ],
)
def test_the_advice_names_the_switch_of_the_scope(scope: str, names: str) -> None:
    assert names in advice(scope, {})


def test_the_advice_says_what_is_set_now() -> None:
    assert advice("x", {CAPTURE: "true"}).endswith("(it is true now)")
    assert "before the instrumentation starts" in advice("x", {CAPTURE: "SPAN_ONLY"})


def warnings_of(capsys: pytest.CaptureFixture[str], path: Path, scopes: list[str], **settings: Any) -> list[str]:
    """What is said after one model call without content in each of these scopes."""
    provider = TracerProvider(shutdown_on_exit=False)
    processor = AgentRecSpanProcessor(path, **settings)
    provider.add_span_processor(processor)
    for scope in scopes:
        provider.get_tracer(scope).start_span("chat m", attributes=CHAT).end()
    assert processor.recorder.stats()["content_missing"] == len(scopes)
    processor.recorder.shutdown()
    return [line for line in capsys.readouterr().err.splitlines() if "content" in line]


def test_one_warning_per_switch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scopes = ["com.anthropic.sdk.python", "an.agent", "com.anthropic.sdk.python"]
    first, second = warnings_of(capsys, tmp_path / "rec", scopes)
    assert "com.anthropic.sdk.python" in first
    assert "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content" in first
    assert CAPTURE in second


def test_no_warning_where_no_content_is_wanted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert warnings_of(capsys, tmp_path / "rec", ["an.agent"], content="off") == []


def test_a_span_inside_another_of_the_same_call_needs_no_content(tmp_path: Path) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    processor = AgentRecSpanProcessor(tmp_path / "rec")
    provider.add_span_processor(processor)
    said = {**CHAT, "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"hi"}]}]'}
    with (
        provider.get_tracer("a.framework").start_as_current_span("chat m", attributes=said),
        provider.get_tracer("com.anthropic.sdk.python").start_as_current_span("chat m", attributes=CHAT),
    ):
        pass
    assert processor.recorder.stats()["content_missing"] == 0
    processor.recorder.shutdown()

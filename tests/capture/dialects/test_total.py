"""No span, whatever it holds, makes a dialect raise: one hostile span must not cost its batch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.capture.dialects import (
    DIALECTS,
    genai,
    log_use,
    messages,
    openai_agents,
    raw,
    read,
    started,
    tokens,
    told,
    traceloop_messages,
)
from otel_agentrec.capture.spans import DroppedCounts, LogView, SpanEvent, SpanView
from otel_agentrec.capture.steps import ended_event, header_of, log_event, started_event
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.journal.facts import Facts, RawList

SOURCES = "".join(path.read_text() for path in Path(genai.__file__).parent.glob("*.py"))
KEYS = sorted(
    {
        *re.findall(r'"([a-z_]+(?:\.[a-z_]+)+)"', SOURCES),
        *(key for keys in tokens.SPELLINGS.values() for key in keys),
        "gen_ai.usage.audio.input_tokens",
        "gen_ai.request.temperature",
        "gen_ai.request.",
        "metadata",
        *("events", "all_messages_events", "final_result", "tool_arguments", "tool_response"),
        *(f"langfuse.observation.{name}" for name in ("input", "output", "level", "usage_details", "model.parameters")),
        *(f"langsmith.metadata.{name}" for name in ("usage_metadata", "session_id", "lc_agent_name")),
        *("ai.telemetry.metadata.sessionId", "ai.settings.temperature"),
        *("mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tokenUsage"),
        *("haystack.tool.input", "haystack.tool.error", "llm.openai.messages", "llm.openai.choices"),
        *(f"gcp.vertex.agent.{name}" for name in ("llm_request", "llm_response", "tool_call_args", "tool_response")),
        *(f"traceloop.entity.{name}" for name in ("name", "input", "output")),
        *[
            "name",
            "input",
            "output",
            "error",
            "events",
            "response",
            "raw_input",
            "request_data",
            "response_data",
            "model_settings",
            "usage",
            "group_id",
        ],
    }
)
LEVELS = (
    "0 1 message role content contents message_content type text image url tool_call tool_calls id function name arguments "
    "tool_call_id tool json_schema prompt completion finish_reason reasoning user"
)
LISTS = [
    "llm.input_messages",
    "llm.output_messages",
    "llm.tools",
    "llm.prompts",
    "llm.choices",
    "gen_ai.prompt",
    "gen_ai.completion",
    "llm.request.functions",
]
FLAT = st.tuples(st.sampled_from(LISTS), st.lists(st.sampled_from(LEVELS.split()), min_size=1, max_size=7)).map(
    lambda path: ".".join((path[0], *path[1]))
)
SCHEMA = (
    "role parts type content id name arguments response result finish_reason function tool_calls text image_url url messages "
    "model input output system instructions choices message status tools generations kwargs lc data blocks raw args update "
    "additional_kwargs source summary call_id event.name toolCallId toolName value output mediaType kwargs kind "
    "prompt_tokens prompt_tokens_details cached_tokens contents config function_call candidates replies meta tool_call "
    "input_str inputs outputs tool_name is_error provider_data response_id"
)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(
        ["user", "ai", "tool", "function_call", "constructor", "ChatMessage(role='user', blocks=[1])", "x", "thinking"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(SCHEMA.split()), inner, max_size=5),
    max_leaves=16,
)
TEXTS = st.one_of(
    st.text(max_size=8),
    PLAIN.map(json.dumps),
    PLAIN.map(repr),
    st.sampled_from(
        [
            "chat",
            "execute_tool",
            "invoke_agent",
            "tools/call",
            "[",
            "[]",
            "{}",
            '[{"role":"user"}]',
            '[{"a"',
            '[{"parts":[{"type":"tool_call","id":1}]},null,7]',
            "[" * 1200,
            "\ud800",
            "1" + "0" * 4400,
            "text",
            "tool_call",
            "image_url",
            "data:image/png;base64,xx",
            '"quoted"',
            '[{"type": "summary_text", "text": 1}]',
            "{'role': 'assistant', 'content': 1, 'tool_calls': {'id': None}}",
            "Call(arguments='{}', type='function_call', output=[{'provider_data': 1}], status=None)",
        ]
    ),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=4) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(SCHEMA.split()) | st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)
ATTRIBUTES = st.dictionaries(st.sampled_from(KEYS) | FLAT | st.text(max_size=5), VALUES, max_size=12)
KINDS = st.sampled_from(
    [
        *(("openinference.span.kind", kind) for kind in ("LLM", "TOOL", "AGENT", "CHAIN", "EMBEDDING", "?")),
        *(
            (key, kind)
            for key in ("traceloop.span.kind", "llm.request.type", "gen_ai.operation.name")
            for kind in ("tool", "agent", "workflow", "chat", "execute_tool", "?")
        ),
        *(("langsmith.span.kind", kind) for kind in ("llm", "tool", "chain", "?")),
        *(("langfuse.observation.type", kind) for kind in ("generation", "tool", "agent", "span", "?")),
        *(
            ("ai.operationId", name)
            for name in ("ai.streamText.doStream", "ai.generateText", "ai.toolCall", "ai.embed")
        ),
    ]
).map(lambda told: dict([told]))
NAMES = [
    "x.tool",
    "x.agent",
    "openai.chat",
    "Function: {name}",
    "Responses API with m",
    "Agent run: {name!r}",
    "unknown",
]
JOINED = [name for dialect in DIALECTS for name in dialect.joined_logs]
PAYLOAD = "content message tool_calls role id index finish_reason gen_ai.event.content gen_ai.prompt gen_ai.completion"
EVENTS = st.tuples(
    st.sampled_from(
        [*JOINED, "exception", "gen_ai.choice.delta", "gen_ai.content.prompt", "gen_ai.content.completion", "other"]
    ),
    st.integers(),
    st.dictionaries(st.sampled_from([*PAYLOAD.split(), "exception.type", "exception.message"]), VALUES),
).map(lambda told: SpanEvent(*told))
LOGS = st.tuples(st.sampled_from(JOINED), VALUES, ATTRIBUTES).map(
    lambda told: LogView("1" * 32, "2" * 16, told[0], body=told[1], attributes=told[2])
)
SPANS = st.fixed_dictionaries(
    {
        "name": TEXTS | st.sampled_from(sorted({*NAMES, *(name for d in DIALECTS for name in d.span_names)})),
        "kind": st.integers(0, 5),
        "scope": st.sampled_from(
            ["", "an.instrumentation", *(scope + "x" * scope.endswith(".") for d in DIALECTS for scope in d.scopes)]
        ),
        "scope_version": st.none() | st.just("1"),
        "start_ns": st.integers(),
        "end_ns": st.none() | st.integers(),
        "attributes": ATTRIBUTES | st.tuples(ATTRIBUTES, KINDS).map(lambda told: {**told[0], **told[1]}),
        "events": st.lists(EVENTS, max_size=3).map(tuple),
        "status_code": st.integers(0, 3),
        "status_message": st.none() | st.text(max_size=3),
        "dropped": st.tuples(st.integers(0, 2), st.integers(0, 2)).map(lambda lost: DroppedCounts(*lost)),
    }
).map(lambda fields: SpanView("1" * 32, "2" * 16, None, **fields))


def check(facts: Facts) -> None:
    """What the journal and the fold rely on."""
    for listed in (facts.messages, facts.output_messages, facts.system_instructions, facts.tools):
        assert listed is None or isinstance(listed, (list, RawList))
    for name in ("operation", "provider", "model", "response_id", "tool_name", "tool_call_id", "session_id", "run_id"):
        text = getattr(facts, name)
        assert text is None or (isinstance(text, str) and text), name
    for name in tokens.SPELLINGS:
        count = getattr(facts, name)
        assert count is None or (type(count) is int and count >= 0), name
    assert all(isinstance(reason, str) for reason in facts.finish_reasons or [])
    assert facts.status in (None, "error", "partial")


@given(SPANS, st.lists(LOGS, max_size=2))
def test_any_span_is_read_and_becomes_an_event(span: SpanView, logs: list[LogView]) -> None:
    before = dict(span.attributes)
    reading = read(span, logs)
    assert span.attributes == before or before != before, "the span belongs to the application"
    begun = started(span)
    if begun is not None:
        started_event(span, *begun)
    if reading is not None:
        kind, facts = reading
        check(facts)
        header_of(facts)
        canonical_any(ended_event(span, kind, facts).trace)


@given(LOGS)
def test_any_log_record_alone_tells_facts_or_nothing(log: LogView) -> None:
    facts = told(log)
    if facts is not None:
        check(facts)
    log_event(log, facts)


@given(VALUES)
def test_what_was_normalised_once_stays_the_same(value: Any) -> None:
    for normal in (
        messages.message,
        messages.part,
        messages.definition,
        openai_agents.message,
        traceloop_messages.message,
    ):
        once = normal(value)
        assert canonical_any(normal(once)) == canonical_any(once)


@given(PLAIN | VALUES)
def test_any_value_is_a_request_and_an_answer_or_none(value: Any) -> None:
    for found in (raw.asked(value), raw.said(value)):
        if found is not None:
            assert isinstance(found.messages, list)
            canonical_any(found.messages)


def test_every_dialect_says_what_it_reads() -> None:
    for dialect in DIALECTS:
        assert dialect.name
        assert dialect.versions
        assert all(log_use(name) == "join" for name in dialect.joined_logs)
    assert log_use("") == log_use("app.started") == "ignore"
    assert log_use("gen_ai.evaluation.result") == "keep"

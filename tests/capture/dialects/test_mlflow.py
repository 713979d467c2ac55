"""MLflow's spans, whose values are all JSON."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects.mlflow import KINDS
from otel_agentrec.capture.spans import DroppedCounts, SpanEvent
from otel_agentrec.journal.facts import Facts, Kind

from .frameworks import HELLO, HI, reading, text

ANSWER = {
    "id": "r1",
    "model": "m-2",
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}


def facts(type_: str, attributes: dict[str, Any], **fields: Any) -> Facts:
    return reading("mlflow.tracing.provider", {"mlflow.spanType": text(type_), **attributes}, **fields)[1]


@pytest.mark.parametrize(("told", "expected"), [*sorted(KINDS.items()), ("TASK", (Kind.STEP, "task"))])
def test_the_type_decides(told: str, expected: tuple[str, str]) -> None:
    for written in (text(told), told):
        kind, found = reading("another", {"mlflow.spanType": written})
        assert (kind, found.operation) == expected


def test_a_chain_at_the_top_is_the_run() -> None:
    assert reading("mlflow.x", {"mlflow.spanType": '"CHAIN"'}, parent_span_id=None)[0] == Kind.AGENT


def test_a_model_call() -> None:
    told = facts(
        "CHAT_MODEL",
        {
            "mlflow.spanInputs": text({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
            "mlflow.spanOutputs": text(ANSWER),
            "mlflow.llm.model": '"m-2"',
            "mlflow.chat.tokenUsage": text({"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}),
        },
    )
    assert (told.messages, told.output_messages, told.output_raw) == ([HI], [HELLO], ANSWER)
    assert (told.model, told.response_model, told.response_id, told.finish_reasons) == ("m", "m-2", "r1", ["stop"])
    assert (told.input_tokens, told.output_tokens, told.attributes) == (9, 3, None)


def test_a_tool_call() -> None:
    told = facts("TOOL", {"mlflow.spanInputs": '{"a":1}', "mlflow.spanOutputs": '"one"'}, name="f")
    assert (told.tool_name, told.arguments, told.result) == ("f", '{"a":1}', '"one"')


def test_other_shapes_are_kept() -> None:
    told = facts("CHAT_MODEL", {"mlflow.spanInputs": '{"x":1}', "mlflow.spanOutputs": "7"})
    assert told.messages is None
    assert told.attributes == {"mlflow.spanInputs": '{"x":1}', "mlflow.spanOutputs": "7"}


def test_the_calls_of_a_stream_stand_in_its_pieces() -> None:
    def piece(number: int, delta: Any, reason: str | None = None) -> SpanEvent:
        held = {"id": "r1", "model": "m-2", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        return SpanEvent(f"mlflow.chunk.item.{number}", number, {"mlflow.chunk.value": text(held)})

    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    events = [
        piece(0, {"role": "assistant", "tool_calls": [call]}),
        piece(1, {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1}'}}]}),
        piece(2, {}, "tool_calls"),
    ]
    empty = {**ANSWER, "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": ""}}]}
    told = facts("CHAT_MODEL", {"mlflow.spanOutputs": text(empty)}, events=events)
    assert (told.calls, told.finish_reasons, told.response_id) == ([{"id": "c1", "name": "f"}], ["tool_calls"], "r1")
    assert told.output_messages == [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"a": 1}'}]}
    ]
    assert told.attributes is None
    lost = facts("CHAT_MODEL", {"mlflow.spanOutputs": text(empty)}, events=events[1:], dropped=DroppedCounts(0, 1, 0))
    assert (lost.calls, len((lost.attributes or {})["otel.events"])) == ([], 2)

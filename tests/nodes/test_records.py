"""What one record says: inputs, outputs, texts, numbers, states."""

from __future__ import annotations

import uuid

import pytest

from otel_agentrec.nodes.fold import fold
from otel_agentrec.records import RECORD_NAMESPACE

from .telling import T0, Telling, does, text


def only(t: Telling, **more):
    (record,) = fold(t.events, **more).records()
    return record


def test_a_model_record_is_whole():
    t = Telling()
    t.tell(
        "REQUEST_HEADER",
        {
            "instructions": [{"type": "text", "content": "be kind"}],
            "tools": [{"name": "f"}],
            "parameters": {"temperature": 0},
        },
    )
    facts = {
        "dialect": "genai", "operation": "chat", "provider": "openai", "model": "gpt", "responseModel": "gpt-1",
        "responseId": "r1", "finishReasons": ["stop"], "inputTokens": 0, "outputTokens": 7, "cacheReadTokens": 3,
        "reasoningTokens": 2, "streamed": True, "userId": "u", "messages": [text("user", "hi")],
        "outputMessages": [{"role": "assistant", "parts": [
            {"type": "reasoning", "content": "A"}, {"type": "reasoning", "content": "B"},
            {"type": "text", "content": "one "}, {"type": "text", "content": "two"}]}],
        "attributes": {"x": 1}, "flags": ["additive_cache"],
    }  # fmt: skip
    t.model("m1", trace="t1", parent="p", at=(10, 35.9), facts=facts, header=0, session="S")
    record = only(t)
    assert record.record_id == str(uuid.uuid5(RECORD_NAMESPACE, "t1/m1"))
    assert record.inputs == {
        "model": "gpt",
        "messages": [text("user", "hi")],
        "systemInstructions": [{"type": "text", "content": "be kind"}],
        "tools": [{"name": "f"}],
        "parameters": {"temperature": 0},
    }
    assert (record.output_text, record.reasoning_text, record.tool_calls) == ("one two", "A\nB", [])
    assert record.outputs == facts["outputMessages"]
    assert record.started_at_epoch_ms == T0 // 1_000_000 + 10
    assert (record.captured_at_epoch_ms - record.started_at_epoch_ms, record.duration_ms) == (25, 25)
    assert (record.input_tokens, record.output_tokens, record.cache_read_tokens, record.cache_write_tokens) == (
        0,
        7,
        3,
        None,
    )
    assert (record.provider, record.response_model, record.response_id) == ("openai", "gpt-1", "r1")
    assert (record.trace_id, record.span_id, record.parent_span_id) == ("t1", "m1", "p")
    assert (record.user_id, record.streamed, record.attributes) == ("u", True, {"x": 1})
    assert record.flags == ["additive_cache", "root_missing"]
    assert (record.journal.stream, record.journal.seq, record.journal.hash) == ("s1", 1, f"{1:064x}")


def test_parity_7_reasoning_blocks_retries_and_tokens():
    t = Telling()
    parts = [{"type": "reasoning", "content": "A"}, {"type": "reasoning", "content": "B"}]
    t.model(
        "m",
        facts={
            "outputMessages": [{"role": "assistant", "parts": parts}],
            "retryCount": 1,
            "inputTokens": 3,
            "outputTokens": 5,
        },
    )
    record = only(t)
    assert (record.reasoning_text, record.retry_count, record.input_tokens, record.output_tokens) == ("A\nB", 1, 3, 5)


def test_retry_events_count_where_the_span_says_less():
    t = Telling()
    where = {"traceId": "t1", "spanId": "m"}
    t.span("NODE_STARTED", "m", kind="MODEL", at=(0, None))
    t.tell("MODEL_RETRY", {"attempt": 1}, where)
    t.tell("MODEL_RETRY", {"attempt": 2}, where)
    t.model("m", facts={"retries": [{"statusCode": 429}]})
    record = only(t)
    assert (record.retry_count, record.retries) == (2, [{"statusCode": 429}])


def test_calls_without_content_are_told_by_id_and_name():
    t = Telling()
    t.model("m", facts={"calls": [{"id": "c1", "name": "f"}]})
    assert only(t).tool_calls == [{"id": "c1", "name": "f", "arguments": None}]


def test_what_the_telemetry_does_not_tell_is_null():
    t = Telling()
    t.model("m")
    record = only(t)
    assert (record.tool_calls, record.output_text, record.outputs, record.reasoning_text, record.input_tokens) == (
        None,
    ) * 5
    assert record.inputs == dict.fromkeys(("model", "messages", "systemInstructions", "tools", "parameters"))


@pytest.mark.parametrize(
    ("told", "arguments"),
    [
        ('{"id": 1234567890123456789012}', {"id": 1234567890123456789012}),
        ('{"x": 1E400, "y": 1e3}', {"x": "1E400", "y": 1000.0}),
        ('{"x": NaN}', {"x": "NaN"}),
        ({"already": "parsed"}, {"already": "parsed"}),
        ("北京", "北京"),
        ("{'python': 'repr'}", "{'python': 'repr'}"),
        ("[" * 100_000, "[" * 100_000),
        ("1" * 5_000, "1" * 5_000),
    ],
)
def test_case_010_arguments_are_parsed_with_exact_numbers(told, arguments):
    t = Telling()
    t.tool("x", facts=does("f", told))
    assert only(t).inputs == {"name": "f", "arguments": arguments, "callId": None}


@pytest.mark.parametrize("cut", ['{"a": "bcd', '{"a": 1, "b"', "[1, 2,", '{"a": "b...', '{"a": 1, ...'])
def test_case_009_cut_json_stays_text_with_a_flag(cut):
    t = Telling()
    t.tool("x", facts=does("f", cut, cut))
    record = only(t)
    assert (record.inputs["arguments"], record.outputs) == (cut, cut)
    assert record.flags == ["input_truncated", "output_truncated"]


def test_a_result_that_is_no_json_is_not_taken_for_cut_json():
    t = Telling()
    t.tool("x", facts=does("f", "{'a': 1}", "{note} this is text"))
    assert only(t).flags == []


def test_markers_of_lost_content_stay_in_their_place():
    t = Telling()
    lost, cut = {"$missing": {"bytes": 3}}, {"$cut": {"bytes": 9}}
    t.model(
        "m",
        facts={"messages": [lost, text("user", "hi")], "outputMessages": [cut], "calls": [{"id": "c", "name": "f"}]},
    )
    record = only(t)
    assert record.inputs["messages"] == [lost, text("user", "hi")]
    assert record.outputs == [cut]
    assert record.tool_calls == [{"id": "c", "name": "f", "arguments": None}]


def test_an_error_is_a_record():
    t = Telling()
    t.model("m", facts={"status": "error", "errorType": "Timeout", "errorMessage": "too slow"})
    record = only(t)
    assert (record.status, record.error) == ("error", {"type": "Timeout", "message": "too slow"})


def test_a_negative_duration_is_none_at_all():
    t = Telling()
    t.model("m", at=(10, 5))
    record = only(t)
    assert (record.duration_ms, record.flags) == (0, ["negative_duration"])


def test_what_later_events_tell_is_filled_in_and_overwrites_nothing():
    t = Telling()
    t.model("m", facts={"model": "m", "inputTokens": 1})
    t.tell(
        "NODE_AMENDED",
        {"spanId": "m", "facts": {"model": "other", "outputMessages": [text("assistant", "late")]}},
        {"traceId": "t1", "spanId": "m"},
    )
    by_record = {"recordId": str(uuid.uuid5(RECORD_NAMESPACE, "t1/m")), "facts": {"responseId": "r"}}
    t.tell("NODE_AMENDED", by_record)
    record = only(t)
    assert (record.model_id, record.output_text, record.response_id) == ("m", "late", "r")


# --- spans that do not end --------------------------------------------------------------------------------------------


def started(t: Telling, **facts):
    t.span("NODE_STARTED", "m", kind="MODEL", at=(5, None), facts=facts)


@pytest.mark.parametrize(("flags", "known"), [(["attributes_dropped"], 3), ([], 1)])
def test_a_limit_on_attributes_costs_the_end_the_beginning_of_the_messages(flags: list[str], known: int) -> None:
    t = Telling()
    history = [text("user", str(i)) for i in range(3)]
    t.span("NODE_STARTED", "m", kind="MODEL", at=(0, None), facts={"messages": history})
    t.model("m", at=(0, 1), facts={"messages": history[2:], "flags": flags, "outputText": "x"})
    (record,) = fold(t.events).records()
    assert len(record.inputs["messages"]) == known


def test_a_started_call_of_a_dead_stream_is_interrupted():
    t = Telling()
    started(t, model="gpt", messages=[text("user", "hi")])
    record = only(t)
    assert (record.status, record.model_id, record.inputs["messages"]) == ("interrupted", "gpt", [text("user", "hi")])
    assert (record.captured_at_epoch_ms, record.duration_ms) == (None, None)
    (run,) = fold(t.events).runs
    assert (run.status, run.complete, run.open) == ("interrupted", False, [])


def test_a_started_call_of_a_live_stream_is_open():
    t = Telling()
    started(t, model="gpt")
    view = fold(t.events, live={"s1"})
    assert list(view.records()) == []
    (run,) = view.runs
    assert (run.status, run.open, run.records, run.ended_ms) == ("open", ["m"], 0, None)


def test_a_call_that_is_open_across_a_segment_of_a_live_process_is_not_interrupted() -> None:
    first, second = Telling("s1"), Telling("s2")
    started(first)
    first.tell("STREAM_SEALED", {"count": 1})
    second.tell("STREAM_OPENED", {"origin": "o", "nonce": "n", "prevStream": {"id": "s1", "size": 2, "hash": ""}})
    assert list(fold([*first.events, *second.events], live={"s2"}).records()) == []
    second.model("m", at=(5, 9))
    (record,) = fold([*first.events, *second.events], live={"s2"}).records()
    assert (record.status, record.journal.stream) == ("ok", "s2")


def without_agents(*, origin: str = "configDigest") -> Telling:
    """A process that answered two requests, one after the other; no agent's span tells of their ends."""
    t = Telling()
    t.tell("STREAM_OPENED", {"origin": "o", "nonce": "n", origin: "d"})
    t.tool("a", trace="t1", at=(0, 5))
    t.tool("b", trace="t2", at=(7, 9))
    return t


def test_of_a_run_without_an_agent_only_the_end_of_its_process_tells_that_it_has_ended() -> None:
    t = without_agents()
    assert [run.status for run in fold(t.events, live={"s1"}).runs] == ["ok", "ok"], "it may go on"
    killed = fold(t.events).runs
    assert [run.status for run in killed] == ["ok", "interrupted"], "it had gone on to the second"
    t.tell("STREAM_SEALED", {"count": 3})
    assert [run.status for run in fold(t.events).runs] == ["ok", "ok"]
    told_by_others = without_agents(origin="other")
    assert [run.status for run in fold(told_by_others.events).runs] == ["ok", "ok"], "a receiver that was killed"


def test_case_005_an_abandoned_stream_is_partial():
    t = Telling()
    started(t, model="gpt", messages=[text("user", "hi")])
    known = {"type": "MODEL", "facts": {"outputMessages": [text("assistant", "hel")]}}
    t.tell(
        "NODE_INTERRUPTED",
        {"reason": "abandoned", "record": known},
        {"traceId": "t1", "spanId": "m"},
        ts=T0 // 1_000_000 + 8,
    )
    record = only(t, live={"s1"})
    assert (record.status, record.output_text, record.duration_ms) == ("partial", "hel", 3)
    assert record.inputs["messages"] == [text("user", "hi")]


@pytest.mark.parametrize("late", [False, True])
def test_a_record_wins_over_an_interruption_whatever_came_first(late):
    t = Telling()
    started(t)
    tell = [
        lambda: t.tell("NODE_INTERRUPTED", {"reason": "shutdown"}, {"traceId": "t1", "spanId": "m"}),
        lambda: t.model("m", at=(5, 9), facts={"outputMessages": [text("assistant", "whole")]}),
    ]
    for one in reversed(tell) if late else tell:
        one()
    record = only(t)
    assert (record.status, record.output_text, record.duration_ms) == ("ok", "whole", 4)


def test_a_type_that_the_start_did_not_tell_is_closed_by_the_end():
    t = Telling()
    t.span("NODE_STARTED", "x", at=(0, None))
    t.tool("x", facts=does("f"))
    t.span("NODE_STARTED", "s", at=(0, None))
    t.span("STEP_ENDED", "s", kind="embeddings")
    t.span("NODE_STARTED", "never", at=(0, None))
    assert [r.span_id for r in fold(t.events).records()] == ["x"]


@pytest.mark.parametrize(
    ("span_name", "agent"),
    [
        ("invoke_agent 6f0b7a52-6f5b-4f0e-9f43-0d1f6c5a9f11", None),
        ("invoke_agent", None),
        ("invoke_agent guide", "invoke_agent guide"),
        ("Guide.run", "Guide.run"),
    ],
)
def test_an_agent_without_a_name_is_called_as_its_span_unless_that_holds_an_id_alone(
    span_name: str, agent: str | None
) -> None:
    t = Telling()
    t.agent("a", at=(0, 9), name=span_name)
    t.model("m", parent="a", at=(1, 2))
    (record,) = fold(t.events).records()
    assert record.agent_name == agent

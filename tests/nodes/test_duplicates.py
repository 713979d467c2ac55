"""Each call counts once: copies, conflicts, probable re-exports, several instrumentations of one call."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.nodes.fold import fold

from .telling import Telling, asks, does, text

SAID = {"messages": [text("user", "hi")], "outputMessages": [text("assistant", "hello")]}
USED = {"inputTokens": 100, "outputTokens": 10}


def spans(t: Telling):
    return [(r.span_id, r.merged_span_ids) for r in fold(t.events).records()]


def test_case_015_copies_conflict_free_and_a_probable_reexport():
    t = Telling()
    pay = does("pay", '{"eur":5}', "paid", "c1")
    for _ in range(2):
        t.model("chat", at=(0, 50), facts={"responseId": "resp_1", **USED}, session="conv")
        t.tool("pay", at=(60, 90), facts=pay, session="conv")
    t.tool("pay", at=(60, 90), facts=dict(reversed(pay.items())), session="conv")
    t.tool("again", trace="t2", at=(60, 90), facts=pay, session="conv")
    view = fold(t.events)
    chat, first, suspect = view.records()
    assert (chat.copies_seen, first.copies_seen, first.flags) == (2, 3, [])
    assert (suspect.span_id, suspect.flags) == ("again", ["probable_reexport"])
    totals = [run.tokens for run in view.runs]
    assert totals[0] == {"input": 100, "output": 10}
    assert sum(run.records for run in view.runs) == 2


def test_a_model_call_exported_again_under_new_ids_counts_once():
    t = Telling()
    t.model("m", trace="t1", facts={"responseId": "r", **USED, **SAID}, session="s")
    t.model("n", trace="t2", facts={"responseId": "r", **USED, **SAID}, session="s")
    view = fold(t.events)
    assert [r.flags for r in view.records()] == [[], ["probable_reexport"]]
    assert [run.tokens["input"] for run in view.runs] == [100, None]


def test_another_content_under_the_same_ids_is_a_conflict_and_both_stay():
    t = Telling()
    t.tool("x", facts=does("f", "{}", "one", "c1"))
    t.tool("x", facts=does("f", "{}", "two", "c1"))
    t.tool("x", facts=does("f", "{}", "two", "c1"))
    first, second = fold(t.events).records()
    assert (first.outputs, first.flags, first.copies_seen) == ("one", ["conflict"], 1)
    assert (second.outputs, second.flags, second.copies_seen) == ("two", ["conflict"], 2)
    assert first.record_id != second.record_id


def test_equal_response_id_and_other_scope_is_one_call():
    t = Telling()
    t.model("inner", trace="t2", at=(1, 2), scope="native", facts={"responseId": "r", "retryCount": 2, **USED})
    t.model("outer", trace="t1", at=(0, 3), scope="otel", facts={"responseId": "r", "retryCount": 1, **SAID})
    (record,) = fold(t.events).records()
    assert (record.span_id, record.merged_span_ids) == ("outer", ["inner"])
    assert record.retry_count == 2
    assert (record.input_tokens, record.output_tokens) == (100, 10)
    assert record.output_text == "hello"


def test_equal_response_ids_of_one_scope_are_two_calls():
    t = Telling()
    for i in range(3):
        t.model(f"m{i}", at=(10 * i, 10 * i + 5), facts={"responseId": "same", **SAID})
    assert spans(t) == [("m0", []), ("m1", []), ("m2", [])]


def test_a_server_that_repeats_ids_under_two_instrumentations():
    t = Telling()
    for i in range(3):
        t.model(f"a{i}", trace=f"t{i}", at=(10 * i, 10 * i + 5), scope="a", facts={"responseId": "same", **SAID})
        t.model(f"b{i}", trace=f"u{i}", at=(10 * i + 1, 10 * i + 4), scope="b", facts={"responseId": "same"})
    assert spans(t) == [("a0", ["b0"]), ("a1", ["b1"]), ("a2", ["b2"])]


@pytest.mark.parametrize("between", [None, "step", "foreign"])
def test_nested_model_spans_are_one_call(between):
    t = Telling()
    t.model("outer", at=(0, 9), facts={**SAID, "status": "error", "errorType": "E"})
    if between == "step":
        t.span("STEP_ENDED", "between", kind="chain", parent="outer")
    elif between == "foreign":
        t.tell("LINKS", {"links": {"t1": {"between": "outer"}}})
    t.model("inner", parent="between" if between else "outer", at=(1, 8), facts={**USED, "responseId": "r"})
    (record,) = fold(t.events).records()
    assert (record.span_id, record.merged_span_ids, record.status) == ("outer", ["inner"], "error")
    assert (record.input_tokens, record.response_id) == (100, "r")


def test_the_outermost_span_with_content_leads_but_the_outermost_gives_the_status():
    t = Telling()
    t.model("outer", at=(0, 9), facts={"model": "m", "status": "error"})
    t.model("inner", parent="outer", at=(1, 8), facts=SAID)
    (record,) = fold(t.events).records()
    assert (record.span_id, record.merged_span_ids, record.status, record.model_id) == (
        "inner",
        ["outer"],
        "error",
        "m",
    )


def test_token_details_may_come_from_a_span_that_counts_the_same() -> None:
    t = Telling()
    t.model("outer", at=(0, 9), scope="scope.b", facts={"outputText": "x", "inputTokens": 9, "outputTokens": 2})
    t.model("inner", parent="outer", at=(1, 8), facts={"inputTokens": 9, "outputTokens": 2, "cacheReadTokens": 4})
    (record,) = fold(t.events).records()
    assert (record.input_tokens, record.output_tokens, record.cache_read_tokens) == (9, 2, 4)
    t = Telling()
    t.model("outer", at=(0, 9), scope="scope.b", facts={"outputText": "x", "inputTokens": 9, "outputTokens": 2})
    t.model("inner", parent="outer", at=(1, 8), facts={"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 4})
    (record,) = fold(t.events).records()
    assert (record.input_tokens, record.cache_read_tokens) == (9, None), (
        "it counts otherwise: 9 may leave out the cached 4"
    )


def test_tokens_come_from_a_span_that_counts_both_input_and_output() -> None:
    t = Telling()
    t.model("outer", at=(0, 9), scope="scope.b", facts={"outputText": "x", "outputTokens": 2})
    t.model("inner", parent="outer", at=(1, 8), facts={"inputTokens": 9, "outputTokens": 2})
    (record,) = fold(t.events).records()
    assert (record.input_tokens, record.output_tokens) == (9, 2)


@pytest.mark.parametrize(("told", "apart"), [([text("system", "Be brief.")], None), ([], ["Be brief."])])
def test_the_request_is_filled_up_from_all_spans_of_a_call(told: list[Any], apart: list[str] | None) -> None:
    t = Telling()
    outer = t.tell("REQUEST_HEADER", {"parameters": {"base_url": "u", "top_p": 1}})
    inner = t.tell(
        "REQUEST_HEADER",
        {"tools": [{"name": "f"}], "parameters": {"top_p": 2, "seed": 3}, "instructions": ["Be brief."]},
    )
    facts = {"messages": [*told, text("user", "hi")], "outputText": "x"}
    t.model("outer", at=(0, 9), scope="scope.b", facts=facts, header=outer.seq)
    t.model("inner", parent="outer", at=(1, 8), facts={"outputText": "x"}, header=inner.seq)
    (record,) = fold(t.events).records()
    assert record.inputs["tools"] == [{"name": "f"}]
    assert record.inputs["parameters"] == {"base_url": "u", "top_p": 1, "seed": 3}
    assert record.inputs["systemInstructions"] == apart, "said once, among the messages or apart from them"


def test_a_model_call_below_a_tool_or_an_agent_is_a_call_of_its_own():
    t = Telling()
    t.model("outer", at=(0, 9), facts=SAID)
    t.tool("tool", parent="outer", at=(1, 8), facts=does("f"))
    t.model("inner", parent="tool", at=(2, 7), facts=SAID)
    assert sorted(spans(t)) == [("inner", []), ("outer", []), ("tool", [])]


def test_siblings_of_two_scopes_with_the_same_words_are_one_call():
    t = Telling()
    t.agent("a0", at=(0, 99))
    t.model("outer", parent="a0", at=(0, 9), scope="a", facts=SAID)
    t.model("inner", parent="a0", at=(1, 8), scope="b", facts={**USED, "outputMessages": [text("assistant", "hello")]})
    assert spans(t) == [("outer", ["inner"])]


def test_concurrent_calls_of_two_scopes_with_other_words_are_two():
    t = Telling()
    t.model("one", trace="t1", at=(0, 9), scope="a", facts=SAID)
    t.model("two", trace="t2", at=(1, 8), scope="b", facts={"outputMessages": [text("assistant", "something else")]})
    assert spans(t) == [("one", []), ("two", [])]


def test_two_spans_that_tell_nothing_are_one_call_when_one_process_made_both() -> None:
    t = Telling()
    for span, at in (("outer", (0, 9)), ("inner", (1, 8))):
        event = t.model(span, trace=span, at=at, scope=span, facts={"model": "m"})
        event.payload["provider"] = 1
    assert spans(t) == [("outer", ["inner"])]
    t.events[1].payload["provider"] = 2
    assert spans(t) == [("outer", []), ("inner", [])]


def test_an_interval_that_fits_two_calls_is_merged_with_neither():
    t = Telling()
    t.model("one", trace="t1", at=(0, 9), scope="a", facts=SAID)
    t.model("two", trace="t2", at=(0, 9.5), scope="a", facts=SAID)
    t.model("which", trace="t3", at=(1, 8), scope="b", facts=SAID)
    assert len(spans(t)) == 3


def test_of_calls_side_by_side_those_that_begin_and_end_closest_are_one():
    t = Telling()
    for i, (start, end) in enumerate([(0, 30), (2, 20), (4, 40)]):
        t.model(f"outer{i}", trace=f"o{i}", at=(start, end), scope="a", facts={"outputTokens": 7})
        t.model(f"inner{i}", trace=f"i{i}", at=(start + 1, end - 1), scope="b", facts={"outputTokens": 7})
    assert sorted(spans(t)) == [(f"outer{i}", [f"inner{i}"]) for i in range(3)]


def test_of_calls_side_by_side_those_below_the_same_span_are_one():
    t = Telling()
    for i in range(3):
        t.agent(f"agent{i}", trace=f"t{i}", at=(0, 40))
        t.model(f"outer{i}", parent=f"agent{i}", trace=f"t{i}", at=(1, 30 + i), scope="a", facts={"outputTokens": 7})
        t.model(f"inner{i}", parent=f"agent{i}", trace=f"t{i}", at=(4 - i, 20), scope="b", facts={"outputTokens": 7})
    assert sorted(spans(t)) == [(f"outer{i}", [f"inner{i}"]) for i in range(3)]


def test_of_calls_side_by_side_each_has_a_partner():
    t = Telling()
    for scope, intervals in (("a", [(0, 10), (1, 20), (2, 30)]), ("b", [(4, 9), (3, 19), (5, 29)])):
        for i, at in enumerate(intervals):
            t.model(f"{scope}{i}", trace=f"{scope}{i}", at=at, scope=scope, facts={"outputTokens": 7})
    assert sorted(spans(t)) == [(f"a{i}", [f"b{i}"]) for i in range(3)], "only b0 fits into a0, so b1 is left for a1"


def test_one_call_too_many_is_a_doubt():
    t = Telling()
    for scope, intervals in (("a", [(0, 10), (1, 20), (2, 30)]), ("b", [(4, 9), (5, 29)])):
        for i, at in enumerate(intervals):
            t.model(f"{scope}{i}", trace=f"{scope}{i}", at=at, scope=scope, facts={"outputTokens": 7})
    assert len(spans(t)) == 5


def test_the_outer_instrumentation_is_mostly_the_same():
    t = Telling()
    for i in range(3):
        at = 100 * i
        t.model(f"outer{i}", trace=f"o{i}", at=(at, at + 9), scope="a", facts={"outputTokens": 7})
        t.model(f"inner{i}", trace=f"i{i}", at=(at + 1, at + 8), scope="b", facts={"outputTokens": 7})
    t.model("outer3", trace="o3", at=(2, 7), scope="a", facts={"outputTokens": 7})
    t.model("inner3", trace="i3", at=(3, 6), scope="b", facts={"outputTokens": 7})
    assert sorted(spans(t)) == [(f"outer{i}", [f"inner{i}"]) for i in range(4)], "inner0 around outer3 is no pair"


def test_when_the_beginnings_and_the_ends_disagree_nothing_is_merged():
    t = Telling()
    t.model("one", trace="t1", at=(0, 20), scope="a", facts={"outputTokens": 7})
    t.model("two", trace="t2", at=(1, 30), scope="a", facts={"outputTokens": 7})
    t.model("which", trace="t3", at=(2, 19), scope="b", facts={"outputTokens": 7})
    assert len(spans(t)) == 3


def test_a_call_below_one_that_had_ended_is_another_call():
    t = Telling()
    t.model("one", at=(0, 5), facts={"model": "m"})
    t.model("two", parent="one", at=(6, 9), facts={"model": "m"})
    t.model("three", parent="two", at=(9, 9), scope="log", facts={"model": "m"})
    assert spans(t) == [("one", []), ("two", ["three"])]


def test_an_mcp_call_inside_execute_tool_is_one_tool():
    t = Telling()
    t.tool("outer", at=(0, 9), scope="agents", facts=does("search", '{"q":1}', None, "c1"))
    t.tool("mcp", parent="outer", at=(1, 8), scope="mcp", facts=does("search", None, "found"))
    (record,) = fold(t.events).records()
    assert (record.span_id, record.merged_span_ids, record.outputs, record.tool_call_id) == (
        "outer",
        ["mcp"],
        "found",
        "c1",
    )


def test_a_tool_that_calls_another_tool_stays_two():
    t = Telling()
    t.tool("outer", at=(0, 9), facts=does("plan", "{}", "x", "c1"))
    t.tool("inner", parent="outer", at=(1, 8), facts=does("search", "{}", "y", "c2"))
    assert spans(t) == [("outer", []), ("inner", [])]


def test_a_tool_reported_by_two_scopes_is_one():
    t = Telling()
    t.agent("a0", at=(0, 99))
    t.model("m", parent="a0", at=(0, 1), facts=asks(("c1", "f", '{"n":1}'), ("c2", "f", '{"n":2}')))
    for n in (1, 2):
        t.tool(f"x{n}", parent="a0", at=(1 + n, 9 + n), scope="a", facts=does("f", f'{{"n":{n}}}', n, f"c{n}"))
        t.tool(f"y{n}", parent="a0", at=(1.2 + n, 8 + n), scope="b", facts=does("f", f'{{"n":{n}}}', n))
    assert spans(t) == [("m", []), ("x1", ["y1"]), ("x2", ["y2"])]


def test_agent_and_step_spans_never_count():
    t = Telling()
    t.agent("a0", at=(0, 9), facts=USED)
    t.span("STEP_ENDED", "s", kind="embeddings", parent="a0", facts=USED)
    t.model("m", parent="a0", at=(1, 2), facts=USED)
    view = fold(t.events)
    assert [r.span_id for r in view.records()] == ["m"]
    assert view.runs[0].tokens == {"input": 100, "output": 10}


def test_case_012_an_agent_counts_only_where_no_model_call_is_below_it() -> None:
    t = Telling()
    t.agent("a0", at=(0, 99), facts={"inputTokens": 100, "outputTokens": 10})
    t.model("m", parent="a0", at=(1, 2), facts=USED)
    t.tool("x", parent="a0", at=(3, 9), facts=does("ask"))
    t.span("HANDOFF_ENDED", "remote", parent="x", at=(4, 8), facts={"inputTokens": 50, "outputTokens": 5})
    view = fold(t.events)
    assert view.runs[0].tokens == {"input": 150, "output": 15}
    assert [r.span_id for r in view.records()] == ["m", "x"]


@pytest.mark.parametrize(
    ("parent", "name", "calls"), [("asked", "weather", 1), ("asked", "train", 2), ("elsewhere", "weather", 2)]
)
def test_the_side_of_a_server_is_the_call_that_its_client_made(parent: str, name: str, calls: int) -> None:
    client, server = Telling("s1"), Telling("s2")
    client.tool("asked", scope="mcp", at=(0, 9), facts={"toolName": "weather"})
    server.tool("served", scope="mcp", parent=parent, at=(2, 5), facts={"toolName": name})
    records = list(fold([*client.events, *server.events]).records())
    assert len(records) == calls


def test_a_tool_that_calls_itself_in_its_own_process_is_two_calls() -> None:
    t = Telling("s1")
    t.tool("outer", scope="mcp", at=(0, 9), facts={"toolName": "weather"})
    t.tool("inner", scope="mcp", parent="outer", at=(2, 5), facts={"toolName": "weather"})
    assert len(list(fold(t.events).records())) == 2

"""An answer that comes as a span of its own, a point in time after the call, is part of that call."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from otel_agentrec.nodes.fold import fold

from .telling import Telling, text

ASKED = {"model": "m", "messages": [text("user", "hi")]}
SAID = {**ASKED, "responseId": "r", "outputMessages": [text("assistant", "hello")], "inputTokens": 3, "outputTokens": 1}


def streamed(t: Telling, name: str, start: float, asked: str = "hi", **where: Any) -> None:
    messages = [text("user", asked)]
    t.model(f"{name}-call", at=(start, start + 2), facts={**ASKED, "messages": messages}, **where)
    told = {**SAID, "messages": messages, "outputMessages": [text("assistant", f"to {asked}")]}
    t.model(f"{name}-said", at=(start + 9, start + 9), facts=told, **where)


@pytest.mark.parametrize("traces", [("t1", "t1"), ("t1", "t2")])
def test_it_is_one_record_that_lasts_until_its_answer(traces: tuple[str, str]) -> None:
    t = Telling()
    t.model("call", trace=traces[0], at=(0, 2), facts=ASKED)
    t.model("said", trace=traces[1], at=(9, 9), facts=SAID)
    for events in permutations(t.events):
        (record,) = fold(events).records()
        assert (record.span_id, record.merged_span_ids, record.duration_ms) == ("call", ["said"], 9)
        assert (record.output_text, record.input_tokens, record.response_id) == ("hello", 3, "r")


def test_calls_at_the_same_time_get_their_own_answers() -> None:
    t = Telling()
    t.agent("a", at=(0, 99))
    streamed(t, "one", 0, "first", parent="a")
    streamed(t, "two", 1, "second", parent="a")
    streamed(t, "three", 2, "second", parent="a")
    assert [(r.span_id, r.merged_span_ids, r.output_text) for r in fold(t.events).records()] == [
        ("one-call", ["one-said"], "to first"),
        ("two-call", ["two-said"], "to second"),
        ("three-call", ["three-said"], "to second"),
    ]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"facts": SAID}, {}),
        ({"scope": "another"}, {}),
        ({"parent": "a"}, {}),
        ({}, {"at": (9, 9.5)}),
        ({}, {"facts": {**SAID, "messages": [text("user", "something else")]}}),
        ({}, {"facts": {**SAID, "model": "another"}}),
        ({}, {"facts": {**SAID, "status": "error"}}),
        ({"facts": {**ASKED, "status": "error"}}, {}),
        ({"facts": {"model": "m"}}, {"facts": {key: v for key, v in SAID.items() if key != "messages"}}),
        ({"at": (9, 10)}, {"at": (8, 8)}),
    ],
)
def test_what_may_be_a_call_of_its_own_stays_one(call: dict[str, Any], said: dict[str, Any]) -> None:
    t = Telling()
    t.model("call", **{"at": (0, 2), "facts": ASKED, **call})
    t.model("said", **{"at": (9, 9), "facts": SAID, **said})
    assert len(list(fold(t.events).records())) == 2

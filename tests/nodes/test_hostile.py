"""Events whose payloads are not what their type says cost themselves, never the view."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from otel_agentrec.journal.events import TYPES, Event
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.stats import stats_of

from .telling import Telling, asks, does

NAMES = [
    "type",
    "kind",
    "name",
    "scope",
    "startedAt",
    "endedAt",
    "facts",
    "header",
    "provider",
    "record",
    "links",
    "from",
    "recordId",
    "score",
    "label",
    "observedAt",
    "count",
    "reason",
    "counters",
]
FACTS = [
    "model", "responseId", "calls", "messages", "outputMessages", "outputText", "reasoningText", "inputTokens", "toolName",
    "toolCallId", "arguments", "result", "retries", "retryCount", "flags", "status", "errorType", "finishReasons",
]  # fmt: skip
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "MODEL", "TOOL", "m1", "c1", "{"])
)
shaped = st.fixed_dictionaries(
    {}, optional={"role": scalars, "parts": st.lists(st.dictionaries(st.sampled_from(["type", "id", "name", "arguments", "content", "response"]), scalars))}
)  # fmt: skip
anything = st.recursive(
    scalars | shaped,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FACTS), inner, max_size=3),
    max_leaves=6,
)
facts = st.dictionaries(st.sampled_from(FACTS), anything, max_size=6)
payloads = st.dictionaries(st.sampled_from(NAMES), anything | facts | st.sampled_from(["MODEL", "TOOL"]), max_size=8)
traces = st.none() | st.dictionaries(
    st.sampled_from(["traceId", "spanId", "parentSpanId", "path"]), scalars | st.lists(scalars, max_size=2)
)


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    made = []
    for seq in range(draw(st.integers(1, 6))):
        e = {
            "stream": "s",
            "seq": seq,
            "type": draw(st.sampled_from([*TYPES])),
            "payload": draw(payloads),
            "trace": draw(traces),
        }
        made.append(Event.from_json(e))
    return made


@given(events())
@settings(max_examples=100, deadline=None)
def test_no_payload_breaks_the_view(hostile: list[Event]) -> None:
    t = Telling("good")
    t.model("m", facts=asks(("c1", "f", "{}")))
    t.tool("x", at=(2, 3), facts=does("f", "{}", "r", "c1"))
    view = fold([*hostile, *t.events])
    records = list(view.records())
    assert {"m", "x"} <= {r.span_id for r in records}
    assert json.dumps([r.to_json() for r in records], default=repr)
    assert view.runs
    assert json.dumps(stats_of(view).to_json(), default=repr)


def test_numbers_beyond_all_bounds_are_not_used() -> None:
    t = Telling()
    e: Any = t.model("m", facts={"inputTokens": 10**30, "outputTokens": 5})
    e.payload["startedAt"], e.payload["endedAt"] = "9" * 40, "9" * 5_000
    view = fold(t.events)
    (record,) = view.records()
    assert (record.started_at_epoch_ms, record.input_tokens) == (None, 10**30)
    assert view.runs[0].tokens == {"input": None, "output": 5}
    assert (stats_of(view).tokens.input, stats_of(view).tokens.output) == (None, 5)


def test_scores_that_are_no_numbers_are_in_no_mean() -> None:
    t = Telling()
    t.model("m", facts=asks())
    (record,) = fold(t.events).records()
    for score in (10**400, float("nan"), float("inf"), 0.5):
        t.tell("EVALUATED", {"recordId": record.record_id, "name": "q", "score": score})
    (found,) = stats_of(fold(t.events)).to_json()["evaluations"]
    assert (found["count"], found["scored"], found["mean"], found["max"]) == (4, 1, 0.5, 0.5)

"""The numbers of a recording: every call counts once, what is not told is null, and other views say the same."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.capture.ingest import ingest
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes import stats as numbers
from otel_agentrec.nodes.fold import View, fold
from otel_agentrec.nodes.identity import record_id
from otel_agentrec.nodes.stats import Stats, stats_of
from otel_agentrec.records import NodeIoRecord, NodeType
from tests.nodes.telling import Telling, answer, asks, does, text

Json = Any
CORPUS = Path(__file__).parent.parent / "data" / "corpus"
SAID = {"messages": [text("user", "hi")], "outputMessages": [text("assistant", "hello")]}


def of(t: Telling) -> dict[str, Json]:
    return stats_of(fold(t.events)).to_json()


def usage(into: int | None, out: int | None, **more: Json) -> dict[str, Json]:
    told = {"model": "m", **SAID, "inputTokens": into, "outputTokens": out, **more}
    return {key: value for key, value in told.items() if value is not None}


# --- tokens and times --------------------------------------------------------------------------------------------------


def test_tokens_are_summed_and_what_is_not_told_is_null() -> None:
    t = Telling()
    t.model("a", facts=usage(10, 5, cacheReadTokens=4, otherTokens={"audio": 2}))
    t.model("b", facts=usage(20, 0, cacheReadTokens=0, otherTokens={"audio": 3}))
    found = of(t)["tokens"]
    assert found == {
        "input": 30,
        "output": 5,
        "cacheRead": 4,
        "cacheWrite": None,
        "reasoning": None,
        "other": {"audio": 5},
    }


def test_a_call_that_several_spans_tell_of_counts_once() -> None:
    t = Telling()
    t.model("outer", at=(0, 10), scope="a", facts=usage(10, 5))
    t.model("inner", at=(1, 9), scope="b", parent="outer", facts=usage(10, 5))
    found = of(t)
    assert (found["records"], found["tokens"]["input"], found["models"]["count"]) == (1, 10, 1)


def test_sums_that_agents_repeat_are_not_counted() -> None:
    t = Telling()
    t.model("m", parent="a", at=(1, 2), facts=usage(10, 5))
    t.agent("a", at=(0, 3), facts={"agentName": "clerk", "inputTokens": 10, "outputTokens": 5})
    found = of(t)
    assert found["tokens"]["input"] == 10
    assert [(a["agent"], a["count"], a["tokens"]["input"]) for a in found["byAgent"]] == [("clerk", 1, 10)]


def test_a_remote_agent_counts_for_what_it_says_itself() -> None:
    t = Telling()
    t.agent("a", at=(0, 3), facts={"agentName": "far", "inputTokens": 10, "outputTokens": 5})
    found = of(t)
    assert (found["records"], found["tokens"]["input"], found["tokens"]["output"]) == (0, 10, 5)
    assert [(a["agent"], a["count"], a["tokens"]["input"]) for a in found["byAgent"]] == [("far", 0, 10)]


def test_steps_are_kept_apart() -> None:
    t = Telling()
    t.model("m", facts=usage(10, 5))
    t.span("STEP_ENDED", "e", kind="embeddings", at=(0, 7), facts={"inputTokens": 99})
    t.span("STEP_ENDED", "f", kind="embeddings", at=(0, 9), facts={"inputTokens": 1})
    found = of(t)
    assert (found["records"], found["tokens"]["input"]) == (1, 10)
    (step,) = found["steps"]
    assert (step["kind"], step["count"], step["tokens"]["input"]) == ("embeddings", 2, 100)
    assert step["latencyMs"]["max"] == 9


def test_latency_is_of_calls_that_ended() -> None:
    t = Telling()
    t.model("a", at=(0, 30), facts=usage(1, 1))
    t.model("b", at=(0, 10), facts=usage(1, 1))
    t.span("NODE_STARTED", "c", kind="MODEL", at=(0, None), facts={"model": "m"})
    found = of(t)
    assert found["status"] == {"ok": 2, "error": 0, "interrupted": 1, "partial": 0}
    assert found["byModel"][0]["latencyMs"] == {
        "count": 2,
        "mean": 20.0,
        "p50": 10,
        "p95": 30,
        "max": 30,
        "exact": True,
    }


def test_a_call_under_way_is_only_counted_as_that() -> None:
    t = Telling()
    t.span("NODE_STARTED", "c", kind="MODEL", at=(0, None), facts={"model": "m"})
    found = stats_of(fold(t.events, live={"s1"})).to_json()
    assert (found["open"], found["records"]) == (1, 0)


# --- what went wrong ---------------------------------------------------------------------------------------------------


def test_errors_by_type_retries_and_streams() -> None:
    t = Telling()
    t.tool("a", facts={**does("f", "{}"), "status": "error", "errorType": "Timeout"})
    t.tool("b", facts={**does("f", "{}"), "status": "error", "errorType": "Timeout"})
    t.tool("c", facts={**does("g", "{}"), "status": "error"})
    t.model("d", facts=usage(1, 1, retryCount=3, streamed=True))
    t.model("e", facts=usage(1, 1, streamed=False))
    found = of(t)
    assert found["errors"] == [{"type": "Timeout", "count": 2}, {"type": "(unknown)", "count": 1}]
    assert [(x["tool"], x["status"]["error"]) for x in found["byTool"]] == [("f", 2), ("g", 1)]
    models = found["models"]
    assert (models["retried"], models["retries"], models["streamed"]) == (1, 3, 1)


def test_model_calls_without_messages() -> None:
    off = {"$off": {"bytes": 9}}
    t = Telling()
    t.model("told", facts=usage(1, 1))
    t.model("bare", facts={"model": "m"})
    t.model("off", facts={"model": "m", "messages": off, "outputMessages": off})
    t.tool("tool", facts=does("f"))
    found = of(t)
    assert (found["contentMissing"], found["contentOff"]) == (1, 1)


def test_losses_are_those_of_the_whole_recording() -> None:
    t = Telling()
    t.tell("DROPPED", {"count": 2, "reason": "ENOSPC"})
    t.tell("DROPPED", {"count": 3, "reason": "ENOSPC"})
    t.tell("DROPPED", {"count": "many", "reason": "x"})
    t.tell("STREAM_SEALED", {"count": 1, "counters": {"swallowed": 2, "late": 1, "bad": None}})
    t.tell("STREAM_SEALED", {"count": 1, "counters": {"swallowed": 1}})
    found = stats_of(fold(t.events), lambda *_: False).to_json()
    assert (found["dropped"], found["droppedByReason"]) == (5, [{"reason": "ENOSPC", "count": 5}])
    assert (found["swallowed"], found["counters"]) == (3, {"late": 1, "swallowed": 3})


def test_a_probable_re_export_is_not_counted() -> None:
    t = Telling()
    for trace in ("t1", "t2"):
        t.model("m" + trace, trace=trace, session="s", facts=usage(10, 5, responseId="r"))
    found = of(t)
    assert (found["reexports"], found["records"], found["tokens"]["input"]) == (1, 1, 10)


def test_two_exports_of_a_span_are_two_records_and_paid_once() -> None:
    t = Telling()
    t.model("m", facts=usage(10, 5))
    t.model("m", facts=usage(11, 5))
    found = of(t)
    assert (found["records"], found["tokens"]["input"]) == (2, 10)


def test_a_tool_without_a_span_counts_as_recovered() -> None:
    t = Telling()
    t.model("m1", at=(0, 1), session="s", facts=asks(("c1", "f", {})))
    t.model("m2", at=(2, 3), session="s", facts={**SAID, "messages": [*SAID["messages"], answer("c1", 7)]})
    found = of(t)
    assert (found["recovered"], found["tools"]["count"], found["tools"]["latencyMs"]["count"]) == (1, 1, 0)


# --- where, and how many -----------------------------------------------------------------------------------------------


def test_only_what_is_asked_for_counts() -> None:
    t = Telling()
    t.model("a", trace="t1", session="s1", facts=usage(10, 5))
    t.model("b", trace="t2", session="s2", facts=usage(20, 5))
    t.agent("far", trace="t2", session="s2", facts={"agentName": "x", "inputTokens": 100, "outputTokens": 1})
    t.span("STEP_ENDED", "e", trace="t2", kind="embeddings", session="s2")
    found = stats_of(fold(t.events), lambda run, session, start: session == "s1").to_json()
    assert (found["runs"], found["records"], found["tokens"]["input"], found["steps"]) == (1, 1, 10, [])


def test_any_number_of_names_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "MOST_NAMES", 5)
    t = Telling()
    for n in range(20):
        t.tool(f"s{n}", facts={**does(f"f{n}"), "status": "error", "errorType": f"E{n}"})
    found = of(t)
    assert found["byTool"][0]["tool"] == "(other)"
    assert (len(found["byTool"]), found["byTool"][0]["count"]) == (6, 15)
    assert (len(found["errors"]), found["errors"][0]) == (6, {"type": "(other)", "count": 15})


# --- evaluations -------------------------------------------------------------------------------------------------------


def test_evaluations_by_name() -> None:
    t = Telling()
    t.model("a", facts=usage(1, 1))
    t.agent("r", trace="t9", facts={"agentName": "x"})
    view = fold(t.events)
    (record,) = view.records()
    agent = next(s for s in view.spans() if s.span == "r")
    for judged, name, score, label in (
        (record.record_id, "quality", 0.5, None),
        (record.record_id, "quality", True, "pass"),
        (record.record_id, "tone", None, "kind"),
        (record_id(agent), "quality", 0, None),
        ("unknown", "quality", 9, None),
    ):
        t.tell("EVALUATED", {"recordId": judged, "name": name, "score": score, "label": label})
    found = of(t)
    assert found["evaluations"] == [
        {"name": "quality", "count": 3, "scored": 3, "mean": 0.5, "min": 0.0, "max": 1.0, "labels": {"pass": 1}},
        {"name": "tone", "count": 1, "scored": 0, "mean": None, "min": None, "max": None, "labels": {"kind": 1}},
    ]
    assert found["evaluationsUnmatched"] == 1


# --- cost --------------------------------------------------------------------------------------------------------------


class Flat:
    """A cent per call of model ``m``."""

    def of(self, record: NodeIoRecord) -> Decimal | None:
        return Decimal("0.01") if record.model_id == "m" else None


def test_cost_only_where_a_price_is_known() -> None:
    t = Telling()
    t.model("a", facts=usage(1, 1))
    t.model("b", facts=usage(1, 1))
    t.model("c", facts={**usage(1, 1), "model": "home-made"})
    found = stats_of(fold(t.events), prices=Flat()).to_json()  # type: ignore[arg-type]
    assert found["cost"] == {"usd": 0.02, "priced": 2, "unpriced": 1}
    by_model = {x["model"]: x["cost"] for x in found["byModel"]}
    assert by_model == {
        "m": {"usd": 0.02, "priced": 2, "unpriced": 0},
        "home-made": {"usd": None, "priced": 0, "unpriced": 1},
    }
    assert of(t)["cost"] is None


# --- agreement with runs, show and nodes -------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=sorted(p.name for p in CORPUS.iterdir()))
def view(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> View:
    out = tmp_path_factory.mktemp("rec")
    ingest(sorted((CORPUS / request.param).glob("*.jsonl")), out)
    return fold(Recording(out))


def total(values: list[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def test_runs_and_stats_agree(view: View) -> None:
    found, runs = stats_of(view), view.runs
    assert found.runs == len(runs)
    assert found.records == sum(run.records for run in runs) > 0
    assert found.open == sum(len(run.open) for run in runs)
    assert found.tokens.input == total([run.tokens["input"] for run in runs])
    assert found.tokens.output == total([run.tokens["output"] for run in runs])


def test_each_run_and_its_stats_agree(view: View) -> None:
    for run in view.runs:
        found = stats_of(view, lambda of, *_, wanted=run.id: of == wanted)
        assert (found.runs, found.records) == (1, run.records)
        assert {"input": found.tokens.input, "output": found.tokens.output} == run.tokens


def test_nodes_and_stats_agree(view: View) -> None:
    found, records = stats_of(view), list(view.records())
    models = [r for r in records if r.node_type is NodeType.MODEL]
    assert (found.models.count, found.tools.count) == (len(models), len(records) - len(models))
    for attribute in ("cache_read_tokens", "reasoning_tokens"):
        summed = getattr(found.tokens, attribute.removesuffix("_tokens"))
        assert summed == total([getattr(r, attribute) for r in models])
    assert found.models.status + found.tools.status == Counter(r.status for r in records)
    assert sum(found.errors.values()) == sum(r.status == "error" for r in records)
    assert found.models.streamed == sum(bool(r.streamed) for r in models)
    silent = [r for r in models if not r.inputs["messages"] and not r.outputs]
    assert found.content_missing == len(silent)


SAID_IN = {"inputs", "outputText", "outputs", "reasoningText", "error", "attributes", "toolCalls", "flags"}


def test_a_record_without_contents_is_the_record_without_contents(view: View) -> None:
    whole = [record.to_json() for _, record in view.calls()]
    brief = [record.to_json() for _, record in view.calls(contents=False)]
    for a, b in zip(whole, brief, strict=True):
        assert {k: v for k, v in a.items() if k not in SAID_IN} == {k: v for k, v in b.items() if k not in SAID_IN}
    assert all(r["outputs"] is None and r["outputText"] is None and r["attributes"] is None for r in brief)
    assert [(r["error"] or {}).get("type") for r in brief] == [(r["error"] or {}).get("type") for r in whole]


def test_an_empty_recording_has_no_numbers() -> None:
    assert stats_of(fold([])).to_json() == Stats().to_json()

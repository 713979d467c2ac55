"""Whose call it was: each rung of the ladder, and that nothing is attributed where two may be meant."""

from __future__ import annotations

import asyncio
import contextvars
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

from tests.capture.recording import events
from tests.capture.wire.making import AGENT, Wired, answer, answered, attributes, body_of, owners, said


def apart(live: Wired, name: str, told: dict[str, str], parent: trace.Span | None = None, scope: str = "demo") -> Any:
    """A model span that is not the current one, as tracers by callbacks make them."""
    context = trace.set_span_in_context(parent) if parent is not None else None
    return live.provider.get_tracer(scope).start_span(name, context=context, attributes=told)


def test_the_model_span_that_is_current_made_the_call(live: Wired) -> None:
    with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")) as span:
        live.call(body_of("Hi?"), answer(said("Hello.")))
        span.set_attributes(answered("Hello."))
    (record,) = live.records()
    (wire,) = live.wires()
    assert (wire.rung, record.wire_ids, record.retry_count) == ("exact", [wire.wire_id], 0)
    assert record.outputs == said("Hello."), "the provider's own payload"
    assert record.output_text == "Hello."
    assert (record.input_tokens, record.response_id) == (3, "r1"), "which the span did not tell"
    (amended,) = events(live.path, "NODE_AMENDED")
    assert "outputMessages" not in amended["payload"]["facts"], "which it told"


def test_a_span_of_the_http_library_in_between_changes_nothing(live: Wired) -> None:
    http = live.provider.get_tracer("opentelemetry.instrumentation.httpx")
    with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")), http.start_as_current_span("POST"):
        live.call(body_of("Hi?"), answer(said("Hello.")))
    assert [(w.rung, len(r.wire_ids)) for w, r in zip(live.wires(), live.records(), strict=True)] == [("exact", 1)]


def test_a_span_that_tells_late_what_it_is_made_the_call_all_the_same(live: Wired) -> None:
    with live.tracer.start_as_current_span("something") as span:
        live.call(body_of("Hi?"), answer(said("Hello.")))
        assert live.recorder.force_flush()
        span.set_attributes(attributes("Hi?") | answered("Hello."))
    (record,) = live.records()
    assert [w.rung for w in live.wires()] == ["exact"]
    assert len(record.wire_ids) == 1


def test_a_request_names_its_span(live: Wired) -> None:
    span = apart(live, "chat m", attributes("Hi?"))
    context = span.get_span_context()
    live.call(
        body_of("Hi?"), answer(said("Hello.")), traceparent=f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
    )
    span.end()
    (record,) = live.records()
    assert [w.rung for w in live.wires()] == ["header"]
    assert len(record.wire_ids) == 1


def test_below_the_current_agent_what_was_said_tells(live: Wired) -> None:
    """Two agents at a time ask the same."""
    spans = []
    for name in ("a", "b"):
        with live.tracer.start_as_current_span(
            "invoke_agent", attributes={**AGENT, "gen_ai.agent.name": name}
        ) as agent:
            spans.append(apart(live, "chat m", attributes("Hi?"), agent))
            live.call(body_of("Hi?"), answer(said(f"I am {name}.", ident="same")))
    for span, name in zip(spans, "ab", strict=True):
        span.set_attributes(answered(f"I am {name}."))
        span.end()
    records = live.records()
    assert [w.rung for w in live.wires()] == ["ancestor", "ancestor"]
    assert [(r.outputs["choices"][0]["message"]["content"], r.output_text) for r in records] == [
        ("I am a.", "I am a."), ("I am b.", "I am b."),
    ]  # fmt: skip


def test_equal_questions_are_told_apart_by_response_ids(live: Wired) -> None:
    spans = [apart(live, "chat m", attributes("Hi?")) for _ in range(3)]
    for i in (2, 0, 1):
        live.call(body_of("Hi?"), answer(said("Hello.", ident=f"r{i}")))
    for i, span in enumerate(spans):
        span.set_attributes(answered("Hello.", f"r{i}"))
        span.end()
    records = live.records()
    assert {w.rung for w in live.wires()} == {"response_id"}
    assert [r.outputs["id"] for r in records] == [r.response_id for r in records] == ["r0", "r1", "r2"]


def test_what_was_said_tells_where_nothing_is_current(live: Wired) -> None:
    spans = [apart(live, "chat m", attributes(f"Question {i}?")) for i in range(3)]
    for i in (2, 0, 1):
        live.call(body_of(f"Question {i}?"), answer(said(f"Answer {i}.")))
    for i, span in enumerate(spans):
        span.set_attributes(answered(f"Answer {i}."))
        span.end()
    records = live.records()
    assert {w.rung for w in live.wires()} == {"content"}
    assert [r.outputs["choices"][0]["message"]["content"] for r in records] == [r.output_text for r in records]


def test_where_two_may_be_meant_none_is(live: Wired) -> None:
    spans = [apart(live, "chat m", attributes("Hi?")) for _ in range(2)]
    for _ in spans:
        live.call(body_of("Hi?"), answer(said("Hello.", ident="same")))
    for span in spans:
        span.set_attributes(answered("Hello."))
        span.end()
    records = live.records()
    assert [w.rung for w in live.wires()] == ["none", "none"]
    assert [r.wire_ids for r in records] == [[], []], "and no record is added"


def test_two_instrumentations_of_one_call_are_one_record(live: Wired) -> None:
    spans = [apart(live, "chat m", attributes("Hi?"), scope=scope) for scope in ("one", "other")]
    live.call(body_of("Hi?"), answer(said("Hello.")))
    for span in reversed(spans):
        span.set_attributes(answered("Hello.", "r1"))
        span.end()
    (record,) = live.records()
    assert len(record.wire_ids) == 1


def test_a_call_that_nobody_tells_of_gets_a_record(live: Wired) -> None:
    with live.tracer.start_as_current_span("invoke_agent", attributes=AGENT) as agent:
        live.call(body_of("Hi?", temperature=0.5), answer(said("Hello.")))
        assert live.recorder.force_flush()
    (record,) = live.records()
    (wire,) = live.wires()
    assert (record.node_type.value, record.model_id, record.output_text) == ("MODEL", "m", "Hello.")
    assert record.inputs["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "Hi?"}]}]
    assert record.inputs["parameters"] == {"temperature": 0.5}
    assert (record.input_tokens, record.output_tokens, record.finish_reasons) == (3, 2, ["stop"])
    assert record.parent_span_id == f"{agent.get_span_context().span_id:016x}"
    assert (record.wire_ids, wire.rung, record.agent_name) == ([wire.wire_id], "none", "a")
    assert record.outputs == said("Hello.")


def test_a_call_beside_a_traced_one_gets_its_own_record(live: Wired) -> None:
    """Another thread's call is exactly its own; the one without a span is none of it."""
    with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")) as span:
        live.call(body_of("Hi?"), answer(said("Hello.")))
        other = contextvars.Context()
        other.run(live.call, body_of("Hi?"), answer(said("Hello.", ident="r2")))
        span.set_attributes(answered("Hello.", "r1"))
    records = live.records()
    assert sorted(r.response_id or "" for r in records) == ["r1", "r2"]
    assert all(r.outputs["id"] == r.response_id for r in records)


def test_a_body_that_ends_after_its_span(live: Wired) -> None:
    with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")):
        request = live.leave(body_of("Hi?"))
    live.end(request, answer(said("Hello.")))
    (record,) = live.records()
    assert ([w.rung for w in live.wires()], record.output_text) == (["exact"], "Hello."), (
        "and tells what the span did not"
    )


def test_embeddings_are_no_model_calls(live: Wired) -> None:
    live.call(b'{"model":"e","input":"x"}', answer({"data": []}), api="openai.embeddings", path="/v1/embeddings")
    with live.tracer.start_as_current_span("embeddings e", attributes={"gen_ai.operation.name": "embeddings"}):
        live.call(b'{"model":"e","input":"x"}', answer({"data": []}), api="openai.embeddings", path="/v1/embeddings")
    assert live.records() == []
    assert [w.rung for w in live.wires()] == ["none", "exact"], "a step made the second"


@pytest.mark.parametrize("is_same", [False, True], ids=["questions differ", "one question"])
def test_200_calls_at_a_time_in_threads(tmp_path: Path, is_same: bool) -> None:
    """Half of the spans are current, half are not. Nothing goes to the wrong record."""
    live = Wired(tmp_path / "rec")

    def ask(i: int) -> None:
        question = "Hi?" if is_same else f"Question {i}?"
        request = body_of(question, user=str(i))
        told = {**attributes(question), "demo.number": i}
        if i % 2:
            with live.tracer.start_as_current_span("chat m", attributes=told) as span:
                live.call(request, answer(said("Hello." if is_same else f"Answer {i}.", ident=f"r{i}")))
                time.sleep(random.random() / 100)
                span.set_attributes(answered("Hello." if is_same else f"Answer {i}."))
            return
        span = live.tracer.start_span("chat m", attributes=told)
        left = live.leave(request)
        time.sleep(random.random() / 100)
        live.end(left, answer(said("Hello." if is_same else f"Answer {i}.", ident=f"r{i}")))
        span.set_attributes(answered("Hello." if is_same else f"Answer {i}."))
        span.end()

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = live.records()
    wires = {wire.wire_id: int(wire.body["user"]) for wire in live.wires()}
    found = {wires[wire_id]: (record.attributes or {})["demo.number"] for wire_id, record in owners(records).items()}
    assert all(made == told for made, told in found.items())
    assert set(found) >= set(range(1, 200, 2)), "those whose span was current"
    assert len(found) == (200 if not is_same else len(found))
    assert len(records) == 200, "no call has two records"


def test_calls_of_tasks(live: Wired) -> None:
    async def ask(i: int) -> None:
        with live.tracer.start_as_current_span("chat m", attributes={**attributes("Hi?"), "demo.number": i}):
            request = live.leave(body_of("Hi?", user=str(i)))
            await asyncio.sleep(random.random() / 100)
            live.end(request, answer(said("Hello.")))

    async def main() -> None:
        await asyncio.gather(*(ask(i) for i in range(50)))

    asyncio.run(main())
    records = live.records()
    wires = {wire.wire_id: int(wire.body["user"]) for wire in live.wires()}
    assert [wires[r.wire_ids[0]] for r in records] == [(r.attributes or {})["demo.number"] for r in records]

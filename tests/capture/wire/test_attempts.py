"""Attempts of one call, what is kept of them, and that nothing is lost or kept that must not be."""

from __future__ import annotations

import gc
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.nodes.exchange import RecordedResponse
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.nodes.sinks import InMemoryIoCaptureSink
from otel_agentrec.nodes.wire import Unanswerable, read_wire
from tests.capture.recording import contents, events
from tests.capture.wire.making import AGENT, EVENTS, Wired, answer, answered, attributes, body_of, said
from tests.nodes.answers.streams import CHAT, CHAT_WHOLE, sse

LIMITED = {"error": {"type": "rate_limit", "message": "Slow down."}}
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


@pytest.mark.parametrize("is_traced", [True, False])
def test_a_429_and_then_a_200_are_one_call(live: Wired, is_traced: bool) -> None:
    def ask() -> None:
        for _ in range(2):
            live.call(body_of("Hi?"), answer(LIMITED, 429))
        live.call(body_of("Hi?"), answer(said("Hello.")))

    if is_traced:
        with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")) as span:
            ask()
            span.set_attributes(answered("Hello."))
    else:
        ask()
    (record,) = live.records()
    wires = live.wires()
    assert [(w.attempt, w.call, w.status) for w in wires] == [
        (n, wires[0].wire_id, s) for n, s in ((1, 429), (2, 429), (3, 200))
    ]
    assert record.wire_ids == [w.wire_id for w in wires]
    assert (record.retry_count, record.retries) == (2, [{"statusCode": 429}] * 2)
    assert (record.status, record.outputs) == ("ok", said("Hello."))


def test_attempts_that_the_http_spans_show_too_count_once(live: Wired) -> None:
    http = live.provider.get_tracer("opentelemetry.instrumentation.httpx")
    with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")):
        for status in (429, 200):
            told = {"http.request.method": "POST", "url.full": "https://x/", "http.response.status_code": status}
            with http.start_as_current_span("POST", kind=_client(), attributes=told):
                live.call(body_of("Hi?"), answer(said("Hello.") if status == 200 else LIMITED, status))
    (record,) = live.records()
    assert (record.retry_count, record.retries) == (1, [{"statusCode": 429}])


def _client() -> Any:
    from opentelemetry.trace import SpanKind

    return SpanKind.CLIENT


def test_another_question_after_a_failure_is_another_call(live: Wired) -> None:
    with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")):
        live.call(body_of("Hi?"), answer(LIMITED, 429))
        live.call(body_of("Hi?", model="smaller"), answer(said("Hello.", model="smaller")))
    (record,) = live.records()
    assert [w.attempt for w in live.wires()] == [1, 1]
    assert (record.retry_count, len(record.wire_ids)) == (0, 2)


def test_a_failure_that_nothing_follows_is_a_record_with_its_error(live: Wired) -> None:
    live.call(body_of("Hi?"), answer(LIMITED, 429))
    lost = RecordedResponse(None, error={"type": "ConnectError", "message": "refused"}, end="error")
    live.call(body_of("Ho?"), lost)
    records = live.records()
    assert [(r.status, r.error) for r in records] == [
        ("error", {"type": "429", "message": "Slow down."}),
        ("error", {"type": "ConnectError", "message": "refused"}),
    ]


def test_a_stream_tells_what_the_span_did_not(live: Wired) -> None:
    pieces = [sse([e]) for e in CHAT] + [b"data: [DONE]\n\n"]
    chunks = tuple((i * 50_000_000, data) for i, data in enumerate(pieces))
    with live.tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
        live.call(body_of("Hi?", stream=True), RecordedResponse(200, EVENTS, chunks, "closed"))
    (record,) = live.records()
    (wire,) = live.wires()
    assert record.outputs == CHAT_WHOLE
    assert record.inputs["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "Hi?"}]}]
    assert record.output_text == "Grüß dich."
    assert [c["name"] for c in record.tool_calls or ()] == ["look", "go"]
    assert (record.model_id, record.response_id, record.streamed) == ("m", "c1", True)
    assert (wire.complete, wire.response.end, wire.response.chunks) == (True, "closed", chunks)


def test_a_history_that_is_sent_again_is_stored_once(live: Wired) -> None:
    history: list[dict[str, str]] = []
    sizes = []
    for i in range(30):
        history += [{"role": "user", "content": f"{i} " + "what do you think? " * 20}]
        before = len(contents(live.path)) if live.path.exists() else 0
        with live.tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
            live.call(json.dumps({"model": "m", "messages": history}).encode(), answer(said(f"I think {i}.")))
        assert live.recorder.force_flush()
        sizes.append(len(contents(live.path)) - before)
        history += [{"role": "assistant", "content": f"I think {i}."}]
    wires = live.wires()
    assert wires[-1].body == {"model": "m", "messages": history[:-1]}
    assert max(sizes[2:]) < 1.5 * min(sizes[2:])


@pytest.mark.parametrize("place", ["question", "answer", "stream", "header", "error"])
def test_a_secret_reaches_no_file(live: Wired, place: str) -> None:
    body = body_of(f"My key is {SECRET}" if place == "question" else "Hi?")
    response = answer(said(f"Your key is {SECRET}" if place == "answer" else "Hello."))
    if place == "stream":  # in pieces that are none
        pieces = [
            sse([{**CHAT[1], "choices": [{"index": 0, "delta": {"content": SECRET[i : i + 5]}}]}])
            for i in range(0, len(SECRET), 5)
        ]
        response = RecordedResponse(200, EVENTS, tuple((0, data) for data in pieces))
    elif place == "header":
        response = answer(said("Hello."), headers=(("set-cookie", SECRET), ("x-request-id", SECRET)))
    elif place == "error":
        response = RecordedResponse(None, error={"type": "E", "message": SECRET}, end="error")
    live.call(body, response)
    (wire,) = live.wires()
    (record,) = live.records()
    on_disk = b"".join(file.read_bytes() for file in live.path.iterdir() if file.is_file())
    assert SECRET.encode() not in on_disk
    assert SECRET not in json.dumps(record.to_json())
    assert ("redacted" in wire.flags) == (place in ("answer", "stream"))
    if "redacted" in wire.flags:
        with pytest.raises(Unanswerable):
            _ = wire.response
        assert "REDACTED(" in json.dumps(record.outputs)


def test_what_looks_like_nothing_but_a_body_is_kept_byte_for_byte(live: Wired) -> None:
    """The default rules look at every value; an innocent body is not changed by a byte."""
    body = json.dumps(said("Is `sk-` how keys begin? Yes, password: no."), indent=1).encode()
    live.call(body_of("Hi?"), answer(body))
    (wire,) = live.wires()
    assert b"".join(data for _, data in wire.response.chunks) == body


@pytest.mark.parametrize("content", ["inline", "off"])
def test_the_setting_content_is_honoured(tmp_path: Path, content: str) -> None:
    live = Wired(tmp_path / "rec", content=content)
    live.call(body_of("A question."), answer(said("An answer.")))
    (record,) = live.records()
    (wire,) = live.wires()
    text = b"".join(file.read_bytes() for file in live.path.glob("*.jsonl")).decode()
    assert ("A question." in text) == ("An answer." in text) == (content == "inline")
    assert wire.status == 200
    if content == "off":
        assert record.inputs["messages"] is None or "$off" in str(record.inputs["messages"])
        with pytest.raises(Unanswerable):
            _ = wire.response
    else:
        assert (wire.body["messages"], record.outputs) == (
            [{"role": "user", "content": "A question."}],
            said("An answer."),
        )


@pytest.mark.parametrize("durability", ["written", "deferred", "fsync"])
def test_in_every_durability_each_call_has_one_record(tmp_path: Path, durability: str) -> None:
    live = Wired(tmp_path / "rec", durability=durability)
    with live.tracer.start_as_current_span("invoke_agent", attributes=AGENT):
        for i in range(20):
            if i % 2:
                live.call(body_of(f"{i}?"), answer(said(f"{i}.", ident=f"r{i}")))
                continue
            with live.tracer.start_as_current_span("chat m", attributes=attributes(f"{i}?")) as span:
                live.call(body_of(f"{i}?"), answer(said(f"{i}.", ident=f"r{i}")))
                span.set_attributes(answered(f"{i}."))
    records = live.records()
    assert sorted(r.outputs["id"] for r in records) == sorted(f"r{i}" for i in range(20))
    assert all(r.output_text == f"{r.outputs['id'][1:]}." for r in records)


def test_what_never_ended_is_told_as_gone(live: Wired) -> None:
    live.leave(body_of("Hi?"))
    (record,) = live.records()
    (wire,) = live.wires()
    assert (wire.response.end, wire.status, record.status) == ("gone", None, "error")


def test_an_end_in_a_finaliser_or_without_a_start_is_recorded(live: Wired) -> None:
    request = live.leave(body_of("Hi?"))

    class Body:
        def __del__(self) -> None:
            live.end(request, answer(said("Hello.")))

    one: list[Any] = [Body()]
    one.append(one)
    with live.recorder._journal._lock:  # the worst of moments
        del one
        gc.collect()
    other = body_of("Ho?")
    live.end(
        request.__class__(**{f: getattr(request, f) for f in request.__slots__} | {"body": other}), answer(said("2."))
    )
    assert {w.body["messages"][0]["content"] for w in live.wires()} == {"Hi?", "Ho?"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_records_its_own_calls(live: Wired) -> None:
    live.call(body_of("parent"), answer(said("1.")))
    half = live.leave(body_of("half"))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            live.call(body_of("child"), answer(said("2.")))
            live.recorder.shutdown()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    live.end(half, answer(said("3.")))
    live.recorder.shutdown()
    asked = [w.body["messages"][0]["content"] for w in read_wire(live.path)]
    assert sorted(asked) == ["child", "half", "parent"]
    assert len(list(read_nodes(live.path))) == 3


def test_our_own_failure_loses_a_record_and_nothing_else(live: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("otel_agentrec.capture.wire.recorder.kept_request", broken)
    live.call(body_of("Hi?"), answer(said("Hello.")))
    assert live.recorder.force_flush()
    monkeypatch.undo()
    live.call(body_of("Ho?"), answer(said("Hello.")))
    live.recorder.shutdown()
    assert live.recorder.stats()["swallowed"] == 1
    assert [w.body["messages"][0]["content"] for w in read_wire(live.path)] == ["Ho?"]
    assert [e["payload"]["count"] for e in events(live.path, "DROPPED")] == [1], "and the recording says so"


def test_nothing_is_left_behind(live: Wired) -> None:
    with live.tracer.start_as_current_span("invoke_agent", attributes=AGENT):
        for i in range(600):
            status = 429 if i % 3 else 200
            with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")):
                live.call(body_of("Hi?"), answer(said("Hello.") if status == 200 else LIMITED, status))
        assert live.recorder.force_flush()
        agent = next(iter(live.recorder._tracker.table))
        assert not live.wire._open
        assert not live.wire._settler.waits
        assert not agent.calls
    assert sum(1 for t in threading.enumerate() if t.name == "otel-agentrec-wire") == 1
    live.recorder.shutdown()
    assert live.recorder.stats()["swallowed"] == 0


def test_a_sink_is_told_of_the_wire_and_sees_no_secret(tmp_path: Path) -> None:
    sink = InMemoryIoCaptureSink()
    live = Wired(tmp_path / "rec", sinks=[sink])
    with live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")) as span:
        live.call(body_of("Hi?"), answer(said("Hello.")))
        span.set_attributes(answered("Hello."))
    live.call(body_of(f"It is {SECRET}"), answer(said(f"Is it {SECRET}?", ident="r2")))
    live.recorder.shutdown()
    told = {record.record_id: record for record in sink.records()}
    read = {record.record_id: record for record in read_nodes(live.path)}
    assert told.keys() == read.keys()
    for ident, record in read.items():
        assert told[ident].wire_ids == record.wire_ids
        assert told[ident].outputs == record.outputs
        assert SECRET not in json.dumps(told[ident].to_json())

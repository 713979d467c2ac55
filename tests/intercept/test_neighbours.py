"""Beside OTel's own instrumentors and under the OpenAI SDK: one exchange each, and everybody's hooks stay their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAI, RateLimitError
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.intercept import install
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.protocol import RecordedResponse
from tests.intercept.wire import CHAT, REPLY, Fixed, Tape, Watcher, bodies, chunks, json_reply, serving


@pytest.fixture
def spans() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def run(*steps: Callable[[], Any]) -> None:
    for step in steps:
        step()


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_otels_httpx_instrumentor_in_both_orders(spans: Any, first: str) -> None:
    provider, exporter = spans
    theirs, watcher = HTTPX2ClientInstrumentor(), Watcher()
    before = vars(httpx2.HTTPTransport)["handle_request"]

    def instrument() -> None:
        theirs.instrument(tracer_provider=provider)

    def post(client: Any) -> None:
        with provider.get_tracer("t").start_as_current_span("chat m"):
            assert client.post(server.url + CHAT, json={}).content == REPLY

    try:
        run(*((install.install, instrument) if first == "ours" else (instrument, install.install)))
        with serving(json_reply) as server, using(wire=watcher), httpx2.Client() as client:
            post(client)
            names = [span.name for span in exporter.get_finished_spans()]
            assert names == ["POST", "chat m"]
            span = watcher.only.request.span
            assert span is not None
            assert span.span_id == f"{exporter.get_finished_spans()[1].context.span_id:016x}"  # not that of the POST
            theirs.uninstrument()
            exporter.clear()
            post(client)
            assert [span.name for span in exporter.get_finished_spans()] == ["chat m"]
            assert len(watcher.seen) == 2
            with httpx2.HTTPTransport() as alone:
                alone.handle_request(httpx2.Request("POST", server.url + CHAT, json={})).read()
            assert len(watcher.seen) == 3
    finally:
        if theirs.is_instrumented_by_opentelemetry:
            theirs.uninstrument()
        install.uninstall()
    assert vars(httpx2.HTTPTransport)["handle_request"] is before


def test_ours_goes_while_theirs_stays(spans: Any) -> None:
    provider, exporter = spans
    theirs, watcher = HTTPX2ClientInstrumentor(), Watcher()
    before = vars(httpx2.HTTPTransport)["handle_request"]
    install.install()
    theirs.instrument(tracer_provider=provider)
    try:
        install.uninstall()
        with serving(json_reply) as server, using(wire=watcher):
            httpx2.post(server.url + CHAT, json={})
        assert [span.name for span in exporter.get_finished_spans()] == ["POST"]
        assert watcher.seen == []
    finally:
        theirs.uninstrument()
    assert vars(httpx2.HTTPTransport)["handle_request"] is before


# --- the OpenAI SDK -----------------------------------------------------------------------------------------------------

MESSAGES: Any = [{"role": "user", "content": "Hi"}]


def streamed(base_url: str) -> list[str]:
    with OpenAI(base_url=base_url, api_key="none") as client:
        events = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return [event.model_dump_json() for event in events]


async def async_streamed(base_url: str) -> list[str]:
    async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
        events = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return [event.model_dump_json() async for event in events]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_sdks_drain_after_the_end_of_a_stream_doubles_nothing(watcher: Watcher, asynchronous: bool) -> None:
    def ask(url: str) -> list[str]:
        return asyncio.run(async_streamed(url)) if asynchronous else streamed(url)

    with ScriptedServer([Turn("One two three four.")]) as server:
        url = server.base_url
        real = ask(url)
    seen = watcher.only
    whole = bodies([seen])[0]
    assert whole.endswith(b"data: [DONE]\n\n")
    assert whole.count(b"data: ") == len(real) + 1
    again = Watcher()
    with using(models=Tape(watcher.seen), wire=again):
        assert ask(url) == real
    assert chunks(again.only) == chunks(seen)


def test_429_then_200_is_two_exchanges_and_is_answered_as_two(watcher: Watcher) -> None:
    turns = [Turn("slow down", status=429, headers={"retry-after-ms": "5"}), Turn("Hi.")]

    def ask(url: str) -> str | None:
        with OpenAI(base_url=url, api_key="none") as client:
            return client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content

    with ScriptedServer(turns) as server:
        url = server.base_url
        assert ask(url) == "Hi."
    assert [exchange.response.status for exchange in watcher.seen] == [429, 200]
    assert [exchange.request.headers["x-stainless-retry-count"] for exchange in watcher.seen] == ["0", "1"]
    again = Watcher()
    with using(models=Tape(watcher.seen), wire=again):
        assert ask(url) == "Hi."
    assert [exchange.response.status for exchange in again.seen] == [429, 200]


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (RecordedResponse(429, [("content-type", "application/json")], [(0, b'{"error": {}}')]), RateLimitError),
        (RecordedResponse(500, [], [(0, b"oh")]), APIStatusError),
        (RecordedResponse(None, end="error", error={"type": "ReadTimeout", "message": "m"}), APIConnectionError),
    ],
    ids=["429", "500", "timeout"],
)
def test_recorded_failures_are_the_sdks_errors(points: None, answer: RecordedResponse, raised: Any) -> None:
    client = OpenAI(base_url="http://nowhere.invalid/v1", api_key="none", max_retries=0)
    with using(models=Fixed(answer)), pytest.raises(raised):
        client.chat.completions.create(model="m", messages=MESSAGES)


def test_a_refusal_passes_the_sdk_in_one_try(points: None) -> None:
    tape = Tape([])
    asked: list[Any] = []

    class Asking:
        def answer(self, request: Any) -> Any:
            asked.append(request)
            return tape.answer(request)

    client = OpenAI(base_url="http://nowhere.invalid/v1", api_key="none")
    with using(models=Asking()), pytest.raises(ReplayDivergence):
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert len(asked) == 1

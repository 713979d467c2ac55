"""httpx and httpx2: what passes is seen byte for byte, once, and can be given again."""

from __future__ import annotations

import asyncio
import gc
import gzip
import importlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.errors import ReplayDivergence, RunStopped
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.exchanges import sweep
from otel_agentrec.intercept.protocol import Exchange, ModelRequest, RecordedResponse
from tests.intercept.wire import (
    CHAT,
    EVENTS,
    LIBRARIES,
    REPLY,
    Fixed,
    Handler,
    Paced,
    Tape,
    Watcher,
    bodies,
    chunks,
    event_stream,
    gzip_reply,
    json_reply,
    serving,
)

pytestmark = pytest.mark.parametrize("name", LIBRARIES)
ASK = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def http(name: str) -> Any:
    return importlib.import_module(name)


# --- what is seen -------------------------------------------------------------------------------------------------------


def test_a_call_is_seen_as_it_stood_on_the_wire(http: Any, name: str, watcher: Watcher) -> None:
    with serving(json_reply) as server, http.Client() as client:
        headers = {"authorization": "Bearer sk-secret", "openai-beta": "x", "traceparent": "00-1-2-01"}
        reply = client.post(f"{server.url}{CHAT}?key=secret&api-version=1", json=ASK, headers=headers)
    seen = watcher.only
    assert reply.content == REPLY
    assert bodies([seen]) == [REPLY]
    assert (seen.request.method, seen.request.host, seen.request.path) == ("POST", server.host, CHAT)
    assert seen.request.query == ("key", "api-version")
    assert seen.request.body == server.bodies[0]
    assert (seen.request.api, seen.request.library) == ("openai.chat", name)
    assert seen.request.traceparent == "00-1-2-01"
    assert seen.request.headers["openai-beta"] == "x"
    assert "secret" not in repr(seen.request.headers) + repr(seen.request.query)
    assert (seen.response.status, seen.response.end, seen.response.error) == (200, "eof", None)
    assert ("content-type", "application/json") in [(key.lower(), value) for key, value in seen.response.headers]
    assert watcher.asked == [seen.request]
    assert 0 < seen.request.started_ns <= seen.ended_ns
    assert not seen.answered


def test_other_traffic_is_not_looked_at(http: Any, watcher: Watcher) -> None:
    with serving(json_reply, "/v1/files") as server:
        http.post(f"{server.url}/v1/files", json=ASK)
        http.get(f"{server.url}{CHAT}")
    assert watcher.asked == []


def test_what_exporters_send_is_not_looked_at(http: Any, watcher: Watcher) -> None:
    token = context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))
    try:
        with serving(json_reply) as server:
            http.post(server.url + CHAT, json=ASK)
    finally:
        context.detach(token)
    assert watcher.asked == []


def test_the_span_is_the_one_that_is_current_when_the_request_leaves(http: Any, watcher: Watcher) -> None:
    with serving(json_reply) as server, http.Client() as client:
        client.post(server.url + CHAT, json=ASK)
        with TracerProvider().get_tracer("t").start_as_current_span("chat m") as span:
            client.post(server.url + CHAT, json=ASK)
    assert watcher.seen[0].request.span is None
    where = watcher.seen[1].request.span
    assert where is not None
    assert where.span_id == trace.format_span_id(span.get_span_context().span_id)
    assert where.trace_id == trace.format_trace_id(span.get_span_context().trace_id)


def test_encoded_bodies_are_kept_as_they_came(http: Any, watcher: Watcher) -> None:
    with serving(gzip_reply) as server:
        assert http.post(server.url + CHAT, json=ASK).content == REPLY
    assert gzip.decompress(bodies(watcher.seen)[0]) == REPLY
    assert not watcher.only.response.decoded


def test_bodies_from_generators_are_seen_and_sent(http: Any, watcher: Watcher) -> None:
    def parts() -> Iterator[bytes]:
        yield b'{"model":'
        yield b'"m"}'

    async def async_parts() -> AsyncIterator[bytes]:
        for part in parts():
            yield part

    async def post(url: str) -> None:
        async with http.AsyncClient() as client:
            await client.post(url, content=async_parts())

    with serving(json_reply) as server:
        http.post(server.url + CHAT, content=parts())
        asyncio.run(post(server.url + CHAT))
    assert server.bodies == [b'{"model":"m"}'] * 2
    assert [exchange.request.body for exchange in watcher.seen] == server.bodies


def test_each_attempt_is_an_exchange_of_its_own(http: Any, watcher: Watcher) -> None:
    def busy(handler: Handler) -> None:
        handler.whole(b"{}", status=429, retry_after="1")

    with serving([busy, json_reply]) as server, http.Client() as client:
        assert [client.post(server.url + CHAT, json=ASK).status_code for _ in range(2)] == [429, 200]
    assert [exchange.response.status for exchange in watcher.seen] == [429, 200]
    assert ("retry-after", "1") in [(key.lower(), value) for key, value in watcher.seen[0].response.headers]


# --- streams ------------------------------------------------------------------------------------------------------------


def test_chunks_arrive_when_they_are_sent(http: Any, watcher: Watcher) -> None:
    route = Paced()
    with serving(route) as server, http.Client() as client, client.stream("POST", server.url + CHAT, json=ASK) as reply:
        arrived = [(time.perf_counter(), chunk) for chunk in reply.iter_raw()]
    assert [chunk for _, chunk in arrived] == chunks(watcher.only) == EVENTS
    assert route.were_not_held_up([at for at, _ in arrived])
    times = [at / 1e9 for at, _ in watcher.only.response.chunks]
    assert times[-1] - times[0] == pytest.approx(arrived[-1][0] - arrived[0][0], abs=0.05)


def test_an_asynchronous_stream_is_seen_chunk_by_chunk(http: Any, watcher: Watcher) -> None:
    async def read(url: str) -> list[bytes]:
        async with http.AsyncClient() as client, client.stream("POST", url, json=ASK) as reply:
            return [chunk async for chunk in reply.aiter_raw()]

    with serving(event_stream) as server:
        assert asyncio.run(read(server.url + CHAT)) == EVENTS
    assert chunks(watcher.only) == EVENTS
    assert watcher.only.response.end == "eof"


def test_a_stream_that_is_cut_ends_in_the_error_with_what_came(http: Any, watcher: Watcher) -> None:
    def cut(handler: Handler) -> None:
        handler.stream(EVENTS[:2], cut=True)

    with serving(cut) as server, pytest.raises(http.TransportError) as caught:
        http.post(server.url + CHAT, json=ASK)
    response = watcher.only.response
    assert (response.status, response.end) == (200, "error")
    assert response.error == {"type": type(caught.value).__name__, "message": str(caught.value)}
    assert bodies(watcher.seen) == [b"".join(EVENTS[:2])]


def test_a_call_that_nothing_answers_is_seen_with_its_error(http: Any, watcher: Watcher) -> None:
    with serving(json_reply) as server:
        pass
    with pytest.raises(http.ConnectError):
        http.post(server.url + CHAT, json=ASK)
    response = watcher.only.response
    assert (response.status, response.end, response.chunks) == (None, "error", ())
    assert response.error is not None
    assert response.error["type"] == "ConnectError"


def test_a_stream_the_program_leaves_is_closed(http: Any, watcher: Watcher) -> None:
    with serving(event_stream) as server, http.Client() as client:
        with client.stream("POST", server.url + CHAT, json=ASK) as reply:
            parts = reply.iter_raw()
            next(parts)
            assert watcher.seen == []
        assert watcher.only.response.end == "closed"
    assert chunks(watcher.only) == EVENTS[:1]


def test_a_response_that_is_dropped_is_told_by_the_garbage_collector(http: Any, watcher: Watcher) -> None:
    with serving(event_stream) as server, http.Client() as client:
        reply = client.send(client.build_request("POST", server.url + CHAT, json=ASK), stream=True)
        parts = reply.iter_raw()
        next(parts)
        reply.cycle = [reply, parts]
        del reply, parts
        assert watcher.seen == []
        gc.collect()
        assert watcher.only.response.end in ("gone", "closed")
    assert chunks(watcher.only) == EVENTS[:1]


def test_what_hangs_in_a_cycle_can_be_swept(http: Any, watcher: Watcher) -> None:
    with serving(event_stream) as server, http.Client() as client:
        reply = client.send(client.build_request("POST", server.url + CHAT, json=ASK), stream=True)
        assert sweep(idle_seconds=60) == 0
        assert sweep() == 1
        assert watcher.only.response.end == "gone"
        reply.read()
        reply.close()
    assert len(watcher.seen) == 1


def test_a_cancelled_task_ends_the_exchange(http: Any, watcher: Watcher) -> None:
    def hang(handler: Handler) -> None:
        handler.stream(EVENTS, pause=0.2)

    async def cancel(url: str) -> None:
        async with http.AsyncClient() as client:
            task = asyncio.create_task(client.post(url, json=ASK))
            while not watcher.asked:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with serving(hang) as server:
        asyncio.run(cancel(server.url + CHAT))
    response = watcher.only.response
    assert response.end == "error"
    assert response.error is not None
    assert response.error["type"] == "CancelledError"
    assert chunks(watcher.only) == EVENTS[:1]


# --- exactly one exchange -----------------------------------------------------------------------------------------------


def test_a_client_built_before_the_points_is_seen(http: Any, name: str) -> None:
    from otel_agentrec.intercept import install

    watching = Watcher()
    with serving(json_reply) as server, http.Client() as client:
        install.install()
        try:
            with using(wire=watching):
                client.post(server.url + CHAT, json=ASK)
        finally:
            install.uninstall()
        client.post(server.url + CHAT, json=ASK)
    assert len(watching.seen) == 1


def test_transports_of_every_kind_give_one_exchange(http: Any, watcher: Watcher) -> None:
    class Own(http.BaseTransport):  # type: ignore[misc]
        def __init__(self) -> None:
            self.real = http.HTTPTransport()

        def handle_request(self, request: Any) -> Any:
            return self.real.handle_request(request)

    class Derived(http.HTTPTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            return super().handle_request(request)

    mock = http.MockTransport(lambda request: http.Response(200, content=REPLY))
    with serving(json_reply) as server:
        url = server.url + CHAT
        for transport in (Own(), Derived(), http.HTTPTransport(), mock):
            with http.Client(transport=transport) as client:
                assert client.post(url, json=ASK).content == REPLY
            with http.Client(mounts={"http://": transport}) as client:
                client.post(url, json=ASK)
        with http.HTTPTransport() as alone:
            reply = alone.handle_request(http.Request("POST", url, json=ASK))
            assert b"".join(reply.stream) == REPLY
            reply.stream.close()
    assert bodies(watcher.seen) == [REPLY] * 9


def test_asynchronous_mocks_give_one_exchange(http: Any, watcher: Watcher) -> None:
    async def post() -> bytes:
        mock = http.MockTransport(
            lambda request: http.Response(200, content=gzip.compress(REPLY), headers={"content-encoding": "gzip"})
        )
        async with http.AsyncClient(transport=mock) as client:
            return bytes((await client.post("http://here" + CHAT, json=ASK)).content)

    assert asyncio.run(post()) == REPLY
    assert gzip.decompress(bodies(watcher.seen)[0]) == REPLY


def test_a_transport_that_has_read_the_response_gives_what_it_read(http: Any, watcher: Watcher) -> None:
    class Reading(http.BaseTransport):  # type: ignore[misc]
        def __init__(self) -> None:
            self.real = http.HTTPTransport()

        def handle_request(self, request: Any) -> Any:
            response = self.real.handle_request(request)
            response.read()
            return response

    with serving(gzip_reply) as server, http.Client(transport=Reading()) as client:
        assert client.post(server.url + CHAT, json=ASK).content == REPLY
    assert bodies(watcher.seen) == [REPLY]
    assert watcher.only.response.decoded


def test_a_proxy_gives_one_exchange(http: Any, watcher: Watcher) -> None:
    with serving(json_reply, "http://model.invalid" + CHAT) as proxy:
        client = http.Client(mounts={"http://": http.HTTPTransport(proxy=http.Proxy(proxy.url))})
        client.post("http://model.invalid" + CHAT, json=ASK)
    assert watcher.only.request.host == "model.invalid"
    assert bodies(watcher.seen) == [REPLY]


def test_a_redirect_is_an_exchange_of_its_own(http: Any, watcher: Watcher) -> None:
    def away(handler: Handler) -> None:
        handler.whole(b"", status=307, location=CHAT)

    with serving([away, json_reply]) as server, http.Client(follow_redirects=True) as client:
        assert client.post(server.url + CHAT, json=ASK).content == REPLY
    assert [exchange.response.status for exchange in watcher.seen] == [307, 200]


def test_a_task_that_a_transport_starts_is_seen_for_itself(http: Any, watcher: Watcher) -> None:
    async def post(url: str) -> None:
        later: list[asyncio.Task[Any]] = []

        class Starting(http.AsyncBaseTransport):  # type: ignore[misc]
            async def handle_async_request(self, request: Any) -> Any:
                async def other() -> None:
                    await asyncio.sleep(0.01)
                    async with http.AsyncClient() as client:
                        await client.post(url, json=ASK)

                later.append(asyncio.create_task(other()))
                return http.Response(200, content=REPLY)

        async with http.AsyncClient(transport=Starting()) as client:
            await client.post("http://here" + CHAT, json=ASK)
        await later[0]

    with serving(json_reply) as server:
        asyncio.run(post(server.url + CHAT))
    assert len(watcher.seen) == 2


def test_two_hundred_parallel_calls_are_each_seen_right(http: Any, watcher: Watcher) -> None:
    def echo(handler: Handler) -> None:
        handler.whole(handler.body)

    async def post(url: str) -> list[bytes]:
        limits = http.Limits(max_connections=20)
        async with http.AsyncClient(limits=limits, timeout=30) as client:
            replies = await asyncio.gather(*(client.post(url, json={"n": n}) for n in range(150)))
            return [reply.content for reply in replies]

    with serving(echo) as server:
        url = server.url + CHAT
        asyncio.run(post(url))
        with http.Client(timeout=30) as client:
            threads = [
                threading.Thread(target=lambda n=n: client.post(url, json={"n": n}))  # type: ignore[misc]
                for n in range(150, 200)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert len({exchange.request.body for exchange in watcher.seen}) == len(watcher.seen) == 200
    assert all(bodies([exchange]) == [exchange.request.body] for exchange in watcher.seen)


# --- answering ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def taped(http: Any, watcher: Watcher) -> Any:
    """Calls that were made for real once, as (watcher, tape, url); the server is gone."""

    def make(*routes: Any, calls: int = 1) -> tuple[list[Exchange], Tape, str]:
        with serving(routes) as server:
            for _ in range(calls):
                try:
                    http.post(server.url + CHAT, json=ASK)
                except http.TransportError:
                    pass
        seen = list(watcher.seen)
        return seen, Tape(seen), server.url + CHAT

    return make


@pytest.mark.parametrize("route", [json_reply, gzip_reply, event_stream])
def test_an_answer_is_what_was_recorded_chunk_by_chunk(http: Any, taped: Any, route: Any) -> None:
    seen, tape, url = taped(route)
    again = Watcher()
    with using(models=tape, wire=again), http.Client() as client, client.stream("POST", url, json=ASK) as reply:
        got = list(reply.iter_raw())
    assert got == chunks(seen[0]) == chunks(again.only)
    assert again.only.answered
    assert reply.request.url == url
    kept = {key.lower(): value for key, value in seen[0].response.headers if key.lower() != "transfer-encoding"}
    assert dict(reply.headers) == kept


def test_an_asynchronous_client_is_answered(http: Any, taped: Any) -> None:
    _, tape, url = taped(gzip_reply)

    async def post() -> bytes:
        async with http.AsyncClient() as client:
            return bytes((await client.post(url, json=ASK)).content)

    with using(models=tape):
        assert asyncio.run(post()) == REPLY


def test_a_transport_alone_is_answered(http: Any, taped: Any) -> None:
    _, tape, url = taped(json_reply)
    with using(models=tape), http.HTTPTransport() as transport:
        assert transport.handle_request(http.Request("POST", url, json=ASK)).read() == REPLY


def test_a_recorded_error_is_raised_as_the_class_it_was(http: Any, taped: Any) -> None:
    def cut(handler: Handler) -> None:
        handler.stream(EVENTS[:2], cut=True)

    seen, tape, url = taped(cut)
    again = Watcher()
    with using(models=tape, wire=again), pytest.raises(getattr(http, seen[0].response.error["type"])):
        http.post(url, json=ASK)
    assert again.only.response.error == seen[0].response.error
    assert chunks(again.only) == chunks(seen[0])


@pytest.mark.parametrize(
    ("recorded", "raised"),
    [
        ("ReadTimeout", "ReadTimeout"),
        ("RemoteProtocolError", "RemoteProtocolError"),
        ("ServerDisconnected", "ReadError"),
    ],
)
def test_errors_without_a_response_are_raised_by_name_or_as_the_nearest(
    http: Any, points: None, recorded: str, raised: str
) -> None:
    answer = RecordedResponse(None, end="error", error={"type": recorded, "message": "as it was"})
    with using(models=Fixed(answer)), pytest.raises(getattr(http, raised), match="as it was") as caught:
        http.post("http://nowhere.invalid" + CHAT, json=ASK)
    assert caught.value.request.method == "POST"


def test_decoded_bodies_are_given_without_their_encoding(http: Any, points: None) -> None:
    answer = RecordedResponse(
        200, [("content-encoding", "gzip"), ("content-length", "3")], [(0, REPLY[:9]), (1, REPLY[9:])], decoded=True
    )
    with using(models=Fixed(answer)):
        reply = http.post("http://nowhere.invalid" + CHAT, json=ASK)
    assert reply.content == REPLY
    assert "content-encoding" not in reply.headers


def test_a_body_can_be_read_once(http: Any, points: None) -> None:
    answer = RecordedResponse(200, [], [(n, event) for n, event in enumerate(EVENTS)])
    watching = Watcher()
    with using(models=Fixed(answer), wire=watching), http.HTTPTransport() as transport:
        reply = transport.handle_request(http.Request("POST", "http://nowhere.invalid" + CHAT, json=ASK))
        first = iter(reply.stream)
        assert next(first) == EVENTS[0]
        del first
        assert list(reply.stream) == EVENTS[1:]
        assert list(reply.stream) == []
    assert chunks(watching.only) == EVENTS


def test_a_refusal_reaches_the_program_as_it_is(http: Any, taped: Any) -> None:
    _, _, url = taped(json_reply)
    with using(models=Tape([])), pytest.raises(ReplayDivergence, match="nothing is recorded"):
        http.post(url, json=ASK)


def test_unknown_traffic_is_refused_but_to_allowed_hosts(http: Any, points: None) -> None:
    with serving(json_reply, "/v1/traces") as server:
        with using(forbid_unknown=True), pytest.raises(ReplayDivergence, match=r"POST 127.0.0.1:\d+/v1/traces is no"):
            http.post(f"{server.url}/v1/traces?key=secret", json={})
        with using(forbid_unknown=True, allowed_hosts=[server.host]):
            http.post(f"{server.url}/v1/traces", json={})
        with using(forbid_unknown=True, allowed_hosts=["127.0.0.1"]):
            http.post(f"{server.url}/v1/traces", json={})
    assert len(server.bodies) == 2


def test_what_an_sdk_can_do_without_finds_no_network_in_a_replay(http: Any, points: None) -> None:
    path = "/v1/traces/ingest"
    refused = pytest.raises(ConnectionRefusedError)
    with serving(json_reply, path) as server, using(forbid_unknown=True), refused:
        http.post(f"{server.url}{path}", json={})
    assert server.bodies == []


# --- our own failures ---------------------------------------------------------------------------------------------------


class Broken:
    def started(self, request: ModelRequest) -> None:
        raise RuntimeError("started")

    def ended(self, exchange: Exchange) -> None:
        raise RuntimeError("ended")


def test_a_broken_observer_is_not_the_programs_trouble(http: Any, points: None) -> None:
    before = PROCESS.counters.counts.get("swallowed", 0)
    with serving(event_stream) as server, using(wire=Broken()):
        assert http.post(server.url + CHAT, json=ASK).content == b"".join(EVENTS)
    assert PROCESS.counters.counts["swallowed"] == before + 2


@pytest.mark.parametrize("place", ["describe", "_pairs", "_classes"])
def test_a_defect_of_a_point_lets_the_call_pass(
    http: Any, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(f"otel_agentrec.intercept.httpx_points.{place}", broken)
    with serving(json_reply) as server:
        assert http.post(server.url + CHAT, json=ASK).content == REPLY


def test_a_defect_of_a_point_sends_nothing_where_somebody_answers(
    http: Any, points: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("otel_agentrec.intercept.httpx_points.describe", broken)
    with serving(json_reply) as server, using(models=Fixed()), pytest.raises(RunStopped, match="can't be looked at"):
        http.post(server.url + CHAT, json=ASK)
    assert server.bodies == []

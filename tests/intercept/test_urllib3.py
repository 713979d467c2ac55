"""urllib3 and requests: what passes is seen as it came off the connection, once, and can be given again."""

from __future__ import annotations

import gc
import gzip
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import urllib3

from otel_agentrec.errors import ReplayDivergence, RunStopped
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.exchanges import sweep
from otel_agentrec.intercept.protocol import RecordedResponse
from tests.intercept.wire import (
    CHAT,
    EVENTS,
    REPLY,
    Fixed,
    Handler,
    Paced,
    Server,
    Tape,
    Watcher,
    bodies,
    chunks,
    event_stream,
    gzip_reply,
    json_reply,
    serving,
)

ASK = b'{"model": "m"}'
JSON = {"content-type": "application/json", "authorization": "Bearer s"}


def gzip_stream(handler: Handler) -> None:
    data = gzip.compress(b"".join(EVENTS))
    handler.stream([data[:20], data[20:]], content_encoding="gzip")


def cut_stream(handler: Handler) -> None:
    handler.stream(EVENTS[:2], cut=True)


def cut_whole(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", str(len(REPLY)))
    handler.end_headers()
    handler.wfile.write(REPLY[:20])
    handler.close_connection = True


def ask(server: Server | str, **more: Any) -> Any:
    url = server if isinstance(server, str) else server.url + CHAT
    return urllib3.PoolManager().request("POST", url, body=ASK, headers=JSON, retries=False, **more)


@pytest.mark.parametrize("route", [json_reply, gzip_reply, event_stream, gzip_stream])
@pytest.mark.parametrize("library", ["urllib3", "requests"])
def test_a_body_is_seen_as_it_came(watcher: Watcher, route: Any, library: str) -> None:
    with serving(route) as server:
        if library == "urllib3":
            got = ask(server, preload_content=False).read()
        else:
            got = requests.post(server.url + CHAT + "?key=s", data=ASK, headers=JSON).content
    seen = watcher.only
    whole = bodies([seen])[0]
    assert (gzip.decompress(whole) if route in (gzip_reply, gzip_stream) else whole) == got
    assert (seen.response.status, seen.response.end, seen.response.decoded) == (200, "eof", False)
    assert (seen.request.method, seen.request.host, seen.request.path) == ("POST", server.host, CHAT)
    assert (seen.request.api, seen.request.library, seen.request.body) == ("openai.chat", "urllib3", ASK)
    assert seen.request.query == (("key",) if library == "requests" else ())
    assert "authorization" not in seen.request.headers


def test_a_body_that_urlopen_reads_itself_is_one_decoded_chunk(watcher: Watcher) -> None:
    with serving([gzip_reply, json_reply]) as server:
        assert ask(server).data == REPLY
        assert ask(server).data == REPLY
    assert [chunks(exchange) for exchange in watcher.seen] == [[REPLY]] * 2
    assert [exchange.response.decoded for exchange in watcher.seen] == [True, False]


def test_chunks_arrive_when_they_are_sent(watcher: Watcher) -> None:
    route = Paced()
    with serving(route) as server:
        reply = requests.post(server.url + CHAT, data=ASK, stream=True)
        arrived = [(time.perf_counter(), part) for part in reply.iter_content(None)]
    assert [part for _, part in arrived] == chunks(watcher.only) == EVENTS
    assert route.were_not_held_up([at for at, _ in arrived])


@pytest.mark.parametrize("body", [b"ab", "ab", [b"a", "b"]], ids=type)
def test_bodies_of_every_kind_are_seen_and_sent(watcher: Watcher, body: Any) -> None:
    with serving(json_reply) as server:
        urllib3.PoolManager().request("POST", server.url + CHAT, body=body)
    assert server.bodies == [b"ab"] == [exchange.request.body for exchange in watcher.seen]


def test_files_and_generators_are_seen_and_sent(watcher: Watcher, tmp_path: Any) -> None:
    def parts() -> Iterator[bytes]:
        yield b"a"
        yield b"b"

    file = tmp_path / "body"
    file.write_bytes(b"ab")
    with serving(json_reply) as server, file.open("rb") as opened:
        requests.post(server.url + CHAT, data=parts())
        requests.post(server.url + CHAT, data=opened)
    assert server.bodies == [b"ab"] * 2 == [exchange.request.body for exchange in watcher.seen]


@pytest.mark.parametrize("route", [cut_stream, cut_whole])
def test_a_body_that_is_cut_ends_in_the_error_with_what_came(watcher: Watcher, route: Any) -> None:
    with serving(route) as server, pytest.raises(urllib3.exceptions.ProtocolError) as caught:
        list(ask(server, preload_content=False, enforce_content_length=True).stream())
    response = watcher.only.response
    assert (response.status, response.end) == (200, "error")
    assert response.error == {"type": type(caught.value).__name__, "message": str(caught.value)}
    assert bodies(watcher.seen)[0] in (b"".join(EVENTS[:2]), REPLY[:20])


def test_nothing_listens(watcher: Watcher) -> None:
    with serving(json_reply) as server:
        pass
    with pytest.raises(urllib3.exceptions.NewConnectionError):
        ask(server)
    response = watcher.only.response
    assert (response.status, response.end) == (None, "error")
    assert response.error is not None
    assert response.error["type"] == "NewConnectionError"


def test_a_stream_the_program_leaves_is_closed(watcher: Watcher) -> None:
    with serving(event_stream) as server:
        with requests.post(server.url + CHAT, data=ASK, stream=True) as reply:
            next(reply.iter_content(None))
        assert watcher.only.response.end == "closed"
    assert chunks(watcher.only) == EVENTS[:1]


def test_a_dropped_response_is_told_at_once_and_gives_its_connection_up(watcher: Watcher) -> None:
    with serving(event_stream) as server:
        reply = ask(server, preload_content=False)
        gc.disable()
        try:
            del reply
            assert watcher.only.response.end == "gone"
        finally:
            gc.enable()


def test_an_open_response_can_be_swept(watcher: Watcher) -> None:
    with serving(event_stream) as server:
        reply = ask(server, preload_content=False)
        assert sweep() == 1
        reply.read()
    assert watcher.only.response.end == "gone"


def test_a_proxy_shows_the_host_that_is_meant(watcher: Watcher) -> None:
    with serving(json_reply, "http://model.invalid" + CHAT) as proxy:
        urllib3.ProxyManager(proxy.url).request("POST", f"http://model.invalid{CHAT}?key=s", body=ASK)
    assert (watcher.only.request.host, watcher.only.request.path) == ("model.invalid", CHAT)
    assert watcher.only.request.query == ("key",)


# --- answering ----------------------------------------------------------------------------------------------------------


READERS: dict[str, Callable[[Any], Any]] = {
    "read": lambda reply: reply.read(),
    "stream": lambda reply: list(reply.stream()),
    "stream as it is": lambda reply: list(reply.stream(decode_content=False)),
    "by nines": lambda reply: list(iter(lambda: reply.read(9), b"")),
}
if hasattr(urllib3.HTTPResponse, "read1"):  # not in 1.26
    READERS["read1"] = lambda reply: b"".join(iter(lambda: reply.read1(), b""))


@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("route", [json_reply, gzip_reply, event_stream, gzip_stream])
def test_an_answer_reads_as_the_real_one(watcher: Watcher, route: Any, how: str) -> None:
    with serving(route) as server:
        real = READERS[how](ask(server, preload_content=False))
    again = Watcher()
    with using(models=Tape(watcher.seen), wire=again):
        reply = ask(server, preload_content=False)
        assert READERS[how](reply) == real
        reply.close()
    assert again.only.answered
    if how.startswith("stream"):
        assert chunks(again.only) == chunks(watcher.only)
    assert bodies(again.seen) == bodies(watcher.seen)


@pytest.mark.parametrize("route", [json_reply, gzip_reply, event_stream, gzip_stream])
def test_requests_is_answered(watcher: Watcher, route: Any) -> None:
    with serving(route) as server:
        real = requests.post(server.url + CHAT, data=ASK)
        lines = list(requests.post(server.url + CHAT, data=ASK, stream=True).iter_lines())
    with using(models=Tape(watcher.seen)):
        reply = requests.post(server.url + CHAT, data=ASK)
        assert (reply.status_code, reply.reason, reply.content) == (200, "OK", real.content)
        assert reply.json() == real.json() if route in (json_reply, gzip_reply) else True
        assert list(requests.post(server.url + CHAT, data=ASK, stream=True).iter_lines()) == lines


def test_a_preloaded_answer_is_decoded(watcher: Watcher) -> None:
    with serving([gzip_reply, gzip_reply]) as server:
        ask(server)
        ask(server, preload_content=False).read()
    with using(models=Tape(watcher.seen)):
        assert ask(server).data == REPLY
        assert ask(server).data == REPLY


def test_a_recorded_cut_is_raised_again(watcher: Watcher) -> None:
    with serving(cut_stream) as server, pytest.raises(requests.exceptions.ChunkedEncodingError) as real:
        requests.post(server.url + CHAT, data=ASK)
    with using(models=Tape(watcher.seen)), pytest.raises(requests.exceptions.ChunkedEncodingError) as again:
        requests.post(server.url + CHAT, data=ASK)
    assert str(again.value) == str(real.value)


@pytest.mark.parametrize(
    ("recorded", "raised"),
    [
        ("ReadTimeoutError", "ReadTimeoutError"),
        ("NewConnectionError", "NewConnectionError"),
        ("ProxyError", "ProxyError"),
        ("IncompleteRead", "ProtocolError"),
        ("Unheard", "ProtocolError"),
    ],
)
def test_errors_are_raised_by_name_or_as_the_nearest(points: None, recorded: str, raised: str) -> None:
    answer = RecordedResponse(None, end="error", error={"type": recorded, "message": "as it was"})
    with using(models=Fixed(answer)), pytest.raises(getattr(urllib3.exceptions, raised)) as caught:
        ask("http://nowhere.invalid" + CHAT)
    assert str(caught.value) == "as it was"


def test_refusals_reach_the_program_as_they_are(points: None) -> None:
    with using(models=Tape([])), pytest.raises(ReplayDivergence, match="nothing is recorded"):
        requests.post("http://nowhere.invalid" + CHAT, data=ASK)
    with using(forbid_unknown=True), pytest.raises(ReplayDivergence, match=r"GET nowhere.invalid/v1/files is no known"):
        requests.get("http://nowhere.invalid/v1/files?key=s")


@pytest.mark.parametrize("place", ["describe", "_pairs", "_tapped", "_place"])
def test_a_defect_of_the_point_lets_the_call_pass(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    if place == "_place":
        monkeypatch.setattr("otel_agentrec.intercept.urllib3_points.urlsplit", broken)
        monkeypatch.setattr("otel_agentrec.intercept.urllib3_points._PORTS", None)
    else:
        monkeypatch.setattr(f"otel_agentrec.intercept.urllib3_points.{place}", broken)
    with serving(json_reply) as server:
        assert requests.post(server.url + CHAT, data=ASK).content == REPLY


def test_a_defect_of_the_point_sends_nothing_where_somebody_answers(
    points: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("otel_agentrec.intercept.urllib3_points.describe", broken)
    with serving(json_reply) as server, using(models=Fixed()), pytest.raises(RunStopped, match="can't be looked at"):
        requests.post(server.url + CHAT, data=ASK)
    assert server.bodies == []

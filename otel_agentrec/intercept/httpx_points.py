"""httpx and httpx2, two libraries with the same classes: recorded and answered at the client and at its transport.

The client is caught where it picks a transport for a URL (``_transport_for_url``, a private name that all versions have):
so every transport is seen, also users' own, mocks and proxies, and of clients built long before. The library's own
transports are caught as well (``handle_request``), for those who use one without a client. The outer of the two records.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.exchanges import (
    Attempt,
    ask,
    begin,
    describe,
    is_inside,
    looked_at,
    not_looked_at,
    playable_headers,
    raised,
    sending,
    wanted,
)
from otel_agentrec.intercept.patching import Patched, replace
from otel_agentrec.intercept.protocol import ModelRequest, RecordedResponse

__all__ = ["async_send", "client_point", "library_of", "send", "transport_point"]


def client_point(module: ModuleType) -> Patched:
    """Patch the clients of ``httpx`` or ``httpx2``."""
    made = []
    for client, through in ((module.Client, Through), (module.AsyncClient, AsyncThrough)):
        made.append(replace(client, "_transport_for_url", _picks(through)))
    return Patched(module.__name__, module.__version__, "client", replacements=made)


def transport_point(module: ModuleType) -> Patched:
    """Patch the transports that ``httpx`` or ``httpx2`` itself brings, its mock among them: respx puts that in place of
    what a client picks."""

    def sync(original: Callable[..., Any]) -> Callable[..., Any]:
        def handle_request(self: Any, request: Any) -> Any:
            return send(lambda asked: original(self, asked), request)

        return handle_request

    def asynchronous(original: Callable[..., Any]) -> Callable[..., Any]:
        async def handle_async_request(self: Any, request: Any) -> Any:
            return await async_send(lambda asked: original(self, asked), request)

        return handle_async_request

    made = [
        replace(module.HTTPTransport, "handle_request", sync),
        replace(module.AsyncHTTPTransport, "handle_async_request", asynchronous),
        replace(module.MockTransport, "handle_request", sync),
        replace(module.MockTransport, "handle_async_request", asynchronous),
    ]
    return Patched(module.__name__, module.__version__, "transport", replacements=made)


def _picks(through: type) -> Callable[[Any], Any]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def _transport_for_url(self: Any, url: Any) -> Any:
            transport = original(self, url)
            if ACTIVE.wire is None and ACTIVE.models is None and not ACTIVE.forbid_unknown:
                return transport
            return through(transport)

        return _transport_for_url

    return make


class Through:
    """A transport that records and answers what goes through another one. What it does not have itself is the other's."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def handle_request(self, request: Any) -> Any:
        return send(self._transport.handle_request, request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class AsyncThrough:
    """:class:`Through` for asynchronous clients."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    async def handle_async_request(self, request: Any) -> Any:
        return await async_send(self._transport.handle_async_request, request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


# --- one request --------------------------------------------------------------------------------------------------------


def send(through: Callable[[Any], Any], request: Any) -> Any:
    """Answer a request, or send it by ``through`` and watch what comes.

    Raises:
        RunStopped: an answerer refuses it.
    """
    if is_inside():
        return through(request)
    api = _api(request)
    if api is None:
        return through(request)
    request.read()  # a body from a generator is consumed by the first who reads it
    asked = looked_at("httpx", lambda: _describe(request, api))
    if asked is None:
        return through(request)
    answer = ask(asked)
    if answer is not None:
        return _answered(answer, asked, request, "sync")
    attempt = begin(asked)
    with sending():
        try:
            response = through(request)
        except BaseException as error:
            if attempt is not None:
                attempt.end("error", error)
            raise
    return response if attempt is None else _watched(response, attempt, request, "sync")


async def async_send(through: Callable[[Any], Any], request: Any) -> Any:
    """:func:`send` for asynchronous transports."""
    if is_inside():
        return await through(request)
    api = _api(request)
    if api is None:
        return await through(request)
    await request.aread()
    asked = looked_at("httpx", lambda: _describe(request, api))
    if asked is None:
        return await through(request)
    answer = ask(asked)
    if answer is not None:
        return _answered(answer, asked, request, "async")
    attempt = begin(asked)
    with sending():
        try:
            response = await through(request)
        except BaseException as error:
            if attempt is not None:
                attempt.end("error", error)
            raise
    return response if attempt is None else _watched(response, attempt, request, "async")


def library_of(thing: Any) -> str:
    """``httpx`` or ``httpx2``, from a request of it (or of a subclass)."""
    for cls in type(thing).__mro__:
        name = str(cls.__module__).partition(".")[0]
        if name in ("httpx", "httpx2"):
            return name
    raise TypeError(f"{type(thing).__module__}.{type(thing).__name__} is no request of httpx or httpx2")


def _api(request: Any) -> str | None:
    try:
        url = request.url
        method, host, path = request.method, url.netloc.decode("ascii", "replace"), url.raw_path
    except Exception as error:
        not_looked_at("httpx", error)
        return None
    return wanted(method, host, path.partition(b"?")[0].decode("ascii", "replace"))


def _describe(request: Any, api: str) -> ModelRequest:
    return describe(
        library_of(request),
        api,
        request.method,
        request.url.netloc.decode("ascii", "replace"),
        request.url.raw_path.decode("ascii", "replace"),
        _pairs(request.headers),
        request.content,
    )


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]


def _watched(response: Any, attempt: Attempt, request: Any, way: str) -> Any:
    """The response, its body followed."""
    try:
        attempt.status = response.status_code
        attempt.headers = _pairs(response.headers)
        if hasattr(response, "_content"):  # made by a mock, or read by a transport on its way: nobody will iterate it
            attempt.chunk(_whole(response, attempt))
            attempt.end("eof")
        else:
            response.stream = _classes(library_of(request))[way](response.stream, attempt)
    except Exception as error:
        PROCESS.swallow("the point in httpx", error)
        attempt.end("gone")
    return response


def _whole(response: Any, attempt: Attempt) -> bytes:
    """The body of a response that was read, as it came if it still can be had."""
    raw = getattr(response.stream, "_stream", None)
    if isinstance(raw, bytes):
        return raw
    attempt.decoded = "content-encoding" in response.headers
    return bytes(response.content)


# --- bodies ---------------------------------------------------------------------------------------------------------------


class _Tee:
    """A response's stream, with each chunk kept as it passes.

    The end is told at the end of the bytes, at close, at an error, or when this is dropped. Not when an iteration is
    given up: clients stop at ``[DONE]`` and iterate again to drain the connection.
    """

    def __init__(self, stream: Any, attempt: Attempt) -> None:
        self._stream = stream
        self._attempt = attempt

    def __del__(self) -> None:
        self._attempt.end("gone")


class SyncTee(_Tee):
    def __iter__(self) -> Iterator[bytes]:
        attempt = self._attempt
        append, begun = attempt.chunks.append, attempt.begun
        try:
            for chunk in self._stream:
                append((perf_counter_ns() - begun, chunk))
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:
            attempt.end("error", error)
            raise
        attempt.end("eof")

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._attempt.end("closed")


class AsyncTee(_Tee):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        attempt = self._attempt
        append, begun = attempt.chunks.append, attempt.begun
        stream = self._stream.__aiter__()
        try:
            async for chunk in stream:
                append((perf_counter_ns() - begun, chunk))
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:
            attempt.end("error", error)
            raise
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        attempt.end("eof")

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._attempt.end("closed")


class _Recorded:
    """A recorded body, in the recorded chunks. It can be read once: a second iteration goes on where the first stopped."""

    def __init__(self, answer: RecordedResponse, error: BaseException | None) -> None:
        self._chunks = iter(answer.chunks)
        self._error = error

    def _end(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _drop(self) -> None:
        self._chunks, self._error = iter(()), None


class SyncRecorded(_Recorded):
    def __iter__(self) -> Iterator[bytes]:
        for _, chunk in self._chunks:
            yield chunk
        self._end()

    def close(self) -> None:
        self._drop()


class AsyncRecorded(_Recorded):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _, chunk in self._chunks:
            yield chunk
        self._end()

    async def aclose(self) -> None:
        self._drop()


@lru_cache(maxsize=4)
def _classes(library: str) -> dict[str, Any]:
    """The streams above as subclasses of the library's own, which its clients insist on."""
    module = sys.modules[library]
    return {
        "sync": type("SyncTee", (SyncTee, module.SyncByteStream), {}),
        "async": type("AsyncTee", (AsyncTee, module.AsyncByteStream), {}),
        "sync recorded": type("SyncRecorded", (SyncRecorded, module.SyncByteStream), {}),
        "async recorded": type("AsyncRecorded", (AsyncRecorded, module.AsyncByteStream), {}),
    }


def _answered(answer: RecordedResponse, asked: ModelRequest, request: Any, way: str) -> Any:
    """The recorded answer as a response of the library; raises when what was recorded is an error of the transport."""
    module = sys.modules[asked.library]
    attempt = begin(asked, answer)
    error = None
    if answer.error is not None or answer.status is None:
        error = raised(answer.error, lambda name: getattr(module, name, None), module.ReadError)
    if answer.status is None:
        assert error is not None
        if attempt is not None:
            attempt.end("error", error)
        raise error
    classes = _classes(asked.library)
    stream = classes[f"{way} recorded"](answer, error)
    if attempt is not None:
        attempt.status, attempt.headers, attempt.decoded = answer.status, list(answer.headers), answer.decoded
        stream = classes[way](stream, attempt)
    return module.Response(
        answer.status,
        headers=[(_bytes(name), _bytes(value)) for name, value in playable_headers(answer)],
        stream=stream,
        request=request,
        extensions={"http_version": b"HTTP/1.1"},
    )


def _bytes(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()

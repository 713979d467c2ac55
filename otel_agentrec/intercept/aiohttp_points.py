"""aiohttp clients, as well as can be done: recorded and answered by a client middleware of our own, the innermost one.

Middlewares are public since aiohttp 3.12. How a body arrives is not: its ``StreamReader`` gets a class of ours. All of that
is tried out when the point is put in; a version that does not have it is reported as not covered.

Bodies are kept as aiohttp hands them on, which is decoded unless the session was told otherwise.
"""

from __future__ import annotations

import inspect
import sys
import zlib
from collections.abc import Awaitable, Callable
from functools import lru_cache
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

__all__ = ["client_point"]

_READER = ("_buffer", "_wait", "feed_data", "feed_eof", "set_exception", "is_eof")
_RESPONSE = {"writer", "continue100", "timer", "request_info", "traces", "loop", "session", "stream_writer"}
"""Keyword arguments of ``ClientResponse`` that we know how to fill."""
_TAPS: dict[int, Attempt] = {}
"""Attempts by the id of the reader of their body, which has no room for one (``__slots__``)."""


def client_point(module: ModuleType) -> Patched:
    """Patch the sessions of ``aiohttp``.

    Raises:
        Exception: this version can't be patched.
    """
    _try_out(module)

    def make(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def _request(self: Any, method: str, str_or_url: Any, **kw: Any) -> Any:
            if ACTIVE.wire is not None or ACTIVE.models is not None or ACTIVE.forbid_unknown:
                theirs = kw.get("middlewares")
                theirs = self._middlewares if theirs is None else theirs
                decodes = kw.get("auto_decompress")
                decodes = self._auto_decompress if decodes is None else decodes
                kw["middlewares"] = (*theirs, _middleware(decodes))
            return await original(self, method, str_or_url, **kw)

        return _request

    made = replace(module.ClientSession, "_request", make)
    return Patched("aiohttp", module.__version__, "client", replacements=[made])


def _try_out(module: Any) -> None:
    """Raises when this version lacks something that is needed here."""
    if "middlewares" not in inspect.signature(module.ClientSession._request).parameters:
        raise NotImplementedError("has no client middlewares (3.12 has)")
    if not hasattr(module.payload.Payload, "as_bytes"):
        raise NotImplementedError("has no way to read a request's body (later versions of 3.12 have)")
    known = inspect.unwrap(module.ClientSession.__init__).__code__.co_names
    for name in ("_middlewares", "_auto_decompress"):
        if name not in known:
            raise AttributeError(f"ClientSession has no {name}")
    for name in _READER:
        if name != "_buffer":
            getattr(module.StreamReader, name)
    reader = module.StreamReader.__new__(module.StreamReader)
    reader.__class__ = _classes()["tap"]
    if _given(module.ClientResponse) - _RESPONSE:
        raise TypeError(f"ClientResponse wants {', '.join(sorted(_given(module.ClientResponse) - _RESPONSE))}")


def _given(response: Any) -> set[str]:
    parameters = inspect.signature(response.__init__).parameters.values()
    return {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}


def _middleware(decodes: bool) -> Callable[[Any, Any], Awaitable[Any]]:
    async def record_and_answer(request: Any, handler: Any) -> Any:
        if is_inside():
            return await handler(request)
        try:
            url = request.url
            default = url.is_default_port() or url.explicit_port is None
            host = url.raw_host if default else f"{url.raw_host}:{url.explicit_port}"
            target = url.raw_path_qs
        except Exception as error:
            not_looked_at("aiohttp", error)
            return await handler(request)
        api = wanted(request.method, host, target.partition("?")[0])
        if api is None:
            return await handler(request)
        try:
            body = request.body if isinstance(request.body, bytes) else await request.body.as_bytes()
        except Exception as error:
            not_looked_at("aiohttp", error)
            return await handler(request)
        headers = request.headers
        asked = looked_at(
            "aiohttp",
            lambda: describe("aiohttp", api, request.method, host, target, list(headers.items()), bytes(body)),
        )
        if asked is None:
            return await handler(request)
        answer = ask(asked)
        if answer is not None:
            return _answered(answer, asked, request, decodes)
        attempt = begin(asked)
        with sending():
            try:
                response = await handler(request)
            except BaseException as error:
                if attempt is not None:
                    attempt.end("error", error)
                raise
        if attempt is not None:
            _watch(response, attempt, decodes)
        return response

    return record_and_answer


def _watch(response: Any, attempt: Attempt, decodes: bool) -> None:
    """Follow the body as it arrives."""
    try:
        attempt.status = response.status
        attempt.headers = list(response.headers.items())
        attempt.decoded = decodes and "content-encoding" in response.headers
        _tap(response.content, attempt)
    except Exception as error:
        PROCESS.swallow("the point in aiohttp", error)
        attempt.end("gone")


def _tap(reader: Any, attempt: Attempt) -> None:
    for chunk in getattr(reader, "_buffer", ()):
        attempt.chunk(bytes(chunk))
    if reader.is_eof():
        attempt.end("eof")
        return
    classes = _classes()
    _TAPS[id(reader)] = attempt
    reader.__class__ = classes["recorded tap"] if isinstance(reader, classes["recorded"]) else classes["tap"]


class _Tap:
    """Mixed into the class of a reader. Closing a response early is told to it as an error of its own."""

    __slots__ = ()

    def feed_data(self, data: Any, *more: Any) -> Any:
        attempt = _TAPS.get(id(self))
        if attempt is not None and data:
            attempt.chunk(bytes(data))
        return super().feed_data(data, *more)  # type: ignore[misc]

    def feed_eof(self) -> None:
        self._over("eof")
        super().feed_eof()  # type: ignore[misc]

    def set_exception(self, error: Any, *more: Any) -> None:
        closed = sys.modules["aiohttp.client_reqrep"]
        is_close = error is getattr(closed, "_CONNECTION_CLOSED_EXCEPTION", None)
        self._over("closed" if is_close else "error", None if is_close else error)
        super().set_exception(error, *more)  # type: ignore[misc]

    def _over(self, how: str, error: Any = None) -> None:
        attempt = _TAPS.pop(id(self), None)
        if attempt is not None:
            attempt.end(how, error if isinstance(error, BaseException) else None)

    def __del__(self) -> None:
        self._over("gone")


class _Connected:
    """What a reader wants of a connection."""

    connected = True
    _reading_paused = False

    def pause_reading(self, *_: Any, **__: Any) -> None: ...

    def resume_reading(self, *_: Any, **__: Any) -> None: ...


class _Recorded:
    """Mixed into a reader that gives the recorded chunks: one whenever the program waits for more."""

    __slots__ = ()

    async def _wait(self, func_name: str) -> None:
        this: Any = self
        if this._left:
            this.feed_data(this._left.pop())
        elif this._error is not None:
            error, this._error = this._error, None
            this.set_exception(error)
            raise error
        else:
            this.feed_eof()


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    reader = sys.modules["aiohttp"].StreamReader
    recorded = type("StreamReader", (_Recorded, reader), {"__slots__": ("_left", "_error")})
    return {
        "tap": type("StreamReader", (_Tap, reader), {"__slots__": ()}),
        "recorded": recorded,
        "recorded tap": type("StreamReader", (_Tap, recorded), {"__slots__": ()}),
    }


def _answered(answer: RecordedResponse, asked: ModelRequest, request: Any, decodes: bool) -> Any:
    module = sys.modules["aiohttp"]
    multidict = sys.modules["multidict"]
    attempt = begin(asked, answer)
    error = None
    if answer.error is not None or answer.status is None:
        known = sys.modules["aiohttp.client_exceptions"]
        error = raised(answer.error, lambda name: getattr(known, name, None), module.ClientConnectionError)
    if answer.status is None:
        assert error is not None
        if attempt is not None:
            attempt.end("error", error)
        raise error
    pairs = playable_headers(answer)
    reader = _classes()["recorded"](_Connected(), 2**16, loop=request.loop)
    chunks = [chunk for _, chunk in answer.chunks if chunk]
    encoding = next((value.lower() for name, value in pairs if name.lower() == "content-encoding"), None)
    if decodes and not answer.decoded and encoding in ("gzip", "deflate"):  # recorded with another library
        unzip = zlib.decompressobj(zlib.MAX_WBITS | 32)
        chunks = [part for part in map(unzip.decompress, chunks) if part]
    reader._left, reader._error = chunks[::-1], error
    if attempt is not None:
        attempt.status, attempt.headers = answer.status, list(answer.headers)
        attempt.decoded = answer.decoded or chunks != [chunk for _, chunk in answer.chunks if chunk]
        _tap(reader, attempt)
    filled = {
        "writer": None,
        "continue100": None,
        "timer": None,
        "request_info": request.request_info,
        "traces": [],
        "loop": request.loop,
        "session": request._session,
        "stream_writer": _Sent(),
    }
    cls = request.response_class
    response = cls(request.method, request.url, **{name: filled[name] for name in _given(cls)})
    headers = multidict.CIMultiDict(pairs)
    response.version = module.HttpVersion11
    response.status, response.reason = answer.status, _reason(answer.status)
    response._headers = multidict.CIMultiDictProxy(headers)
    response._raw_headers = tuple((name.encode(), value.encode()) for name, value in pairs)
    response.content = reader
    response._closed = False
    cookies = tuple(headers.getall("set-cookie", ()))
    if cookies:
        response._raw_cookie_headers = cookies
    return response


class _Sent:
    """What a response wants of a request that is sent already."""

    output_size = 0


def _reason(status: int) -> str:
    from http.client import responses

    return responses.get(status, "")

"""urllib3, and with it requests and botocore: recorded and answered at ``HTTPConnectionPool.urlopen``.

One exchange per ``urlopen``: what its ``Retry`` does inside is one call. Bodies are kept as they come off the connection:
without the frames of chunked transfer, still encoded. A body that ``urlopen`` itself has read (``preload_content``) is
kept as one chunk, decoded.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from otel_agentrec.capture.guard import PROCESS
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

__all__ = ["pool_point"]

_READING = ("_fp_read", "_handle_chunk", "_update_chunk_length", "_error_catcher")
"""Methods of a response that all its reading goes through, in urllib3 1.26 and 2."""
_PORTS = {"http": 80, "https": 443}


def pool_point(module: ModuleType) -> Patched:
    """Patch the pools of ``urllib3``."""
    for name in _READING:
        getattr(module.HTTPResponse, name)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def urlopen(
            self: Any, method: str, url: str, body: Any = None, headers: Any = None, *args: Any, **kw: Any
        ) -> Any:
            return _send(original, self, method, url, body, headers, args, kw)

        return urlopen

    made = replace(module.HTTPConnectionPool, "urlopen", make)
    return Patched("urllib3", module.__version__, "pool", replacements=[made])


def _send(
    original: Callable[..., Any], pool: Any, method: str, url: str, body: Any, headers: Any, args: Any, kw: Any
) -> Any:
    if is_inside():
        return original(pool, method, url, body, headers, *args, **kw)
    place = _place(pool, url)
    api = wanted(method.upper(), place[0], place[1].partition("?")[0]) if place is not None else None
    if api is None or place is None:
        return original(pool, method, url, body, headers, *args, **kw)
    host, target = place
    body = _whole(body)
    data = body.encode() if isinstance(body, str) else bytes(body or b"")
    given = pool.headers if headers is None else headers
    asked = looked_at("urllib3", lambda: describe("urllib3", api, method.upper(), host, target, _pairs(given), data))
    if asked is None:
        return original(pool, method, url, body, headers, *args, **kw)
    answer = ask(asked)
    if answer is not None:
        return _answered(answer, asked, method, url, kw)
    attempt = begin(asked)
    with sending():
        try:
            response = original(pool, method, url, body, headers, *args, **kw)
        except BaseException as error:
            if attempt is not None:
                attempt.end("error", error)
            raise
    if attempt is not None:
        _watch(response, attempt, kw)
    return response


def _place(pool: Any, url: str) -> tuple[str, str] | None:
    """Host and target (path with query) of a request; a proxy is asked by a whole URL."""
    try:
        scheme, host, port, target = pool.scheme, pool.host, pool.port, url
        if not url.startswith("/"):
            parts = urlsplit(url)
            scheme, host, port = parts.scheme, parts.hostname or host, parts.port
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return (host if port in (None, _PORTS.get(scheme)) else f"{host}:{port}"), target
    except Exception as error:
        not_looked_at("urllib3", error)
        return None


def _whole(body: Any) -> Any:
    """A body that can be looked at and still be sent: files and iterators are read, as sending them would."""
    if body is None or isinstance(body, (bytes, bytearray, memoryview, str)):
        return body
    if hasattr(body, "read"):
        body = iter(lambda: body_read(65536), b"") if (body_read := body.read) else ()
    return b"".join(part.encode() if isinstance(part, str) else bytes(part) for part in body if part)


def _pairs(headers: Any) -> list[tuple[str, str]]:
    """Headers as text; botocore has some in bytes."""
    items = headers.iteritems() if hasattr(headers, "iteritems") else (headers or {}).items()
    return [(_text(name), _text(value)) for name, value in items]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _watch(response: Any, attempt: Attempt, kw: dict[str, Any]) -> None:
    """Follow the body as the program reads it."""
    try:
        attempt.status = response.status
        attempt.headers = _pairs(response.headers)
        if kw.get("preload_content", True) or not hasattr(response, "_fp_read"):
            attempt.decoded = "content-encoding" in response.headers and kw.get("decode_content", True)
            attempt.chunk(response.data or b"")
            attempt.end("eof")
        else:
            _tap(response, attempt)
    except Exception as error:
        PROCESS.swallow("the point in urllib3", error)
        attempt.end("gone")


class _Tap:
    """Mixed into the class of a response that is watched. A class, not attributes of the instance: those would make a
    cycle, and a response that is dropped would keep its connection until the garbage collector runs."""

    _agentrec: Attempt
    _agentrec_failing = False
    _fp: Any
    length_remaining: int | None
    enforce_content_length: bool
    chunk_left: int | None

    def _fp_read(self, amt: int | None = None, **kw: Any) -> bytes:
        data = self._kept(lambda: super(_Tap, self)._fp_read(amt, **kw))  # type: ignore[misc]
        whole = amt is None and not kw.get("read1")
        if whole or (amt != 0 and not data) or _is_over(self._fp):
            missing = (self.length_remaining or 0) - len(data)
            if not (self.enforce_content_length and missing > 0):  # else the caller raises
                self._agentrec.end("eof")
        return data

    def _handle_chunk(self, amt: int | None) -> bytes:
        return self._kept(lambda: super(_Tap, self)._handle_chunk(amt))  # type: ignore[misc]

    def _update_chunk_length(self) -> None:
        self._agentrec_failing = True  # it closes the response before it raises
        super()._update_chunk_length()  # type: ignore[misc]
        self._agentrec_failing = False
        if self.chunk_left == 0:
            self._agentrec.end("eof")

    def _kept(self, read: Callable[[], bytes]) -> bytes:
        try:
            data = read()
        except Exception as error:
            partial = getattr(error, "partial", None)  # what http.client had read of a body that was cut
            if isinstance(partial, bytes) and partial:
                self._agentrec.chunk(partial)
            raise
        if data:
            self._agentrec.chunk(data)
        return data

    @contextmanager
    def _error_catcher(self) -> Iterator[None]:
        try:
            with super()._error_catcher():  # type: ignore[misc]
                yield
        except GeneratorExit:
            raise
        except BaseException as error:
            self._agentrec.end("error", error)
            raise

    def close(self) -> None:
        try:
            super().close()  # type: ignore[misc]
        finally:
            if not self._agentrec_failing:
                self._agentrec.end("closed")

    def __del__(self) -> None:
        self._agentrec.end("gone")
        finalise = getattr(super(), "__del__", None)
        if finalise is not None:
            finalise()


def _tap(response: Any, attempt: Attempt) -> None:
    cls: Any = type(response)
    response._agentrec = attempt
    response.__class__ = _tapped(cls)


@lru_cache(maxsize=16)
def _tapped(cls: Any) -> type:
    return type(cls.__name__, (_Tap, cls), {"__module__": cls.__module__})


def _is_over(file: Any) -> bool:
    """Whether a body was read to its end; http.client closes itself then."""
    is_closed = getattr(file, "isclosed", None)
    return bool(is_closed()) if is_closed is not None else bool(getattr(file, "closed", False))


# --- answering ----------------------------------------------------------------------------------------------------------


class _RecordedFile(io.RawIOBase):
    """A recorded body: each read gives at most one recorded chunk, a read of everything what is left."""

    def __init__(self, answer: RecordedResponse, error: BaseException | None) -> None:
        self._left = [chunk for _, chunk in reversed(answer.chunks)]
        self._error = error

    def readable(self) -> bool:
        return True

    def read(self, amt: int | None = -1) -> bytes:
        if amt is None or amt < 0:
            parts = []
            while part := self.read(1 << 62):
                parts.append(part)
            self.close()
            return b"".join(parts)
        while self._left and not self._left[-1]:
            self._left.pop()
        if not self._left or not amt:
            if amt and self._error is not None:
                error, self._error = self._error, None
                raise error
            return b""
        chunk = self._left.pop()
        if len(chunk) > amt:
            self._left.append(chunk[amt:])
        return chunk[:amt]

    def read1(self, amt: int | None = -1) -> bytes:
        return self.read(1 << 62 if amt is None or amt < 0 else amt)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Recorded:
    """Mixed into ``HTTPResponse`` for recorded answers: a stream that was chunked gives the recorded chunks, and as urllib3
    has it decodes them only when it is told to."""

    chunked = False
    was_chunked = False

    def stream(self, amt: int | None = 2**16, decode_content: bool | None = None) -> Iterator[bytes]:
        this: Any = self
        if not self.was_chunked:
            yield from super().stream(amt, decode_content)  # type: ignore[misc]
            return
        this._init_decoder()
        while not _is_over(this._fp):
            with this._error_catcher():
                data = this._fp_read(amt or 1 << 62)
            if not data:
                this._fp.close()
            decoded = this._decode(data, decode_content=decode_content, flush_decoder=not data)
            if decoded:
                yield decoded


@lru_cache(maxsize=1)
def _recorded_class() -> Any:
    response = sys.modules["urllib3"].HTTPResponse
    return type("HTTPResponse", (_Recorded, response), {"__module__": response.__module__})


def _answered(answer: RecordedResponse, asked: ModelRequest, method: str, url: str, kw: dict[str, Any]) -> Any:
    urllib3 = sys.modules["urllib3"]
    attempt = begin(asked, answer)
    error = None
    if answer.error is not None or answer.status is None:
        known = {name: thing for name, thing in vars(urllib3.exceptions).items() if name not in _WITH_COUNTS}
        error = raised(answer.error, known.get, urllib3.exceptions.ProtocolError)
    if answer.status is None:
        assert error is not None
        if attempt is not None:
            attempt.end("error", error)
        raise error
    headers = urllib3.response.HTTPHeaderDict()
    for name, value in playable_headers(answer):
        headers.add(name, value)
    response = _recorded_class()(
        body=_RecordedFile(answer, error),
        headers=headers,
        status=answer.status,
        version=11,
        reason=_reason(answer.status),
        preload_content=False,
        decode_content=kw.get("decode_content", True),
        request_method=method,
        retries=kw.get("retries") if isinstance(kw.get("retries"), urllib3.util.Retry) else None,
        enforce_content_length=False,
    )
    response.was_chunked = all(name.lower() != "content-length" for name, _ in answer.headers)
    if attempt is not None:
        attempt.status, attempt.headers, attempt.decoded = answer.status, list(answer.headers), answer.decoded
        _tap(response, attempt)
    if kw.get("preload_content", True):
        response._body = response.read(decode_content=kw.get("decode_content", True))
    response._request_url, response.version_string = url, "HTTP/1.1"
    return response


_WITH_COUNTS = {"IncompleteRead", "InvalidChunkLength"}
"""Errors that are made of numbers which a message does not hold."""


def _reason(status: int) -> str | None:
    from http.client import responses

    return responses.get(status)

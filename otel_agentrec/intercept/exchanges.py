"""What every HTTP point does, whatever the library: look, ask, and keep what comes.

The order at a point: :func:`wanted` (is this a model call?), the library's own way to read the request's body,
:func:`ask` (does somebody answer?), then either the recorded answer or the real thing, each followed by an
:class:`Attempt`. A bug of ours never reaches a program that is only recorded. Where somebody answers, it stops the run: a
request that can't be looked at must not go out.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter_ns
from typing import Any

from opentelemetry import context, trace

from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.errors import ReplayDivergence, RunStopped
from otel_agentrec.intercept.active import ACTIVE, refusal
from otel_agentrec.intercept.endpoints import ASIDE, api_of, kept_request_headers, query_names
from otel_agentrec.intercept.protocol import (
    Exchange,
    ModelRequest,
    Pass,
    RecordedResponse,
    SpanRef,
    WireObserver,
)

__all__ = [
    "SUPPRESSED",
    "Attempt",
    "ask",
    "begin",
    "describe",
    "is_inside",
    "looked_at",
    "not_looked_at",
    "playable_headers",
    "raised",
    "sending",
    "sweep",
    "under_way",
    "wanted",
]

_KEYS = ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY")
SUPPRESSED: tuple[str, ...] = (
    *(getattr(context, name) for name in _KEYS if hasattr(context, name)),
    "suppress_instrumentation",
)
"""Context keys under which exporters send. Those of ``_KEYS`` end in random letters, made when OTel is imported."""

_OPEN: dict[int, Attempt] = {}
"""Attempts whose end was not told yet. Setting and popping an item are one step each, so no lock is needed."""


class _Inside:
    """A request on its way through a point. ``open`` ends with it: tasks that it starts inherit the variable."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open = True


_inside: ContextVar[_Inside | None] = ContextVar("agentrec_inside", default=None)


def is_inside() -> bool:
    """Whether an outer point has this request already."""
    inside = _inside.get()
    return inside is not None and inside.open


@contextmanager
def sending() -> Iterator[None]:
    """While the real request is sent: points further in let it pass."""
    inside = _Inside()
    token = _inside.set(inside)
    try:
        yield
    finally:
        inside.open = False
        try:
            _inside.reset(token)
        except ValueError:
            pass  # closed in another context, as generators are: the variable was never ours there


def wanted(method: str, host: str, path: str) -> str | None:
    """The API of a model call that somebody watches or answers; None: let it pass and look no further.

    Args:
        host: with a port that is not the scheme's own.
        path: percent-encoded, without query.

    Raises:
        ReplayDivergence: it is no model call, and nothing else may be sent.
        ConnectionRefusedError: the same, of a request that an SDK can do without.
    """
    if ACTIVE.wire is None and ACTIVE.models is None and not ACTIVE.forbid_unknown:
        return None
    if any(context.get_value(key) for key in SUPPRESSED):
        return None
    api = api_of(method, path)
    if api is None and ACTIVE.forbid_unknown:
        if host in ACTIVE.allowed_hosts or host.rpartition(":")[0] in ACTIVE.allowed_hosts:
            return None
        if path.endswith(ASIDE):
            raise ConnectionRefusedError(f"{host}{path} is not asked while a recording is replayed")
        error = ReplayDivergence(
            f"{method} {host}{path} is no known model call, and nothing else is sent while a recording is replayed",
            "if it is one, name its path: OTEL_AGENTREC_WIRE_PATHS=GLOB; else allow its host",
        )
        raise refusal(error)
    return api


def describe(
    library: str,
    api: str,
    method: str,
    host: str,
    target: str,
    headers: Iterable[tuple[str, str]],
    body: bytes,
) -> ModelRequest:
    """A model call as answerers and observers see it. ``target``: path and query as they are sent."""
    path, _, query = target.partition("?")
    headers = list(headers)
    here = trace.get_current_span().get_span_context()
    return ModelRequest(
        method=method,
        host=host,
        path=path,
        query=query_names(query),
        headers=kept_request_headers(headers),
        body=body,
        api=api,
        library=library,
        started_ns=time.time_ns(),
        span=SpanRef(f"{here.trace_id:032x}", f"{here.span_id:016x}") if here.is_valid else None,
        traceparent=next((value for name, value in headers if name.lower() == "traceparent"), None),
    )


def looked_at(library: str, look: Callable[[], ModelRequest]) -> ModelRequest | None:
    """``look()``; None when it failed and the call is only recorded.

    Raises:
        RunStopped: it failed, and somebody answers.
    """
    try:
        return look()
    except Exception as error:
        not_looked_at(library, error)
        return None


def not_looked_at(library: str, error: Exception) -> None:
    """Count a failure to look at a request.

    Raises:
        RunStopped: somebody answers, so the request must not go out unseen.
    """
    if ACTIVE.models is not None or ACTIVE.forbid_unknown:
        what = f"a request of {library} can't be looked at, so it is not sent: {type(error).__name__}: {error}"
        raise RunStopped(what, "this is a defect of otel-agentrec; please report it") from error
    PROCESS.swallow(f"the point in {library}", error)


def ask(request: ModelRequest) -> RecordedResponse | None:
    """The recorded answer to a request; None: it is to be sent. What an answerer raises is meant for the program."""
    answerer = ACTIVE.models
    if answerer is None:
        return None
    answer = answerer.answer(request)
    return None if isinstance(answer, Pass) else answer


def playable_headers(answer: RecordedResponse) -> list[tuple[str, str]]:
    """The headers of a recorded answer as they fit a body that is handed over in chunks, decoded or not."""
    gone = {"transfer-encoding", "connection", "keep-alive"}
    if answer.decoded:
        gone |= {"content-encoding", "content-length"}
    return [(name, value) for name, value in answer.headers if name.lower() not in gone]


class Attempt:
    """One request that was sent or answered, until the end of its response is told, once.

    ``chunks`` is appended to directly as bytes arrive: ``(perf_counter_ns() - begun, bytes)``.
    """

    __slots__ = ("_observer", "answered", "begun", "chunks", "decoded", "headers", "origin", "request", "status")

    def __init__(self, request: ModelRequest, observer: WireObserver, answer: RecordedResponse | None = None) -> None:
        self.request = request
        self.answered = answer is not None
        self.origin = answer.origin if answer is not None else None
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.chunks: list[tuple[int, bytes]] = []
        self.decoded = False
        self._observer = observer
        self.begun = perf_counter_ns()
        _OPEN[id(self)] = self
        try:
            observer.started(request)
        except Exception as error:
            PROCESS.swallow("an observer of the wire", error)

    def chunk(self, data: bytes) -> None:
        """Bytes of the body that have arrived now."""
        self.chunks.append((perf_counter_ns() - self.begun, data))

    @property
    def idle_ns(self) -> int:
        """Since when nothing arrived."""
        return perf_counter_ns() - self.begun - (self.chunks[-1][0] if self.chunks else 0)

    def end(self, how: str, error: BaseException | None = None) -> None:
        """Tell the observer, unless it was told. May be called by the garbage collector; never raises.

        Args:
            how: ``eof``, ``closed``, ``error`` or ``gone``, as in :class:`RecordedResponse`.
        """
        try:
            if _OPEN.pop(id(self), None) is None:
                return
            said = None if error is None else {"type": type(error).__name__, "message": _message(error)}
            self._observer.ended(self.exchange(how, said))
        except Exception as trouble:
            if PROCESS is not None:  # the interpreter takes modules apart while finalisers still run
                PROCESS.swallow("an observer of the wire", trouble)

    def exchange(self, how: str, error: dict[str, str] | None = None) -> Exchange:
        """What was asked and has come until now, as an exchange that ended so."""
        response = RecordedResponse(
            self.status,
            tuple(self.headers),
            tuple(self.chunks),
            how,
            error=error,
            decoded=self.decoded,
            origin=self.origin,
        )
        return Exchange(self.request, response, time.time_ns(), answered=self.answered)


def begin(request: ModelRequest, answer: RecordedResponse | None = None) -> Attempt | None:
    """An attempt that is watched; None when nobody does. ``answer``: it is answered with this one."""
    observer = ACTIVE.wire
    return None if observer is None else Attempt(request, observer, answer)


def sweep(idle_seconds: float = 0.0) -> int:
    """End as ``gone`` what nothing was read of for so long: responses that were dropped without close and wait in a
    reference cycle for the garbage collector. What is read later is not recorded. Runs at exit.

    Returns:
        How many were ended.
    """
    swept = 0
    for attempt in _open_attempts():
        if attempt.idle_ns >= idle_seconds * 1e9:
            attempt.end("gone")
            swept += 1
    return swept


def under_way() -> list[Exchange]:
    """What has come of exchanges whose end was not told yet, as ``gone``; they go on, and their ends are told as ever."""
    return [attempt.exchange("gone") for attempt in _open_attempts()]


def _open_attempts() -> list[Attempt]:
    for _ in range(100):
        try:
            return list(_OPEN.values())
        except RuntimeError:  # another thread added one
            continue
    return []


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


atexit.register(sweep)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN.clear)  # the parent tells of its own


def raised(error: Any, known: Callable[[str], Any], fallback: type[BaseException]) -> BaseException:
    """A recorded transport error as an exception again.

    Args:
        error: ``{type, message}``.
        known: gives what the library has under a name, or None.
        fallback: the class to take when nothing of that name can be raised.
    """
    error = error or {}
    name, message = str(error.get("type", "")).rpartition(".")[2], str(error.get("message", ""))
    for found in (known(name), _builtin(name)):
        if isinstance(found, type) and issubclass(found, BaseException):
            for before in ((), (None,), (None, None)):  # some take what they happened to before the message
                try:
                    error_again = found(*before, message)
                except Exception:
                    continue
                error_again.args = (message,)
                return error_again
    return fallback(message)


def _builtin(name: str) -> Any:
    import asyncio
    import builtins

    if name == "CancelledError":
        return asyncio.CancelledError
    found = getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None

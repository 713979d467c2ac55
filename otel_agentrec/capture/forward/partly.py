"""What an OTLP receiver says of a batch that it took: how many of the things in it it did not (``partial_success``).

The SDK's exporters call such a batch a success and don't look at the answer. So it is heard where it comes in: by a hook of
the session of ``requests``, or around the call of gRPC. An exporter in which neither is found is left as it is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["Partly", "listened_to", "partly_taken"]

Json = Any
E = TypeVar("E")
_SESSIONS = (("_client", "_transport", "_session"), ("_session",))
_REJECTED = ("rejectedSpans", "rejectedLogRecords", "rejected_spans", "rejected_log_records")
MOST = 1 << 20
"""Bytes of an answer that is looked at."""


@dataclass(slots=True)
class Partly:
    """How many were rejected, and why, as the receiver says it."""

    rejected: int = 0
    why: str = ""


class _Listening(threading.local):
    """The exporters answer on the thread that calls them."""

    heard: Partly | None = None


_listening = _Listening()


@contextmanager
def partly_taken() -> Iterator[Partly]:
    """What the answers that come on this thread meanwhile say."""
    outer, heard = _listening.heard, Partly()
    _listening.heard = heard
    try:
        yield heard
    finally:
        _listening.heard = outer


def listened_to(exporter: E) -> E:
    """The exporter itself, whose answers are heard from now on."""
    stub = getattr(exporter, "_stub", None)
    if callable(stub) and getattr(exporter, "_client", None) is not None and not isinstance(stub, _Stub):
        exporter._stub = _Stub(stub)  # type: ignore[attr-defined]  # makes the client after a lost connection
        exporter._client = _Client(exporter._client)  # type: ignore[attr-defined]
        return exporter
    for path in _SESSIONS:
        session: Any = exporter
        for name in path:
            session = getattr(session, name, None)
        hooks = getattr(session, "hooks", None)
        answers = hooks.get("response") if isinstance(hooks, dict) else None
        if isinstance(answers, list) and _http_answered not in answers:
            answers.append(_http_answered)
    return exporter


class _Stub:
    """Makes clients whose answers are heard."""

    def __init__(self, stub: Callable[[Any], Any]) -> None:
        self._stub = stub

    def __call__(self, channel: Any) -> _Client:
        return _Client(self._stub(channel))


class _Client:
    def __init__(self, client: Any) -> None:
        self._client = client

    def Export(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._client.Export(*args, **kwargs)
        if _listening.heard is not None:
            _hear(getattr(answer, "partial_success", None))
        return answer


def _http_answered(response: Any, *args: Any, **kwargs: Any) -> None:
    if _listening.heard is None or not 200 <= response.status_code < 300:
        return
    data = response.content  # may raise, as it would where the exporter's session reads it after us
    try:
        if not data or len(data) > MOST:
            return
        if "json" in response.headers.get("content-type", ""):
            _hear_json(json.loads(data))
        else:  # the answers for spans and for log records number their fields alike
            from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

            _hear(ExportTraceServiceResponse.FromString(data).partial_success)
    except Exception:  # no answer of OTLP: of a proxy, say
        pass


def _hear(told: Any) -> None:
    counts = (getattr(told, name, 0) for name in _REJECTED)
    _add(next((int(n) for n in counts if n), 0), getattr(told, "error_message", ""))


def _hear_json(document: Json) -> None:
    told = document.get("partialSuccess") or document.get("partial_success") or {}
    _add(next((int(told[name]) for name in _REJECTED if told.get(name)), 0), told.get("errorMessage") or "")


def _add(rejected: int, why: object) -> None:
    heard = _listening.heard
    if heard is not None and rejected > 0:  # 0 with a message is a warning
        heard.rejected += rejected
        heard.why = f"the receiver rejected some: {' '.join(str(why).split())[:300] or 'it does not say why'}"

"""A model call as it stood on the wire: what interception points tell, and what a recording gives back of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Exchange", "ModelRequest", "RecordedResponse", "SpanRef"]


@dataclass(frozen=True, slots=True)
class SpanRef:
    """A span by its ids (lower hex), as it was current when a call began."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A model call that is about to leave.

    ``path`` without host and query; ``query`` the names of the query's parameters; ``headers`` lower-case, only those
    of the allow-list; ``body`` the bytes as the client sends them; ``api`` the kind of endpoint (``openai.chat`` …, see
    ``intercept/endpoints.py``); ``library`` the HTTP library; ``span`` the current span; ``traceparent`` as it stands on
    the request.
    """

    method: str
    host: str
    path: str
    query: tuple[str, ...]
    headers: Mapping[str, str]
    body: bytes
    api: str
    library: str
    started_ns: int
    """Wall clock, ns since the epoch."""
    span: SpanRef | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedResponse:
    """A provider's answer as it stood on the wire.

    ``chunks``: (ns since the request left, bytes) in order of arrival; encoded as ``content-encoding`` says, unless
    ``decoded``. ``error``: ``{type, message}`` of what the client's transport raised; with no ``status`` nothing came at
    all. ``end``: ``eof``, ``closed`` (the client stopped reading), ``error``, or ``gone`` (dropped unread).
    """

    status: int | None
    headers: Sequence[tuple[str, str]] = ()
    chunks: Sequence[tuple[int, bytes]] = ()
    end: str = "eof"
    error: Mapping[str, str] | None = None
    decoded: bool = False
    origin: Mapping[str, Any] | None = None
    """Of an answer from a recording: where it stands there, ``{run, wireId, stream, seq, span?}``."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One attempt of a model call: what was asked, what came. ``answered``: it came from an answerer, nothing real happened."""

    request: ModelRequest
    response: RecordedResponse
    ended_ns: int
    answered: bool = False

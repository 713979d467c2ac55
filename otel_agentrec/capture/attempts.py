"""Attempts below a model call: what the HTTP client spans under it tell of retries.

An SDK's retry loop usually runs inside one model span; the failed attempts show only as HTTP client spans below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from otel_agentrec.capture.spans import CLIENT, ERROR, SpanView

__all__ = ["MAX_VIA", "Attempt", "Attempts", "attempt_of", "summarise"]

MAX_VIA = 128
"""So many span ids of foreign client spans are named in one event."""


class Attempt(NamedTuple):
    """One HTTP client span. ``target`` is method and URL, as far as known; ``status_code`` is None when none came back."""

    span_id: str
    start_ns: int
    target: str
    status_code: int | None
    error_type: str | None
    failed: bool
    resent: int


class Attempts(NamedTuple):
    """``retries``: ``[{statusCode?, errorType?}]`` of the failed attempts before the last; ``via``: span ids in time order."""

    retries: list[dict[str, Any]]
    retry_count: int
    via: list[str]


def attempt_of(span: SpanView) -> Attempt | None:
    """The attempt that a span describes, or None when it is no HTTP client span."""
    attributes = span.attributes
    if span.kind != CLIENT:
        return None
    method = attributes.get("http.request.method") or attributes.get("http.method")
    if not isinstance(method, str):
        return None
    code = attributes.get("http.response.status_code", attributes.get("http.status_code"))
    status = code if isinstance(code, int) and not isinstance(code, bool) else None
    url = attributes.get("url.full") or attributes.get("http.url") or attributes.get("server.address") or ""
    error = attributes.get("error.type")
    resent = attributes.get("http.request.resend_count")
    return Attempt(
        span_id=span.span_id,
        start_ns=span.start_ns,
        target=f"{method} {url}",
        status_code=status,
        error_type=error if isinstance(error, str) else None,
        failed=span.status_code == ERROR or (status is not None and status >= 400),
        resent=resent if isinstance(resent, int) and not isinstance(resent, bool) and resent > 0 else 0,
    )


def summarise(attempts: Iterable[Attempt]) -> Attempts:
    """What the attempts below one call say of retries. The same span counts once; other targets are no attempts."""
    known = sorted({a.span_id: a for a in attempts}.values(), key=lambda a: (a.start_ns, a.span_id))
    if not known:
        return Attempts([], 0, [])
    last = known[-1]
    retries: list[dict[str, Any]] = []
    for attempt in known[:-1]:
        if attempt.failed and attempt.target == last.target:
            told = {"statusCode": attempt.status_code, "errorType": attempt.error_type}
            retries.append({key: value for key, value in told.items() if value is not None})
    return Attempts(retries, max(len(retries), last.resent), [a.span_id for a in known[:MAX_VIA]])

"""What an HTTP status that a client raised tells of the request: whether the server can have done it, all the same.

By RFC 9110 a server that answers knows what it did, so its error is the outcome: 4xx and 500 did not do it, 408 (15.5.9) never
had the whole request, and 503 (15.6.4) is "unable to handle the request". But a gateway answers for a server that it may have
handed the request to: 502 (15.6.3, an invalid response came from there) and 504 (15.6.5, none came in time) tell nothing of
what was done there. Nor do the statuses that proxies have made up for the same: 499 (the client was gone: nginx), 520, 522 and
524 (no answer, or no sensible one: Cloudflare).

A request by a safe method (9.2.1) asks for nothing to be done, so nothing is in doubt.
"""

from __future__ import annotations

from typing import Any

__all__ = ["status_tells"]

_IN_DOUBT = frozenset({499, 502, 504, 520, 522, 524})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def status_tells(error: BaseException) -> bool | None:
    """True: nobody knows what came of the request; None: the error tells no status, or one that leaves no doubt."""
    return True if _status(error) in _IN_DOUBT and _method(error) not in _SAFE else None


def _status(error: BaseException) -> int | None:
    """As httpx, requests, aiohttp, urllib, botocore, google and the SDKs of models hold it."""
    response = getattr(error, "response", None)
    told: list[Any] = [getattr(error, name, None) for name in ("status_code", "status", "code", "http_status")]
    if isinstance(response, dict):  # botocore
        meta = response.get("ResponseMetadata")
        told.append(meta.get("HTTPStatusCode") if isinstance(meta, dict) else None)
    elif response is not None:
        told += [getattr(response, "status_code", None), getattr(response, "status", None)]
    return next((int(one) for one in told if isinstance(one, int) and 100 <= one < 600), None)


def _method(error: BaseException) -> str | None:
    response = getattr(error, "response", None)
    for holder in (error, response):
        for name in ("request", "request_info"):
            try:
                method = getattr(getattr(holder, name, None), "method", None)
            except Exception:  # httpx raises where there is no request
                continue
            if isinstance(method, str):
                return method.upper()
    return None

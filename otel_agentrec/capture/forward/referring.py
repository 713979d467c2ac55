"""A span that is too large for the way: sent without its large values, which are in the recording.

The stamp says where. A value is never cut in the middle: half of a JSON text or of an image in base64 is worth nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan

from otel_agentrec.capture.forward.stamped import StampedSpan, said_by

__all__ = ["LARGE", "OMITTED", "references_only"]

OMITTED = "agentrec.omitted"
"""Attribute of a span or span event: JSON ``{name: {"bytes": …, "sha256": …}}`` of what it lacks, each of a value's UTF-8."""
LARGE = 4096
"""Bytes from which a value is large."""


def references_only(span: ReadableSpan) -> ReadableSpan | None:
    """A copy without the values that are large; None when there is none."""
    attributes = _without_large(span.attributes or {})
    events = [Event(one.name, _without_large(one.attributes or {}), one.timestamp) for one in span.events]
    if OMITTED not in attributes and not any(OMITTED in (one.attributes or {}) for one in events):
        return None
    return StampedSpan(span, lambda: said_by(span, attributes)._replace(events=events))


def _without_large(attributes: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    omitted: dict[str, dict[str, int | str]] = {}
    for name, value in attributes.items():
        data = _bytes(value)
        if len(data) < LARGE:
            kept[name] = value
        else:
            omitted[name] = {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    if omitted:
        kept[OMITTED] = json.dumps(omitted, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return kept


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, (list, tuple, Mapping)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode(
            "utf-8", "surrogatepass"
        )
    return b""

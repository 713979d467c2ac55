"""Spans of frameworks made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from otel_agentrec.capture.dialects import read
from otel_agentrec.capture.spans import SpanEvent, SpanView
from otel_agentrec.journal.facts import Facts

HI = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
HELLO = {"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}
THROWN = SpanEvent("exception", 1, {"exception.type": "ValueError", "exception.message": "no ✗"})


def text(value: Any) -> str:
    return json.dumps(value)


def span(scope: str, attributes: Mapping[str, Any], **fields: Any) -> SpanView:
    """An ended span below another one; ``events`` are SpanEvents."""
    base = SpanView("1" * 32, "2" * 16, "3" * 16, "a span", 1, scope, None, 1, 2)
    return base._replace(attributes=dict(attributes), **fields)


def reading(scope: str, attributes: Mapping[str, Any], **fields: Any) -> tuple[str, Facts]:
    found = read(span(scope, attributes, **fields))
    assert found is not None
    return found

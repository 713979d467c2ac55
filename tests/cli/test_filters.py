"""Which records --run, --session, --type, --model, --tool, --status, --since and --grep let through."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import click
import pytest

from otel_agentrec.cli.command import Since
from otel_agentrec.cli.filters import Filter, pattern, texts
from otel_agentrec.errors import UsageError
from otel_agentrec.records import NodeIoRecord, NodeType

MODEL = NodeIoRecord(
    "r1",
    NodeType.MODEL,
    "model@",
    run_id="run-abc",
    session_id="s/1",
    model_id="gpt-5",
    response_model="gpt-5-2026",
    started_at_epoch_ms=1000,
    inputs={"messages": [{"role": "user", "parts": [{"type": "text", "content": "Refund 42 please"}]}]},
    output_text="Done.",
)
TOOL = NodeIoRecord(
    "r2", NodeType.TOOL, "tool@", tool_name="search", status="error", error={"type": "Timeout", "message": "too slow"}
)


@pytest.mark.parametrize(
    ("wanted", "model", "tool"),
    [
        (Filter(), True, True),
        (Filter(run="run-a"), True, False),
        (Filter(run="abc"), False, False),
        (Filter(session="s/1"), True, False),
        (Filter(session="s/*"), True, False),
        (Filter(node_type="TOOL"), False, True),
        (Filter(model="gpt-5"), True, False),
        (Filter(model="gpt-5-2026"), True, False),
        (Filter(model="gpt-?"), True, False),
        (Filter(model="gpt"), False, False),
        (Filter(tool="search"), False, True),
        (Filter(tool="s*h"), False, True),
        (Filter(status="error"), False, True),
        (Filter(since=1000), True, False),
        (Filter(since=1001), False, False),
        (Filter(grep=pattern("refund")), True, False),
        (Filter(grep=pattern("too slow|done")), True, True),
        (Filter(grep=pattern(r"\b42\b")), True, False),
        (Filter(grep=pattern("messages")), False, False),
        (Filter(node_type="MODEL", grep=pattern("slow")), False, False),
    ],
)
def test_filter(wanted: Filter, model: bool, tool: bool) -> None:
    assert (wanted.fits(MODEL), wanted.fits(TOOL)) == (model, tool)


def test_texts_reach_everything_without_recursion() -> None:
    deep: object = "bottom"
    for _ in range(5000):
        deep = [deep]
    assert list(texts(NodeIoRecord("r", NodeType.TOOL, "n", outputs=deep))) == ["bottom"]


def test_a_pattern_that_is_none_says_so() -> None:
    with pytest.raises(UsageError, match="no regular expression"):
        pattern("(")


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600), ("2h", 7200), ("3d", 259200), ("90s", 90), ("1.5h", 5400), ("1w", 604800)]
)
def test_since_as_a_span(text: str, seconds: int) -> None:
    assert abs(Since().convert(text, None, None) - (time.time() - seconds) * 1000) < 5000


def test_since_as_a_moment() -> None:
    utc = datetime(2026, 1, 31, 12, 30, tzinfo=timezone.utc)
    assert Since().convert("2026-01-31T12:30:00Z", None, None) == utc.timestamp() * 1000
    assert Since().convert("2026-01-31T13:30+01:00", None, None) == utc.timestamp() * 1000
    assert Since().convert("2026-01-31", None, None) == datetime(2026, 1, 31).timestamp() * 1000


@pytest.mark.parametrize("text", ["", "yesterday", "10", "m", "-5m", "2026-13-01", "999999999d", "0001-01-01"])
def test_since_refuses_what_is_no_time(text: str) -> None:
    with pytest.raises(click.UsageError, match="is no time"):
        Since().convert(text, None, None)

"""What is read out of messages."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.nodes.text import responses_in

from .telling import answer, asks, text


def call(*ids: str | None) -> dict[str, Any]:
    return asks(*((i, "f", {}) for i in ids))["outputMessages"][0]


def result(call_id: Any, value: str) -> dict[str, Any]:
    return answer(call_id, value)


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([call("a", "b"), result("b", "B"), result("a", "A")], [("b", "B"), ("a", "A")]),
        ([call("a", "b"), result(None, "A"), result(None, "B")], [("a", "A"), ("b", "B")]),
        ([call("item-a"), call("item-b"), result("a", "A"), result("b", "B")], [("item-a", "A"), ("item-b", "B")]),
        ([call("a", "b"), result("b", "B"), result(None, "A")], [("b", "B"), ("a", "A")]),
        ([call("a"), result(None, "A"), call("b"), text("user", "?"), result(None, "B")], [("a", "A"), ("b", "B")]),
        ([call("a", "b"), result("x", "X")], [("x", "X")]),
        ([call("a", "b"), result(None, "?")], []),
        ([result("x", "X")], [("x", "X")]),
        ([call(None), result(None, "?")], []),
        ([call("a"), result(["odd"], "A")], [("a", "A")]),
        ("no list", []),
    ],
)
def test_results_of_tool_calls(messages: Any, found: list[tuple[str, str]]) -> None:
    assert responses_in(messages) == found

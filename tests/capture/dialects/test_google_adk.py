"""Google's ADK: what is particular to its telemetry."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects import google_adk


def text(*parts: str) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "text", "content": part} for part in parts]}


CALL = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": "{}"}]}


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([text("It "), text("rains."), text("It rains.")], [text("It rains.")]),
        ([text("It "), text("rains."), text("It ", "rains.")], [text("It ", "rains.")]),
        ([text("It rains."), text("It rains.")], [text("It rains."), text("It rains.")]),
        ([text("It "), CALL, text("It ")], [text("It "), CALL, text("It ")]),
        ([CALL, CALL, CALL], [CALL]),
        ([text("one"), text("two"), text("three")], [text("one"), text("two"), text("three")]),
    ],
)
def test_a_streamed_answer_is_told_once(told: list[Any], kept: list[Any]) -> None:
    assert google_adk._without_pieces(told) == kept

"""Lines of Ollama's ``/api/chat`` and ``/api/generate`` -> the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otel_agentrec.nodes.answers.deltas import add_delta

__all__ = ["merge"]

Json = Any


def merge(lines: Sequence[dict[str, Json]]) -> tuple[dict[str, Json], bool]:
    """-> (the answer, whether its last line says that it is done)."""
    whole: dict[str, Json] = {}
    for line in lines:
        message, response = line.get("message"), line.get("response")
        if isinstance(message, dict):
            add_delta(whole.setdefault("message", {}), message)
        if isinstance(response, str):
            whole["response"] = whole.get("response", "") + response
        whole.update({key: value for key, value in line.items() if key not in ("message", "response")})
    return whole, whole.get("done") is True

"""The session that only a span of the program's own tells is that of the steps below it, live and from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import ingest, read_nodes
from tests.capture.otlp_files import agent, chat, pairs, span
from tests.capture.replaying import replay

Json = Any
LATE = {"startTimeUnixNano": "0", "endTimeUnixNano": "99000000"}


def around(number: int, attributes: dict[str, Any], parent: int = 0) -> Json:
    return span(number, "POST /ask", attributes, parent, **LATE)


def wide(step: Json, **attributes: Any) -> Json:
    return {**step, "endTimeUnixNano": "98000000", "attributes": [*step["attributes"], *pairs(attributes)]}


def sessions(tmp_path: Path, *groups: tuple[str, list[Json]]) -> tuple[list[str | None], list[str | None]]:
    """Those of the calls, as live capture and as ``ingest`` tell them."""
    scopes = [{"scope": {"name": scope}, "spans": spans} for scope, spans in groups]
    file = tmp_path / "spans.jsonl"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": scopes}]}))
    replay([file], tmp_path / "live")
    ingest([file], tmp_path / "ingested")
    live, ingested = ([r.session_id for r in read_nodes(tmp_path / name)] for name in ("live", "ingested"))
    return live, ingested


@pytest.mark.parametrize("key", ["gen_ai.conversation.id", "session.id", "shop.chat"])
def test_a_handler_names_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_SESSION_ATTRIBUTE", "shop.chat")
    steps = [wide(agent(2, 1)), chat(3, 2), chat(4, 1)]
    assert sessions(tmp_path, ("shop", [around(1, {key: "s1"})]), ("genai", steps)) == (["s1", "s1"], ["s1", "s1"])


def test_the_nearest_span_that_tells_one_counts(tmp_path: Path) -> None:
    handlers = [around(1, {"session.id": "far"}), around(2, {"session.id": "near"}, 1)]
    steps = [chat(3, 2), wide(agent(4, 2), **{"gen_ai.conversation.id": "own"}), chat(5, 4), chat(6, 1)]
    told = ["near", "own", "far"]
    assert sessions(tmp_path, ("shop", handlers), ("genai", steps)) == (told, told)


def test_spans_of_libraries_tell_none(tmp_path: Path) -> None:
    handler = [around(1, {"session.id": "of a browser"})]
    assert sessions(tmp_path, ("opentelemetry.instrumentation.fastapi", handler), ("genai", [chat(2, 1)])) == (
        [None],
        [None],
    )

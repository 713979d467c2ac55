"""A small recording that the commands are tried on: two runs, three model calls, two tool calls, one of them failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_agentrec.capture.ingest import ingest

BEGIN = 1_700_000_000
OLD, NEW = "aa" * 16, "bb" * 16
"""Trace ids: a run of an agent, and a later one of a bare model call."""


def span(
    trace: str, name: str, at: float, took: float, number: int, parent: int = 0, **facts: object
) -> dict[str, object]:
    """One OTLP/JSON span; times in seconds after BEGIN; ``facts`` are attributes, ``_`` for the dots; ``fails``: a message."""
    fails = facts.pop("fails", None)
    attributes = [
        {"key": key.replace("__", "."), "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for key, v in facts.items()
    ]
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent else {}),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(int((BEGIN + at) * 1e9)),
        "endTimeUnixNano": str(int((BEGIN + at + took) * 1e9)),
        "attributes": attributes,
        "status": {"code": 2, "message": fails} if fails else {},
    }


def message(role: str, *parts: dict[str, object]) -> str:
    return json.dumps([{"role": role, "parts": list(parts)}])


def text(content: str) -> dict[str, object]:
    return {"type": "text", "content": content}


def model(
    trace: str, at: float, took: float, number: int, parent: int, asked: str, said: str, name: str
) -> dict[str, object]:
    return span(
        trace, f"chat {name}", at, took, number, parent,
        gen_ai__operation__name="chat", gen_ai__request__model=name, gen_ai__provider__name="openai",
        gen_ai__input__messages=asked, gen_ai__output__messages=said,
        gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=7,
    )  # fmt: skip


def tool(
    at: float, took: float, number: int, name: str, call_id: str, arguments: str, **more: object
) -> dict[str, object]:
    return span(
        OLD, f"execute_tool {name}", at, took, number, 1,
        gen_ai__operation__name="execute_tool", gen_ai__tool__name=name, gen_ai__tool__call__id=call_id,
        gen_ai__tool__call__arguments=arguments, **more,
    )  # fmt: skip


def spans() -> list[dict[str, object]]:
    calls = [
        {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Tromsø"}},
        {"type": "tool_call", "id": "c2", "name": "refund", "arguments": {"order": 42}},
    ]
    return [
        span(OLD, "invoke_agent clerk", 0, 10, 1, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="clerk",
             gen_ai__conversation__id="chat-1"),
        model(OLD, 1, 2, 2, 1, message("user", text("Refund order 42,\nplease")), message("assistant", *calls), "gpt-5"),
        tool(3, 1, 3, "weather", "c1", '{"city": "Tromsø"}', gen_ai__tool__call__result="☔ \x1b[31mred\x1b[0m"),
        tool(3, 2, 4, "refund", "c2", '{"order": 42}', error__type="Timeout", fails="the bank does not answer"),
        model(OLD, 5, 4, 5, 1, message("user", text("x")), message("assistant", text("I could not refund it.")), "gpt-5"),
        model(NEW, 3600, 1, 9, 0, message("user", text("Hi")), message("assistant", text("Hello 🌧")), "gpt-5-mini"),
    ]  # fmt: skip


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the width nor the colours of the terminal that runs the tests."""
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording that no test changes."""
    place = tmp_path_factory.mktemp("recording")
    line = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "test"}, "spans": spans()}]}]}
    (place / "spans.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    ingest(place / "spans.jsonl", place / "rec")
    return place / "rec"


@pytest.fixture
def otlp_file(tmp_path: Path) -> Path:
    line = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "test"}, "spans": spans()}]}]}
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(line) + "\n{not JSON\n", encoding="utf-8")
    return path

"""Long chats through the real SDK and instrumentation: every call reads back as it was sent, and the file does not grow
with the square of the run."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import configure, read_nodes
from otel_agentrec.demo.script import Call, Turn
from otel_agentrec.demo.server import ScriptedServer

openai = pytest.importorskip("openai")
genai = pytest.importorskip("opentelemetry.instrumentation.genai.openai")

Message = dict[str, Any]
WORDS = ["alpha", "beta", "gamma", "delta", "Größe", "天気", "ok", "{json}", '"quoted"', "end."]


def text(rng: random.Random, label: str) -> str:
    return label + " " + " ".join(rng.choices(WORDS, k=rng.randint(180, 700)))


def append(history: list[Message]) -> list[Message]:
    return history


def window(size: int) -> Callable[[list[Message]], list[Message]]:
    return lambda history: history[:1] + history[1:][-size:]


def compaction(history: list[Message]) -> list[Message]:
    """Every 40 messages, all but the newest 8 are replaced by a summary."""
    done = max(0, (len(history) - 8) // 40 * 40)
    summary = [{"role": "user", "content": f"Summary of {done} messages: " + "s" * 900}] if done else []
    return history[:1] + summary + history[max(1, done) :]


def cleared(history: list[Message]) -> list[Message]:
    """Tool results older than the newest 10 messages are blanked."""
    old = len(history) - 10
    return [{**m, "content": "[cleared]"} if m["role"] == "tool" and i < old else m for i, m in enumerate(history)]


@pytest.fixture
def instrumented(otel_globals: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    instrumentor = genai.OpenAIInstrumentor()
    recorder = configure(tmp_path / "rec")
    instrumentor.instrument()
    yield tmp_path / "rec"
    instrumentor.uninstrument()
    recorder.shutdown()


def chat(calls: int, view: Callable[[list[Message]], list[Message]], agents: int = 1, tools: bool = False) -> Any:
    """Run the chat; returns (what the server received, transcript in bytes)."""
    rng = random.Random(7)
    turns = [Turn(text(rng, f"reply {i}")) for i in range(calls)]
    if tools:
        turns = [
            Turn(tool_calls=[Call("search", {"q": f"{i}"}, id=f"call_{i}")]) if i % 2 == 0 else t
            for i, t in enumerate(turns)
        ]
    transcript = 0
    with ScriptedServer(turns) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        histories: list[list[Message]] = [[{"role": "system", "content": f"You are agent {a}."}] for a in range(agents)]
        for i in range(calls):
            history = histories[i % agents]
            if history[-1]["role"] != "tool":
                history.append({"role": "user", "content": text(rng, f"question {i}")})
                transcript += len(json.dumps(history[-1], ensure_ascii=False).encode())
            answer = client.chat.completions.create(model="gpt-5", messages=view(history)).choices[0].message
            history.append(answer.model_dump(exclude_none=True))
            transcript += len(json.dumps(history[-1], ensure_ascii=False).encode())
            for call in answer.tool_calls or []:
                history.append({"role": "tool", "tool_call_id": call.id, "content": text(rng, f"result {i}")})
                transcript += len(json.dumps(history[-1], ensure_ascii=False).encode())
        return [r.body["messages"] for r in server.requests], transcript


def parts(message: Message) -> Message:
    """A message of the chat API in the schema of the GenAI conventions."""
    if message["role"] == "tool":
        found = [{"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}]
    else:
        found = [{"type": "text", "content": message["content"]}] if message.get("content") else []
        for call in message.get("tool_calls") or []:
            function = call["function"]
            found.append(
                {
                    "type": "tool_call",
                    "id": call["id"],
                    "name": function["name"],
                    "arguments": json.loads(function["arguments"]),
                }
            )
    return {"role": message["role"], "parts": found}


def size(recording: Path) -> int:
    return sum(p.stat().st_size for p in recording.rglob("*.jsonl"))


BEHAVIOURS: dict[str, dict[str, Any]] = {
    "append": {"view": append},
    "window of 20": {"view": window(20)},
    "window of 100": {"view": window(100)},
    "compaction": {"view": compaction},
    "cleared tool results": {"view": cleared, "tools": True},
    "two interleaved agents": {"view": append, "agents": 2},
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("calls", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_a_long_chat_reads_back_and_stays_linear(instrumented: Path, behaviour: str, calls: int) -> None:
    sent, transcript = chat(calls, **BEHAVIOURS[behaviour])
    assert size(instrumented) <= 3 * transcript + 3 * 1024 * calls
    if calls == 400:
        half = size_after(instrumented, calls // 2)
        assert size(instrumented) / half <= 2.2
    records = list(read_nodes(instrumented))
    models = [r for r in records if r.node_type.value == "MODEL"]
    assert len(models) == len(sent) == calls
    for record, messages in zip(models, sent, strict=True):
        assert record.inputs["messages"] == [parts(m) for m in messages]
        assert not record.flags


def size_after(recording: Path, calls: int) -> int:
    """Bytes of the recording when the first ``calls`` model calls had been recorded."""
    total = 0
    for path in recording.glob("2*.jsonl"):
        if path.name.endswith(".content.jsonl"):
            continue
        seen = last = 0
        for line in path.read_bytes().splitlines(keepends=True):
            event = json.loads(line)["event"]
            total += len(line)
            last = event["seq"]
            seen += event["type"] == "NODE_RECORDED"
            if seen == calls:
                break
        content = path.with_name(path.stem + ".content.jsonl")
        for line in content.read_bytes().splitlines(keepends=True):
            if json.loads(line)["seq"] > last:
                break
            total += len(line)
    return total

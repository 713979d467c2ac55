"""The wire: bytes on disk of a chat whose calls are recorded as spans and as they stood on the wire, and the time that it
costs the program's own thread."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from opentelemetry import trace

from benchmarks.histories import PER_CALL, Call, Messages, append, window
from benchmarks.spans import model_call, provider

Json = Any
CALLS = 400
ROWS = (
    "bytes append, wire",
    "bytes window 20, wire",
    "bytes append, wire, 400/200 calls",
    "bytes append, wire, streamed",
    "wire µs per call 2 KB",
    "wire µs per call 350 KB",
)


def sent(message: Json) -> Json:
    """A message as a client of OpenAI's chat completions sends it."""
    return {"role": message["role"], "content": "".join(part["content"] for part in message["parts"])}


def answer(reply: Json, number: int, streamed: bool) -> list[bytes]:
    """The chunks of the answer; of a stream one for about four letters."""
    text, ident = sent(reply)["content"], f"chatcmpl-{number:024x}"
    head = {"id": ident, "created": 1_796_000_000 + number, "model": "gpt-5-mini-2026-01-01", "service_tier": "default"}
    if not streamed:
        choice = {"index": 0, "message": {"role": "assistant", "content": text, "refusal": None, "annotations": []}}
        usage = {"prompt_tokens": 812, "completion_tokens": 96, "total_tokens": 908}
        whole = {**head, "object": "chat.completion", "choices": [{**choice, "finish_reason": "stop"}], "usage": usage}
        return [json.dumps(whole).encode()]
    deltas: list[Json] = [{"content": text[at : at + 4]} for at in range(0, len(text), 4)]
    chunks = [
        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": None}]}
        for d in [{"role": "assistant", "content": ""}, *deltas]
    ]
    return [*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n"]


def exchange(observer: Any, body: bytes, chunks: Sequence[bytes], streamed: bool) -> float:
    """One call as an interception point tells it. Returns the seconds that the observer took on this thread."""
    from otel_agentrec.nodes.exchange import Exchange, ModelRequest, RecordedResponse, SpanRef

    context = trace.get_current_span().get_span_context()
    request = ModelRequest(
        method="POST",
        host="api.openai.com",
        path="/v1/chat/completions",
        query=(),
        headers={"content-type": "application/json", "user-agent": "OpenAI/Python 3.57.0"},
        body=body,
        api="openai.chat",
        library="httpx2",
        started_ns=time.time_ns(),
        span=SpanRef(f"{context.trace_id:032x}", f"{context.span_id:016x}"),
    )
    kind = "text/event-stream" if streamed else "application/json"
    headers = (("content-type", kind), ("x-request-id", f"req_{context.span_id:032x}"), ("openai-processing-ms", "812"))
    came = tuple((n * 21_000_000, chunk) for n, chunk in enumerate(chunks))
    begun = time.perf_counter()
    observer.started(request)
    took = time.perf_counter() - begun
    done = Exchange(request, RecordedResponse(200, headers, came), time.time_ns())
    begun = time.perf_counter()
    observer.ended(done)
    return took + time.perf_counter() - begun


def recorded(calls: Iterator[Call], make: Messages, *, streamed: bool = False) -> tuple[int, int]:
    """(bytes of the recording, bytes of the transcript)"""
    from otel_agentrec import AgentRecSpanProcessor

    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch) / "recording"
        processor = AgentRecSpanProcessor(str(where), wire=True)
        tracers = provider(processor)
        for number, (_, messages, reply) in enumerate(calls):
            body = {"model": "gpt-5-mini", "messages": [sent(m) for m in messages], "stream": streamed}
            model_call(
                tracers,
                messages,
                reply,
                within=lambda body=body, reply=reply, number=number: exchange(
                    processor.recorder._wire,
                    json.dumps(body, ensure_ascii=False).encode(),
                    answer(reply, number, streamed),
                    streamed,
                ),
            )
            if number % 16 == 0:
                processor.force_flush()
        processor.shutdown()
        return sum(path.stat().st_size for path in where.glob("*.jsonl")), make.transcript


def cost(size: int, calls: int) -> float:
    """Microseconds that the program's thread spends per call, the median."""
    from otel_agentrec import AgentRecSpanProcessor

    with tempfile.TemporaryDirectory() as scratch:
        processor = AgentRecSpanProcessor(str(Path(scratch) / "recording"), wire=True)
        observer = processor.recorder._wire
        tracer = provider(processor).get_tracer("bench")
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * size}]}).encode()
        took = []
        for number in range(calls):
            with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
                took.append(exchange(observer, body, answer({"role": "a", "parts": []}, number, False), False))
            processor.force_flush()
        processor.shutdown()
        return median(took) * 1e6


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    make = Messages()
    size, transcript = recorded(append(CALLS, make), make)
    yield ROWS[0], (size - CALLS * PER_CALL) / transcript
    make = Messages()
    half, _ = recorded(append(CALLS // 2, make), make)
    yield ROWS[2], size / half
    make = Messages()
    size, transcript = recorded(window(20)(CALLS, make), make)
    yield ROWS[1], (size - CALLS * PER_CALL) / transcript
    make = Messages()
    size, transcript = recorded(append(CALLS, make), make, streamed=True)
    yield ROWS[3], (size - CALLS * PER_CALL) / transcript
    yield ROWS[4], cost(2048, 100 if quick else 400)
    yield ROWS[5], cost(350 << 10, 30 if quick else 100)

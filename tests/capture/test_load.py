"""Many threads and tasks at once: nothing is lost, the chain stays dense, and an event loop is hardly held up."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer

from otel_agentrec import AgentRecSpanProcessor, read_nodes, verify

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(300)]
SECONDS = 30.0
TEXT = '[{"role":"user","parts":[{"type":"text","content":"%s"}]}]'


def provider(recording: Path | None, **settings: str) -> TracerProvider:
    made = TracerProvider(shutdown_on_exit=False)
    if recording is not None:
        made.add_span_processor(AgentRecSpanProcessor(recording, **settings))
    return made


def call(tracer: Tracer, name: str, size: int = 200) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.id": name,
        "gen_ai.input.messages": TEXT % ("x" * size),
    }
    tracer.start_span("chat m", attributes=attributes).end()


@pytest.mark.parametrize("mode", ["written", "deferred"])
def test_threads_and_tasks_lose_nothing(tmp_path: Path, mode: str) -> None:
    recording = tmp_path / "rec"
    tracers = provider(recording, durability=mode, queue="1000000")
    tracer = tracers.get_tracer("demo")
    end = time.monotonic() + SECONDS
    made: list[int] = []

    def thread(k: int) -> None:
        n = 0
        while time.monotonic() < end:
            call(tracer, f"t{k}-{n}")
            n += 1
            time.sleep(0.02)
        made.append(n)

    async def task(k: int) -> None:
        n = 0
        while time.monotonic() < end:
            call(tracer, f"a{k}-{n}")
            n += 1
            await asyncio.sleep(0.5)
        made.append(n)

    async def tasks() -> None:
        await asyncio.gather(*(task(k) for k in range(200)))

    threads = [threading.Thread(target=thread, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    asyncio.run(tasks())
    for t in threads:
        t.join()
    tracers.shutdown()
    assert len(made) == 208 and sum(made) > 5_000
    found = Counter(r.response_id for r in read_nodes(recording))
    assert len(found) == sum(made) and set(found.values()) == {1}
    assert verify(recording).exit_code == 0


def lag(recording: Path | None) -> float:
    """Median seconds by which a loop is late for a 10 ms timer, with 200 agents that each call a model once a second."""
    tracers = provider(recording)
    tracer = tracers.get_tracer("demo")
    late: list[float] = []

    async def main() -> None:
        busy = True

        async def agent(k: int) -> None:
            n = 0
            await asyncio.sleep(k / 200)
            while busy:
                call(tracer, f"{k}-{n}", 2_000)
                sum(range(5_000))  # what a program does besides
                n += 1
                await asyncio.sleep(1.0)

        tasks = [asyncio.create_task(agent(k)) for k in range(200)]
        for _ in range(300):
            start = time.perf_counter()
            await asyncio.sleep(0.01)
            late.append(time.perf_counter() - start - 0.01)
        busy = False
        await asyncio.gather(*tasks)

    asyncio.run(main())
    tracers.shutdown()
    return statistics.median(late)


def test_an_event_loop_is_hardly_held_up(tmp_path: Path) -> None:
    pairs = [(lag(None), lag(tmp_path / str(n))) for n in range(3)]
    assert min(ours / plain for plain, ours in pairs) <= 2.0, pairs


def test_a_record_of_16_mb_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    tracers = provider(tmp_path / "rec")
    tracer = tracers.get_tracer("demo")
    call(tracer, "first")

    async def main() -> float:
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": TEXT % ("x" * (16 << 20))}
        span = tracer.start_span("chat m", attributes={"gen_ai.operation.name": "chat"})
        span.set_attributes(attributes)
        start = time.perf_counter()
        span.end()
        return time.perf_counter() - start

    took = asyncio.run(main())
    tracers.shutdown()
    assert took < 0.05
    assert len(list(read_nodes(tmp_path / "rec"))) == 2

"""The recorder's thread: late revelations are journalled while the span is open, large records don't hold up an event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture import background
from otel_agentrec.capture.background import Background
from otel_agentrec.capture.guard import Counters, Guard, Notices
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from tests.capture.recording import contents, events, types

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
LARGE = {
    **CHAT,
    "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"%s"}]}]' % ("x" * 300_000),
}


class Live:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.processor = AgentRecSpanProcessor(path)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("demo")

    @property
    def thread(self) -> threading.Thread | None:
        return self.processor.recorder._background._thread


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    monkeypatch.setattr(background, "SWEEP_SECONDS", 0.01)
    live = Live(tmp_path / "rec")
    yield live
    live.processor.recorder.shutdown()


def until(condition: object, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.005)


def test_an_open_span_that_tells_late_is_journalled_before_it_ends(live: Live) -> None:
    span = live.tracer.start_span("work")
    assert not live.path.exists()
    span.set_attributes(CHAT)
    until(live.path.exists)
    until(lambda: types(live.path) == ["NODE_STARTED"])
    span.end()
    assert types(live.path) == ["NODE_STARTED", "NODE_RECORDED"]


def test_the_thread_lives_only_while_there_is_something_to_look_for(live: Live) -> None:
    with live.tracer.start_as_current_span("chat m", attributes=CHAT):
        assert live.thread is None
    with live.tracer.start_as_current_span("work"):
        until(lambda: live.thread is not None)
        assert live.thread is not None
        assert live.thread.daemon, "it does not keep the program alive"
    until(lambda: live.thread is None)


def test_a_large_record_on_an_event_loop_is_written_by_the_thread(live: Live) -> None:
    async def main() -> None:
        with live.tracer.start_as_current_span("chat m", attributes=LARGE):
            pass
        with live.tracer.start_as_current_span("chat m", attributes=CHAT):
            pass

    asyncio.run(main())
    with live.tracer.start_as_current_span("chat m", attributes=LARGE):
        pass
    assert live.provider.force_flush()
    assert len(events(live.path, "NODE_RECORDED")) == 3
    assert live.processor.recorder.stats()["deferred"] == 1, "neither the small one nor the one outside the loop"


def test_what_can_change_is_not_deferred(live: Live) -> None:
    tools = [{"name": "t", "parameters": {"a": 1}}]

    async def main() -> None:
        span = live.tracer.start_span("chat m", attributes={**LARGE, "gen_ai.tool.definitions": tools})
        span.end()

    asyncio.run(main())
    assert live.processor.recorder.stats()["deferred"] == 0
    assert len(events(live.path, "NODE_RECORDED")) == 1


def test_shutdown_waits_for_deferred_records(live: Live) -> None:
    async def main() -> None:
        for _ in range(5):
            live.tracer.start_span("chat m", attributes=LARGE).end()
        live.provider.shutdown()

    asyncio.run(main())
    found = [event["type"] for event in events(live.path)]
    assert found.count("NODE_RECORDED") == 5
    assert found[-1] == "STREAM_SEALED"
    assert contents(live.path).count("x" * 300_000) == 1, "an unchanged message is stored once"


class TestTheThread:
    @pytest.fixture
    def thread(self) -> Background:
        return Background(lambda: False, Guard(Counters(), Notices()))

    def test_it_does_what_it_is_given_in_order(self, thread: Background) -> None:
        done: list[int] = []
        for n in range(20):
            assert thread.put(lambda n=n: done.append(n))
        assert thread.drain(10)
        assert done == list(range(20))

    def test_too_much_is_refused(self, thread: Background) -> None:
        hold = threading.Event()
        put = [thread.put(hold.wait) for _ in range(background.MAX_WAITING + 10)]
        assert not put[-1]
        assert not thread.drain(0.1), "it says that it is not done"
        hold.set()
        assert thread.drain(10)

    def test_an_exception_does_not_end_it(self, thread: Background, capsys: pytest.CaptureFixture[str]) -> None:
        done: list[int] = []
        thread.put(lambda: 1 / 0)
        thread.put(lambda: done.append(1))
        assert thread.drain(10)
        assert done == [1]
        assert "ZeroDivisionError" in capsys.readouterr().err

    def test_where_no_thread_can_start_nothing_is_lost(
        self, thread: Background, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(self: threading.Thread) -> None:
            raise RuntimeError("can't create new thread at interpreter shutdown")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert not thread.put(lambda: None), "the caller does it itself"
        thread.wake()
        assert thread.drain(1)

"""@resumable_tool: journalled before it runs, asked on every call, its result what it was."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from otel_agentrec import Recorder, agent_run, configure, read_nodes
from otel_agentrec.errors import LedgerUnavailable, UnknownOutcomeError
from otel_agentrec.intercept.tools.codecs import ResultUnreadable
from otel_agentrec.intercept.unknown import Outcome, UnknownEffect
from otel_agentrec.journal.reader import Recording, read_events
from otel_agentrec.nodes.effects import Effect, read_effects
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.signatures import decoded
from otel_agentrec.resume.tools import resumable_tool


def ledger(where: Path) -> list[Effect]:
    return list(read_effects(Recording(where / "rec")))


def effect_events(where: Path) -> list[str]:
    return [e.type for e in read_events(where / "rec") if e.type.startswith("EFFECT_")]


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Receipt:
    number: int
    at: dt.datetime
    colour: Colour


class RunContext:
    """What a framework injects."""


# --- what is journalled -------------------------------------------------------------------------------------------------


def test_the_intent_is_on_disk_before_the_first_instruction(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        real(fd)
        seen.append(Path(f"/proc/self/fd/{fd}").readlink().name)

    monkeypatch.setattr(os, "fsync", fsync)

    @resumable_tool
    def pay(cents: int) -> str:
        seen.append("first instruction")
        assert effect_events(tmp_path) == ["EFFECT_STARTED"]
        return "paid"

    with agent_run("shop"):
        assert pay(5) == "paid"
        seen.append("returned")
    (stream,) = Recording(tmp_path / "rec").streams()
    files = [stream.content_path.name, stream.path.name]
    began = seen.index("first instruction")
    names = [name for name in seen[:began] if name in files or name == "rec"]
    assert names[-3:] == [*files, "rec"], "content, then the events that name it, then their names"
    assert seen[began + 1 : seen.index("returned")] == files, "EFFECT_DONE before the result is used"


def test_arguments_are_bound_and_what_is_injected_is_left_out(recorder: Recorder, tmp_path: Path) -> None:
    class InjectedState: ...

    @resumable_tool(name="book", leave_out=["session"])
    def book(
        ctx: Any, wrapper: RunContext, hotel: str, nights: int = 2, *guests: str, session: Any = None,
        state: Annotated[int, InjectedState()] = 1, **more: Any,
    ) -> None: ...  # fmt: skip

    with agent_run("trip"):
        book(object(), RunContext(), "Ritz", session=object(), late=True)
    (effect,) = ledger(tmp_path)
    assert effect.arguments == {"hotel": "Ritz", "nights": 2, "guests": [], "late": True}
    assert (effect.name, effect.state, effect.output, effect.lane) == ("book", "done", None, "trip")


def test_a_tool_span_is_made_unless_there_is_one(recorder: Recorder, tmp_path: Path) -> None:
    @resumable_tool
    def look(q: str) -> str:
        return q.upper()

    with agent_run("a") as run, run.step() as step:
        with step.tool_call("look", {"q": "x"}, call_id="c1") as call:
            call.result(look("x"))
        look("y")
    records = list(read_nodes(tmp_path / "rec"))
    told = [(r.tool_call_id, r.inputs["arguments"], r.outputs) for r in records]
    assert told == [("c1", {"q": "x"}, "X"), (None, {"q": "y"}, "Y")]
    assert [e.call_id for e in ledger(tmp_path)] == ["c1", None]
    assert [e.span[1] for e in ledger(tmp_path) if e.span] == [r.span_id for r in records]


def test_a_tool_inside_a_tool_of_the_same_name_is_another_call(recorder: Recorder, tmp_path: Path) -> None:
    @resumable_tool
    def down(n: int) -> int:
        return n if n == 0 else down(n - 1)

    with agent_run("a"):
        assert down(2) == 0
    assert sorted(e.arguments["n"] for e in ledger(tmp_path)) == [0, 1, 2]
    assert len({e.span for e in ledger(tmp_path)}) == 3


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        "text",
        [1, {"a": None}],
        Receipt(7, dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc), Colour.RED),
        (1, 2),
    ],
)
def test_results_are_kept_as_they_are(recorder: Recorder, tmp_path: Path, value: Any) -> None:
    @resumable_tool
    def give() -> Any:
        return value

    with agent_run("a"):
        assert give() == value
    (effect,) = ledger(tmp_path)
    assert (effect.state, effect.lost) == ("done", None)


@pytest.mark.parametrize("text", ["2026-01-02T00:00:00+00:00", "2026-01-02T00:00:00Z"])
def test_a_time_in_json_comes_back_as_the_tool_says(text: str) -> None:
    receipt = Receipt(7, dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc), Colour.RED)
    assert decoded(Receipt, {"number": 7, "at": text, "colour": Colour.RED.value}) == receipt


def test_a_result_that_can_not_be_kept_is_refused_when_it_is_recorded(recorder: Recorder, tmp_path: Path) -> None:
    @resumable_tool
    def opened() -> Any:
        return object()

    with agent_run("a"), pytest.raises(ResultUnreadable, match="opened gave what can't be kept"):
        opened()
    (effect,) = ledger(tmp_path)
    assert (effect.state, effect.lost) == ("done", "not kept")


# --- three outcomes -----------------------------------------------------------------------------------------------------


def test_a_failed_call_may_be_made_again(recorder: Recorder, tmp_path: Path) -> None:
    tries: list[int] = []

    @resumable_tool
    def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise KeyError("full")
        return "ok"

    with agent_run("a"):
        with pytest.raises(KeyError):
            flaky()
        assert flaky() == "ok"
    assert [e.state for e in ledger(tmp_path)] == ["failed", "done"]


@pytest.mark.parametrize("error", [TimeoutError("slow"), ConnectionResetError("gone"), KeyboardInterrupt()])
def test_what_was_cut_off_is_unknown_and_not_run_again(
    recorder: Recorder, tmp_path: Path, error: BaseException
) -> None:
    runs: list[int] = []

    @resumable_tool
    def pay(cents: int) -> str:
        runs.append(cents)
        raise error

    with agent_run("a"):
        with pytest.raises(type(error)):
            pay(5)
        with pytest.raises(UnknownOutcomeError, match=r'pay\({"cents": 5}\) was begun at'):
            pay(5)
        with pytest.raises(UnknownOutcomeError, match="cents"):
            pay(6)
    assert runs == [5], "the run is stopped for good"
    assert effect_events(tmp_path) == ["EFFECT_STARTED"]
    recorder.shutdown()
    assert [e.state for e in ledger(tmp_path)] == ["unknown"]


def test_a_connection_that_was_refused_has_failed(recorder: Recorder, tmp_path: Path) -> None:
    @resumable_tool
    def pay() -> None:
        raise ConnectionRefusedError("nobody there")

    with agent_run("a"), pytest.raises(ConnectionRefusedError):
        pay()
    assert [e.state for e in ledger(tmp_path)] == ["failed"]


def test_what_only_reads_is_read_again(recorder: Recorder) -> None:
    tries: list[int] = []

    @resumable_tool(effect=False)
    def read() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise TimeoutError
        return "ok"

    with agent_run("a"):
        with pytest.raises(TimeoutError):
            read()
        assert read() == "ok"


def test_reconcile_settles_it(recorder: Recorder, tmp_path: Path) -> None:
    asked: list[UnknownEffect] = []

    def find(effect: UnknownEffect) -> Outcome:
        asked.append(effect)
        return Outcome.done("paid before")

    @resumable_tool(reconcile=find)
    def pay(cents: int) -> str:
        raise TimeoutError

    with agent_run("a"):
        with pytest.raises(TimeoutError):
            pay(5)
        assert pay(5) == "paid before"
    assert [(e.name, e.arguments) for e in asked] == [("pay", {"cents": 5})]
    (effect,) = ledger(tmp_path)
    assert (effect.state, effect.resolved and effect.resolved["by"]) == ("done", "reconcile")


def test_an_idempotency_key_is_made_once_and_used_again(recorder: Recorder, tmp_path: Path) -> None:
    keys: list[str] = []

    @resumable_tool(idempotency_key="key")
    def pay(cents: int, key: str = "") -> str:
        keys.append(key)
        if len(keys) == 1:
            raise TimeoutError
        return "ok"

    with agent_run("a"):
        with pytest.raises(TimeoutError):
            pay(5)
        assert pay(5) == "ok"
        assert pay(5) == "ok"
    assert keys[0] == keys[1] != keys[2]
    effects = ledger(tmp_path)
    assert [e.state for e in effects] == ["done", "done"]
    assert [e.idempotency_key for e in effects] == [keys[0], keys[2]]


# --- the other forms ----------------------------------------------------------------------------------------------------


def test_async_tools_and_both_kinds_of_generators(recorder: Recorder, tmp_path: Path) -> None:
    @resumable_tool
    async def task(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    @resumable_tool
    async def stream(x: int) -> AsyncIterator[int]:
        for i in range(x):
            yield i

    @resumable_tool
    def items(x: int) -> Iterator[int]:
        yield from range(x)

    async def main() -> None:
        async with agent_run("a"):
            assert await task(1) == 2
            assert [x async for x in stream(3)] == [0, 1, 2]
            assert list(items(2)) == [0, 1]

    asyncio.run(main())
    assert {e.name: e.output for e in ledger(tmp_path)} == {"task": 2, "stream": [0, 1, 2], "items": [0, 1]}


def test_a_cancelled_task_is_unknown(recorder: Recorder, tmp_path: Path) -> None:
    @resumable_tool
    async def slow() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        async with agent_run("a"):
            with pytest.raises((TimeoutError, asyncio.TimeoutError)):
                await asyncio.wait_for(slow(), 0.05)
            with pytest.raises(UnknownOutcomeError, match="CancelledError"):
                await slow()

    asyncio.run(main())
    recorder.shutdown()
    assert [e.state for e in ledger(tmp_path)] == ["unknown"]


def test_siblings_are_not_cut_inside_their_window(recorder: Recorder, tmp_path: Path) -> None:
    ended: list[str] = []

    @resumable_tool
    async def pay(order: str) -> str:
        if order == "lost":
            raise TimeoutError
        await asyncio.sleep(0.2)
        ended.append(order)
        return order

    async def main() -> None:
        async with agent_run("a"):
            with pytest.raises(TimeoutError):
                await pay("lost")
            tasks = [asyncio.ensure_future(pay("beside")), asyncio.ensure_future(again())]
            _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in pending:  # as a TaskGroup does
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(tasks[1].exception(), UnknownOutcomeError)

    async def again() -> None:
        await asyncio.sleep(0.05)
        await pay("lost")

    asyncio.run(main())
    assert ended == ["beside"]
    assert {e.arguments["order"]: e.state for e in ledger(tmp_path)} == {"lost": "running", "beside": "done"}


# --- the ledger is not there --------------------------------------------------------------------------------------------


def test_nothing_records(monkeypatch: pytest.MonkeyPatch) -> None:
    @resumable_tool
    def pay() -> str:
        return "paid"

    @resumable_tool(effect=False)
    def read() -> str:
        return "read"

    assert read() == "read"
    with pytest.raises(LedgerUnavailable, match="pay has an effect, and nothing records it"):
        pay()
    monkeypatch.setenv("OTEL_AGENTREC_ENABLED", "false")
    assert pay() == "paid"


def test_a_closed_recording(tmp_path: Path) -> None:
    @resumable_tool
    def pay() -> str:
        raise AssertionError("must not run")

    configure(tmp_path / "rec").shutdown()
    with pytest.raises(LedgerUnavailable):
        pay()


def test_a_full_disk(recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    runs: list[int] = []

    @resumable_tool
    def pay(cents: int) -> str:
        runs.append(cents)
        return "paid"

    with agent_run("a"):
        assert pay(1) == "paid"

        def full(fd: int, data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr("otel_agentrec.journal.named.os.write", full)
            with pytest.raises(LedgerUnavailable, match="No space left"):
                pay(2)
        with pytest.raises(LedgerUnavailable, match="No space left"):
            pay(3)
    assert runs == [1]


def test_a_sync_that_fails_is_no_intent_and_no_unknown_effect(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    @resumable_tool
    def pay(cents: int) -> str:
        assert cents == 1
        return "paid"

    def fails(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with agent_run("a"), monkeypatch.context() as patch:
        pay(1)
        patch.setattr("otel_agentrec.journal.sync.os.fsync", fails)
        with pytest.raises(LedgerUnavailable, match="Input/output error"):
            pay(2)
    recorder.shutdown()
    assert [e.state for e in ledger(tmp_path)] == ["done", "not_begun"]


@pytest.mark.parametrize("durability", ["deferred", "written", "fsync"])
def test_what_came_before_is_on_disk_too(tmp_path: Path, durability: str) -> None:
    @resumable_tool
    def pay() -> list[str]:
        return [e.type for e in read_events(tmp_path / "rec")]

    with configure(tmp_path / "rec", durability=durability), agent_run("a") as run, run.step() as step:
        with step.model_call("pay", model="m") as call:
            call.response("pay()")
        assert [t for t in pay() if t in ("RUN_STARTED", "NODE_RECORDED", "EFFECT_STARTED")] == [
            "RUN_STARTED",
            "NODE_RECORDED",
            "EFFECT_STARTED",
        ]


# --- with a cache -------------------------------------------------------------------------------------------------------


def test_three_equal_calls_are_one_effect_and_a_changed_argument_is_another(recorder: Recorder, tmp_path: Path) -> None:
    cache, runs = ResumeCache(), []

    @resumable_tool(cache=cache)
    def pay(cents: int) -> Receipt | None:
        runs.append(cents)
        return None if cents == 6 else Receipt(cents, dt.datetime(2026, 1, 2), Colour.RED)

    with agent_run("a"):
        assert pay(5) == pay(5) == pay(cents=5)
        assert pay(6) is pay(6) is None
    assert runs == [5, 6]
    assert [e.state for e in ledger(tmp_path)] == ["done", "done"]
    assert (cache.tool_hits, cache.tool_misses) == (3, 2)


def test_a_cache_is_enough_without_a_recorder() -> None:
    runs: list[int] = []

    @resumable_tool(cache=ResumeCache())
    def pay(cents: int) -> int:
        runs.append(cents)
        if len(runs) == 1:
            raise KeyError("full")
        return cents

    with pytest.raises(KeyError):
        pay(5)
    assert [pay(5), pay(5)] == [5, 5]
    assert runs == [5, 5], "what failed is called again"


def test_a_cache_and_the_other_forms() -> None:
    cache, runs = ResumeCache(), []

    @resumable_tool(cache=cache)
    async def task(x: int) -> int:
        runs.append("task")
        await asyncio.sleep(0.01)
        return x

    @resumable_tool(cache=cache)
    async def stream(x: int) -> AsyncIterator[int]:
        runs.append("stream")
        for i in range(x):
            yield i

    @resumable_tool(cache=cache)
    def items(x: int) -> Iterator[int]:
        runs.append("items")
        yield from range(x)

    async def main() -> None:
        assert await asyncio.gather(*(task(1) for _ in range(20))) == [1] * 20
        for _ in range(2):
            assert [x async for x in stream(3)] == [0, 1, 2]
            assert list(items(2)) == [0, 1]

    asyncio.run(main())
    assert sorted(runs) == ["items", "stream", "task"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.TaskGroup")
def test_it_gets_through_a_task_group(recorder: Recorder, tmp_path: Path) -> None:
    ended: list[str] = []

    @resumable_tool
    async def pay(order: str) -> None:
        if order == "lost":
            raise TimeoutError
        await asyncio.sleep(0.1)
        ended.append(order)

    async def main() -> None:
        async with agent_run("a"):
            with pytest.raises(TimeoutError):
                await pay("lost")
            async with asyncio.TaskGroup() as group:
                group.create_task(pay("beside"))
                await asyncio.sleep(0.02)
                group.create_task(pay("lost"))

    with pytest.raises(BaseException) as caught:
        asyncio.run(main())
    (error,) = caught.value.exceptions  # type: ignore[attr-defined]
    assert isinstance(error, UnknownOutcomeError)
    assert ended == ["beside"]


def test_what_only_reads_waits_for_no_disk(recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @resumable_tool(effect=False)
    def read(x: int) -> int:
        return x

    with agent_run("a"):
        read(1)
        monkeypatch.setattr(os, "fsync", lambda fd: pytest.fail("nobody needs to wait"))
        assert read(2) == 2
    assert [(e.effect, e.state) for e in ledger(tmp_path)] == [(False, "done")] * 2

"""Tools that are generators: what their consumer sends, throws and gets back is as if nothing were around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import ResumeCache, agent_run, configure
from otel_agentrec.errors import UnknownOutcomeError
from otel_agentrec.intercept.stopped import STOPPED
from otel_agentrec.intercept.tools.codecs import ResultUnreadable
from otel_agentrec.resume.attempt import forget_attempts
from otel_agentrec.resume.tools import resumable_tool

RUNS: list[str] = []


def haggle(price: int) -> Generator[Any, Any, str]:
    RUNS.append("haggle")
    offer = yield price
    while True:
        try:
            if offer is None:
                return f"no deal at {price}"
            offer = yield offer + 1
        except ValueError as error:
            offer = yield str(error)


async def haggle_async(price: int) -> AsyncGenerator[Any, Any]:
    RUNS.append("haggle_async")
    offer = yield price
    while offer is not None:
        try:
            offer = yield offer + 1
        except ValueError as error:
            offer = yield str(error)


def plainly(tool: Callable[..., Any]) -> tuple[list[Any], Any]:
    """(what it yields, what it returns)"""
    events: list[Any] = []
    stream = tool(9)
    while True:
        try:
            events.append(next(stream))
        except StopIteration as end:
            return events, end.value


def driving(stream: Any) -> tuple[list[Any], Any]:
    events = [next(stream), stream.send(5), stream.throw(ValueError("too dear")), stream.send(7)]
    with pytest.raises(StopIteration) as end:
        stream.send(None)
    return events, end.value.value


async def driving_async(stream: Any) -> list[Any]:
    events = [await stream.__anext__(), await stream.asend(5), await stream.athrow(ValueError("too dear"))]
    events.append(await stream.asend(7))
    with pytest.raises(StopAsyncIteration):
        await stream.asend(None)
    return events


DRIVEN = [9, 6, "too dear", 8]


@pytest.fixture(autouse=True)
def none_ran() -> None:
    RUNS.clear()


class Shop:
    """A run that fails at its end, or is resumed."""

    def __init__(self, where: Path) -> None:
        self.where = where / "rec"

    def run(self, do: Callable[[], Any], *, resume: bool = False) -> Any:
        out = None
        with pytest.MonkeyPatch.context() as patch, configure(self.where):
            if resume:
                patch.setenv("OTEL_AGENTREC_RESUME", str(self.where))
            try:
                with agent_run("shop"):
                    out = do()
                    if not resume:
                        raise RuntimeError("the network is down")
            except RuntimeError:
                pass
        forget_attempts()
        STOPPED.clear()
        return out


def test_what_is_returned_is_recorded_and_comes_back(tmp_path: Path) -> None:
    tool, shop = resumable_tool(haggle), Shop(tmp_path)
    assert shop.run(lambda: plainly(tool)) == plainly(haggle) == ([9], "no deal at 9")
    assert shop.run(lambda: plainly(tool), resume=True) == ([9], "no deal at 9")
    assert RUNS == ["haggle"] * 2, "once recorded, once bare"


def test_what_is_sent_and_thrown_reaches_the_tool_and_is_not_made_up_on_resume(tmp_path: Path) -> None:
    tool, shop = resumable_tool(haggle), Shop(tmp_path)
    assert shop.run(lambda: driving(tool(9))) == driving(haggle(9)) == (DRIVEN, "no deal at 9")
    RUNS.clear()
    with pytest.raises(UnknownOutcomeError, match=r"driven by send\(\)"):
        shop.run(lambda: driving(tool(9)), resume=True)
    assert RUNS == []


def test_async_generators_too(tmp_path: Path) -> None:
    tool, shop = resumable_tool(haggle_async), Shop(tmp_path)

    def drive() -> list[Any]:
        return asyncio.run(driving_async(tool(9)))

    assert shop.run(drive) == asyncio.run(driving_async(haggle_async(9))) == DRIVEN
    RUNS.clear()
    with pytest.raises(UnknownOutcomeError, match=r"driven by send\(\)"):
        shop.run(drive, resume=True)
    assert RUNS == []


def test_a_recorded_stream_that_is_now_sent_something_is_refused(tmp_path: Path) -> None:
    tool, shop = resumable_tool(haggle), Shop(tmp_path)
    shop.run(lambda: plainly(tool))
    with pytest.raises(ResultUnreadable, match="is now sent what it was not sent"):
        shop.run(lambda: driving(tool(9)), resume=True)
    assert RUNS == ["haggle"]


def test_a_bare_cache_keeps_what_was_not_driven() -> None:
    tool = resumable_tool(cache=ResumeCache())(haggle)
    assert plainly(tool) == plainly(tool) == ([9], "no deal at 9")
    assert RUNS == ["haggle"]


def test_and_makes_again_what_was() -> None:
    tool = resumable_tool(cache=ResumeCache())(haggle)
    stream = resumable_tool(cache=ResumeCache())(haggle_async)
    for _ in range(2):
        assert driving(tool(9)) == (DRIVEN, "no deal at 9")
        assert asyncio.run(driving_async(stream(9))) == DRIVEN
    assert sorted(RUNS) == ["haggle", "haggle", "haggle_async", "haggle_async"]

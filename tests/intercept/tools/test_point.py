"""What happens at a point: nobody answers, a tool runs, is handed out, is refused, is cut off, is part of another."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.errors import ToolNotIntercepted, UnknownOutcomeError
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.protocol import PASS, Pass, ToolCall, ToolOutcome
from otel_agentrec.intercept.tools import running
from otel_agentrec.intercept.tools.codecs import NOT_KEPT, outcome_of
from otel_agentrec.intercept.tools.point import Point, Seen

from .answering import Keeping, Refusing

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    RAN.clear()
    yield


def identify(name: str, arguments: Any, *_: Any) -> Seen:
    return Seen(name, arguments, call_id="call-1")


POINT = Point("test", identify)


@POINT.sync
def run(name: str, arguments: Any, result: Any = None) -> Any:
    RAN.append(name)
    if isinstance(result, BaseException):
        raise result
    return result() if callable(result) else result


@POINT.coroutine
async def run_async(name: str, arguments: Any, result: Any = None) -> Any:
    await asyncio.sleep(0)
    RAN.append(name)
    if isinstance(result, BaseException):
        raise result
    return await result() if callable(result) else result


@POINT.generator
async def run_events(name: str, arguments: Any, events: list[Any]) -> AsyncIterator[Any]:
    for event in events:
        await asyncio.sleep(0)
        RAN.append(name)
        if isinstance(event, BaseException):
            raise event
        yield event


async def collected(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


def in_every_form(name: str, arguments: Any, result: Any) -> list[Any]:
    """The results of the tool in its three forms."""
    return [
        run(name, arguments, result),
        asyncio.run(run_async(name, arguments, result)),
        asyncio.run(collected(run_events(name, arguments, [result])))[0],
    ]


class Answering(Keeping):
    def __init__(self, answer: ToolOutcome | Pass) -> None:
        super().__init__()
        self.given = answer

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        super().answer(call)
        return self.given


def test_while_nobody_answers_all_goes_through() -> None:
    assert in_every_form("a", {}, 7) == [7, 7, 7]


def test_a_tool_that_runs_is_told_of_before_its_result_is_handed_on() -> None:
    keeper = Keeping()
    with using(tools=keeper):
        assert in_every_form("a", {"x": 1}, 7) == [7, 7, 7]
    assert [(call.hook, call.name, call.arguments, call.call_id) for call in keeper.asked] == [
        ("test", "a", {"x": 1}, "call-1")
    ] * 3
    assert keeper.outcomes == [ToolOutcome(7), ToolOutcome(7), ToolOutcome([7])]


def test_what_is_handed_out_does_not_run() -> None:
    with using(tools=Answering(ToolOutcome({"n": 1}))):
        assert run("a", {}) == {"n": 1}
        assert asyncio.run(run_async("a", {})) == {"n": 1}
    with using(tools=Answering(ToolOutcome([1, 2]))):
        assert asyncio.run(collected(run_events("a", {}, [3]))) == [1, 2]
    assert RAN == []


def test_an_error_is_told_and_raised_again_as_its_class() -> None:
    keeper = Keeping()
    with using(tools=keeper):
        with pytest.raises(KeyError):
            run("a", {}, KeyError("k"))
        with pytest.raises(KeyError):
            asyncio.run(run_async("a", {}, KeyError("k")))
        with pytest.raises(KeyError):
            asyncio.run(collected(run_events("a", {}, [1, KeyError("k")])))
    one, two, three = keeper.outcomes
    RAN.clear()
    for outcome, form in ((one, lambda: run("a", {})), (two, lambda: asyncio.run(run_async("a", {})))):
        with using(tools=Answering(outcome)), pytest.raises(KeyError, match="'k'"):
            form()
    seen: list[Any] = []

    async def consume() -> None:
        async for event in run_events("a", {}, []):
            seen.append(event)

    with using(tools=Answering(three)), pytest.raises(KeyError, match="'k'"):
        asyncio.run(consume())
    assert (seen, RAN) == ([1], [])


def test_the_answerers_own_note_of_a_call_comes_back_with_its_outcome() -> None:
    class Noting(Keeping):
        def answer(self, call: ToolCall) -> ToolCall:
            return replace(call, token="effect-7")

    noting = Noting()
    with using(tools=noting):
        in_every_form("a", {}, 7)
    assert [call.token for _, call, _ in noting.told] == ["effect-7"] * 3


def test_a_refusal_reaches_the_program_and_nothing_runs() -> None:
    with using(tools=Refusing("a")):
        with pytest.raises(UnknownOutcomeError):
            run("a", {})
        with pytest.raises(UnknownOutcomeError):
            asyncio.run(run_async("a", {}))
        with pytest.raises(UnknownOutcomeError):
            asyncio.run(collected(run_events("a", {}, [1])))
    assert RAN == []


def test_what_returned_raises_replaces_the_result() -> None:
    class Full(Keeping):
        def returned(self, call: ToolCall, outcome: ToolOutcome) -> None:
            raise UnknownOutcomeError("the disk is full")

    with using(tools=Full()), pytest.raises(UnknownOutcomeError, match="full"):
        run("a", {}, 7)


def test_a_cancelled_tool_has_no_outcome() -> None:
    keeper = Keeping()

    async def forever() -> None:
        await asyncio.sleep(60)

    async def cut() -> None:
        task = asyncio.ensure_future(run_async("a", {}, forever))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def stop_early() -> None:
        events = run_events("b", {}, [1, 2])
        async for _ in events:
            break
        await events.aclose()

    with using(tools=keeper):
        asyncio.run(cut())
        asyncio.run(stop_early())
        with pytest.raises(KeyboardInterrupt):
            run("c", {}, KeyboardInterrupt())
    assert [(what, call.name, type(error)) for what, call, error in keeper.told] == [
        ("cancelled", "a", asyncio.CancelledError),
        ("cancelled", "b", GeneratorExit),
        ("cancelled", "c", KeyboardInterrupt),
    ]


def test_a_call_within_itself_counts_once_and_another_within_it_counts() -> None:
    keeper = Keeping()
    with using(tools=keeper):
        run("outer", {"q": 1}, lambda: run("outer", {"q": 1}, lambda: run("inner", {"q": 1}, 7)))
    assert [call.name for call in keeper.asked] == ["outer", "inner"]


def test_a_call_is_the_same_in_threads_and_tasks_that_it_starts_but_not_after_it() -> None:
    keeper = Keeping()

    async def on_a_thread() -> Any:
        return await asyncio.to_thread(run, "a", {}, 7)

    contexts: list[contextvars.Context] = []

    def leaves_a_worker() -> int:
        contexts.append(contextvars.copy_context())
        return 7

    with using(tools=keeper):
        assert asyncio.run(run_async("a", {}, on_a_thread)) == 7
        assert len(keeper.asked) == 1
        run("b", {}, leaves_a_worker)
        contexts[0].run(run, "b", {}, 7)
    assert [call.name for call in keeper.asked] == ["a", "b", "b"]


def test_equal_calls_side_by_side_are_two() -> None:
    keeper = Keeping()

    async def both() -> None:
        await asyncio.gather(run_async("a", {}), run_async("a", {}))

    with using(tools=keeper):
        asyncio.run(both())
    assert len(keeper.asked) == 2


def test_the_consumer_of_a_tools_events_is_not_inside_the_tool() -> None:
    keeper = Keeping()

    async def consume() -> None:
        async for _ in run_events("a", {}, [1]):
            run("a", {})

    with using(tools=keeper):
        asyncio.run(consume())
    assert len(keeper.asked) == 2


@pytest.mark.parametrize(("outer", "calls"), [("files__read", 1), ("read", 1), ("copy", 2)])
def test_a_relayed_call_is_that_of_the_tool_it_serves(outer: str, calls: int) -> None:
    relay = Point("relay", identify, relays=True).sync(lambda name, arguments: 7)
    keeper = Keeping()
    with using(tools=keeper):
        run(outer, {"path": "/x"}, lambda: relay("read", {"path": "/x"}))
    assert len(keeper.asked) == calls


@pytest.mark.parametrize(
    ("name", "arguments", "calls"),
    [
        ("a", {"x": 1, "y": "by default"}, 1),
        ("a", {"x": 2, "y": "by default"}, 2),
        ("a", {}, 2),
        ("b", {"x": 1}, 2),
    ],
)
def test_a_tool_of_the_same_name_that_a_framework_passes_its_call_on_to_is_that_call(
    name: str, arguments: Any, calls: int
) -> None:
    decorated = Point("another", identify).sync(lambda name, arguments: 7)
    keeper = Keeping()
    with using(tools=keeper):
        run("a", {"x": 1}, lambda: decorated(name, arguments))
    assert len(keeper.asked) == calls


def test_a_coroutine_given_by_a_plain_function_is_the_call() -> None:
    keeper = Keeping()

    async def later() -> int:
        return 7

    with using(tools=keeper):
        assert asyncio.run(run("a", {}, later)) == 7
    assert keeper.outcomes == [ToolOutcome(7)]


def test_the_current_span_is_told() -> None:
    from opentelemetry.sdk.trace import TracerProvider

    keeper = Keeping()
    with TracerProvider().get_tracer("t").start_as_current_span("execute_tool a") as span, using(tools=keeper):
        run("a", {}, 7)
    assert keeper.asked[0].span is not None
    assert keeper.asked[0].span.span_id == f"{span.get_span_context().span_id:016x}"


def broken(*_: Any) -> Seen:
    raise AttributeError("the framework has changed")


def test_a_fault_of_the_adapter_is_counted_and_the_program_goes_on() -> None:
    before = PROCESS.counters.as_dict().get("swallowed.the tool hook broken", 0)
    with using(tools=Keeping()):
        assert Point("broken", broken).sync(lambda: 7)() == 7
    assert PROCESS.counters.as_dict()["swallowed.the tool hook broken"] == before + 1


def test_where_nothing_unknown_may_happen_a_fault_of_the_adapter_is_a_refusal() -> None:
    with using(tools=Keeping(), forbid_unknown=True), pytest.raises(ToolNotIntercepted, match="has changed"):
        Point("broken", broken).sync(lambda: RAN.append("x"))()
    assert RAN == []


def test_a_result_that_would_not_come_back_is_told_as_such_and_handed_on() -> None:
    keeper, thing = Keeping(), object()
    with using(tools=keeper):
        assert run("a", {}, lambda: thing) is thing
    assert keeper.outcomes[0].codec == NOT_KEPT
    assert "builtins.object" in keeper.outcomes[0].value["class"]


def test_pass_is_what_the_protocol_calls_it() -> None:
    assert Keeping().answer(ToolCall("h", "n", {})) is PASS


# --- refusals beside running tools ------------------------------------------------------------------------------------


async def cut_siblings(*calls: Any) -> BaseException:
    """Run calls side by side as frameworks do: when one raises, the others are cancelled. What was raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return next(error for task in done if (error := task.exception()) is not None)


async def slowly() -> str:
    await asyncio.sleep(0.05)
    return "done"


@pytest.mark.parametrize("refused_first", [True, False])
def test_a_refusal_waits_for_the_tools_beside_it(refused_first: bool) -> None:
    refusing = Refusing("refused")
    calls = [run_async("refused", {}), run_async("slow", {}, slowly)]
    with using(tools=refusing):
        error = asyncio.run(cut_siblings(*(calls if refused_first else reversed(calls))))
    assert isinstance(error, UnknownOutcomeError)
    assert [(what, call.name) for what, call, _ in refusing.told] == [("returned", "slow")]


def test_a_refusal_of_a_stream_waits_too() -> None:
    refusing = Refusing("refused")
    with using(tools=refusing):
        asyncio.run(cut_siblings(run_async("slow", {}, slowly), collected(run_events("refused", {}, [1]))))
    assert [(what, call.name) for what, call, _ in refusing.told] == [("returned", "slow")]


def test_refusals_inside_two_tools_do_not_wait_for_each_other() -> None:
    refusing = Refusing("refused")

    def inner(n: int) -> Any:
        return lambda: run_async("refused", {"n": n})

    with using(tools=refusing):
        error = asyncio.run(
            asyncio.wait_for(cut_siblings(run_async("a", {}, inner(1)), run_async("b", {}, inner(2))), timeout=5)
        )
    assert isinstance(error, UnknownOutcomeError)


def test_a_refusal_does_not_wait_for_the_tool_that_it_is_inside_of() -> None:
    with using(tools=Refusing("refused")), pytest.raises(UnknownOutcomeError):
        asyncio.run(asyncio.wait_for(run_async("outer", {}, lambda: run_async("refused", {})), timeout=5))


def test_a_refusal_that_is_cancelled_while_it_waits_is_still_a_refusal() -> None:
    async def cancel() -> None:
        slow = asyncio.ensure_future(run_async("slow", {}, slowly))
        task = asyncio.ensure_future(run_async("refused", {}))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(UnknownOutcomeError):
            await task
        await slow

    with using(tools=Refusing("refused")):
        asyncio.run(cancel())


def test_a_refusal_waits_no_longer_than_its_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE", 0.01)
    refusing = Refusing("refused")
    with using(tools=refusing):
        asyncio.run(cut_siblings(run_async("refused", {}), run_async("slow", {}, slowly)))
    assert [(what, call.name) for what, call, _ in refusing.told] == [("cancelled", "slow")]


def test_no_call_is_held_in_memory_after_it() -> None:
    with using(tools=Keeping()):
        in_every_form("a", {}, 7)
        with pytest.raises(KeyError):
            run("a", {}, KeyError())
    assert running._RUNNING == {}


def test_what_an_operator_says_becomes_what_tools_of_the_framework_give() -> None:
    made = Point("test", identify, made=lambda value, call: [f"{call.name} made of", value])

    def never(*_: Any) -> Any:
        raise AssertionError("must not run")

    async def never_events(*_: Any) -> AsyncIterator[Any]:
        raise AssertionError("must not run")
        yield

    with using(tools=Answering(ToolOutcome("paid"))):
        assert made.sync(never)("pay", {}) == ["pay made of", "paid"]
        assert asyncio.run(made.coroutine(never)("pay", {})) == ["pay made of", "paid"]
        assert asyncio.run(collected(made.generator(never_events)("pay", {}))) == ["pay made of", "paid"]
    with using(tools=Answering(outcome_of((1, 2)))):
        assert made.sync(never)("pay", {}) == (1, 2), "what a codec wrote is the framework's own already"

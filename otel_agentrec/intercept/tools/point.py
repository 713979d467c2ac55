"""The one place through which every intercepted tool call goes: ask, run or hand out, tell.

An adapter makes a :class:`Point` and wraps the function that runs a tool of its framework, in the form that the function
has: :meth:`Point.sync`, :meth:`Point.coroutine`, :meth:`Point.generator` (an async generator), :meth:`Point.iterator` (a
plain one). While nobody answers (``ACTIVE.tools`` is None) a wrapped function costs one look.

What an answerer raises reaches the program; an Exception of the adapter never does: the call then goes by unseen, and is
counted, unless what is unknown is forbidden (``ACTIVE.forbid_unknown``: a replay), where it is refused.

Frameworks that run tools side by side cancel all of them when one raises, and a tool that is cut off has no known outcome.
So a refusal is raised only after the calls beside it have ended (:mod:`~otel_agentrec.intercept.tools.running`).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.errors import RunStopped, ToolNotIntercepted
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.protocol import SpanRef, ToolAnswerer, ToolCall, ToolOutcome
from otel_agentrec.intercept.tools.codecs import Codec, handed_out, outcome_of, outcome_of_error, result_again
from otel_agentrec.intercept.tools.running import Frame, enter, inside, leave, others_ended
from otel_agentrec.intercept.tools.streams import (
    Streamed,
    Taken,
    advance_async,
    closed,
    follow,
    follow_async,
    hand_out,
    hand_out_async,
)
from otel_agentrec.journal.canonical import normalise

__all__ = ["POINT", "Point", "Seen"]

POINT = "__agentrec_point__"
"""Attribute of a wrapped function: itself. (A copy of it on another function says that ours lies somewhere below.)"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What an adapter knows of a call: see :class:`~otel_agentrec.intercept.protocol.ToolCall`. ``arguments`` of any type."""

    name: str
    arguments: Any
    call_id: str | None = None
    kind: Literal["effect", "read", "container"] | None = None


class Point:
    """Wraps functions of one framework.

    Args:
        hook: the adapter's name.
        identify: gets what the wrapped function gets; None: not a tool call to be intercepted.
        codecs: of the framework's result types.
        relays: calls of this hook are often made on behalf of a framework's tool, whose name then ends with this one's
            (MCP: ``server__name``).
        answerer: gives whoever is asked; default: whoever answers in this process.
        made: makes the framework's result of a plain value and the call, where every tool of the framework gives a class that
            ``codecs`` write: what an operator or ``reconcile`` says is plain.
    """

    __slots__ = ("answerer", "codecs", "hook", "identify", "made", "relays")

    def __init__(
        self,
        hook: str,
        identify: Callable[..., Seen | None],
        codecs: Sequence[Codec] = (),
        *,
        relays: bool = False,
        answerer: Callable[[], ToolAnswerer | None] | None = None,
        made: Callable[[Any, ToolCall], Any] | None = None,
    ) -> None:
        self.answerer = answerer or (lambda: ACTIVE.tools)
        self.hook = hook
        self.identify = identify
        self.codecs = tuple(codecs)
        self.relays = relays
        self.made = made

    # --- the three forms of a function that runs a tool ----------------------------------------------------------------

    def sync(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a plain function. A coroutine that it gives is the call too."""

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.answerer() is None:
                return original(*args, **kwargs)
            visit = self._begin(args, kwargs)
            if visit is None:
                return original(*args, **kwargs)
            if visit.outcome is not None:
                return self._handed_out(visit)
            token = enter(visit.frame)
            try:
                value = original(*args, **kwargs)
            except BaseException as error:
                visit.raised(error)
                raise
            finally:
                leave(token)
            if inspect.iscoroutine(value):
                return _awaited(visit, value)
            visit.returned(value)
            return value

        setattr(call, POINT, call)
        return call

    def coroutine(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Wrap an ``async def``."""

        @functools.wraps(original)
        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.answerer() is None:
                return await original(*args, **kwargs)
            try:
                visit = self._begin(args, kwargs)
                if visit is None:
                    return await original(*args, **kwargs)
                if visit.outcome is not None:
                    return self._handed_out(visit)
                return await _awaited(visit, original(*args, **kwargs))
            except RunStopped:
                await others_ended()
                raise

        setattr(call, POINT, call)
        return call

    def generator(self, original: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
        """Wrap an async generator: its result is the list of what it yields, in an outcome of its own if it then fails.

        A consumer that stops early has cut the tool off.
        """

        @functools.wraps(original)
        async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            events = None
            sent = thrown = None
            try:
                events = original(*args, **kwargs) if self.answerer() is None else self._events(original, args, kwargs)
                while True:
                    try:
                        event = await advance_async(events, sent, thrown)
                    except StopAsyncIteration:
                        return
                    sent = thrown = None
                    try:
                        sent = yield event
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        thrown = error
            except RunStopped:
                await others_ended()
                raise
            finally:
                await closed(events)

        setattr(call, POINT, call)
        return call

    def _events(self, original: Callable[..., Any], args: Any, kwargs: Any) -> AsyncIterator[Any]:
        visit = self._begin(args, kwargs)
        if visit is None:
            return original(*args, **kwargs)  # type: ignore[no-any-return]
        if visit.outcome is not None:
            return hand_out_async(self._recorded_events(visit), visit.call.name, visit.raise_again)
        source, taken = original(*args, **kwargs), Taken()
        return follow_async(
            source, taken, visit.frame, partial(visit.raised, taken=taken), partial(visit.streamed, taken)
        )

    def iterator(self, original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Wrap a plain generator, as :meth:`generator` does an async one; it gives what the generator returns too."""

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            visit = self._begin(args, kwargs)
            if visit is None:
                return (yield from original(*args, **kwargs))
            if visit.outcome is not None:
                returned = yield from hand_out(self._recorded_events(visit), visit.call.name)
                visit.raise_again()
                return returned
            source, taken = iter(original(*args, **kwargs)), Taken()
            returned = yield from follow(source, taken, visit.frame, partial(visit.raised, taken=taken))
            visit.streamed(taken)
            return returned

        setattr(call, POINT, call)
        return call

    # --- asking -------------------------------------------------------------------------------------------------------

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Visit | None:
        """Ask about a call. None: it is none of ours, or part of one that is being run."""
        answerer = self.answerer()
        if answerer is None:
            return None
        try:
            seen = self.identify(*args, **kwargs)
            if seen is None:
                return None
            arguments = normalise(seen.arguments)
            frame = Frame(self.hook, seen.name, arguments)
            if any(self._is_part_of(outer, frame) for outer in inside() if outer.running):
                return None
            call = ToolCall(self.hook, seen.name, arguments, seen.call_id, seen.kind, _current_span())
        except Exception as error:
            PROCESS.swallow(f"the tool hook {self.hook}", error)
            if ACTIVE.forbid_unknown:
                raise ToolNotIntercepted(f"a tool call of {self.hook} can't be identified: {error}") from error
            return None
        answer = answerer.answer(call)
        if isinstance(answer, ToolOutcome):
            return _Visit(self, answerer, call, frame, answer)
        return _Visit(self, answerer, answer if isinstance(answer, ToolCall) else call, frame)

    def _handed_out(self, visit: _Visit) -> Any:
        assert visit.outcome is not None
        value = handed_out(visit.outcome)
        return value if self.made is None or visit.outcome.codec is not None else self.made(value, visit.call)

    def _recorded_events(self, visit: _Visit) -> list[Any] | Streamed:
        outcome = visit.outcome
        assert outcome is not None
        if outcome.error is not None and outcome.value is None and outcome.codec is None:
            return []
        events = result_again(outcome)
        if self.made is not None and outcome.codec is None:
            events = self.made(events, visit.call)
        return events if isinstance(events, (list, Streamed)) else [events]

    def _is_part_of(self, outer: Frame, inner: Frame) -> bool:
        """A framework's tool of the same name passes on what it was given, and may add defaults and what it injects."""
        if outer.hook == inner.hook:
            return outer.name == inner.name and outer.arguments == inner.arguments
        if not (outer.name == inner.name or (self.relays and outer.name.endswith(inner.name))):
            return False
        given, passed = outer.arguments, inner.arguments
        if isinstance(given, dict) and isinstance(passed, dict):
            return all(name in passed and passed[name] == value for name, value in given.items())
        return bool(given == passed)


@dataclass(slots=True)
class _Visit:
    """A call that was asked about: what to hand out, or whom to tell what came of it."""

    point: Point
    answerer: ToolAnswerer
    call: ToolCall
    frame: Frame
    outcome: ToolOutcome | None = None
    before: BaseException | None = field(default_factory=lambda: sys.exc_info()[1])
    """What the program was handling when it called: Python makes it the context of what the tool raises."""

    def returned(self, value: Any) -> None:
        """Told before the program has it; what the answerer raises replaces it."""
        self.frame.end()
        self.answerer.returned(self.call, outcome_of(value, self.point.codecs))

    def streamed(self, taken: Taken) -> None:
        """The same of a stream that came to its end."""
        self.frame.end()
        self.answerer.returned(self.call, taken.outcome(self.point.codecs))

    def raise_again(self) -> None:
        """What a recorded stream ended with, if that was an error."""
        if self.outcome is not None and self.outcome.error is not None:
            handed_out(self.outcome)

    def raised(self, error: BaseException, taken: Taken | None = None) -> None:
        """Told of an Exception as an outcome; anything else cut the tool off, and nobody knows how far it came."""
        self.frame.end()
        if isinstance(error, Exception):
            outcome = outcome_of_error(error, self.before)
            if taken is not None and taken.events:
                before = taken.outcome(self.point.codecs)
                outcome = ToolOutcome(before.value, before.codec, outcome.error)
            self.answerer.returned(self.call, outcome)
            return
        try:
            self.answerer.cancelled(self.call, error)
        except Exception as ours:
            PROCESS.swallow(f"the tool hook {self.point.hook}", ours)


async def _awaited(visit: _Visit, running: Awaitable[Any]) -> Any:
    token = enter(visit.frame)
    try:
        value = await running
    except BaseException as error:
        visit.raised(error)
        raise
    finally:
        leave(token)
    visit.returned(value)
    return value


def _current_span() -> SpanRef | None:
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return SpanRef(trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id))

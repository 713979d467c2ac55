"""Tools that are generators: what a consumer does with one reaches the tool, and what the tool returns reaches the consumer.

A recorded stream is the list of what was yielded; one that returned something is a :class:`Streamed`. One that its consumer has
driven (by ``send``, ``throw`` and their like) was a conversation: half of it is the consumer's, so it is not handed out again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.intercept.protocol import ToolOutcome
from otel_agentrec.intercept.tools.codecs import (
    DRIVEN,
    Codec,
    ResultUnreadable,
    from_json,
    is_kept,
    outcome_of,
    register,
    to_json,
)
from otel_agentrec.intercept.tools.running import Frame, enter, leave

__all__ = ["Streamed", "Taken", "advance_async", "closed", "follow", "follow_async", "hand_out", "hand_out_async"]

Json = Any


@dataclass(slots=True)
class Streamed:
    """What a stream yielded, and what it then returned."""

    events: list[Any]
    returned: Any


_STREAM = register(
    Codec(
        "stream",
        fits=lambda value: type(value) is Streamed,
        encode=lambda value: {"events": to_json(value.events), "returned": to_json(value.returned)},
        decode=lambda kept: Streamed(from_json(kept["events"]), from_json(kept["returned"])),
    )
)


@dataclass(slots=True)
class Taken:
    """What was taken of a stream so far."""

    events: list[Any] = field(default_factory=list)
    returned: Any = None
    is_driven: bool = False

    @property
    def value(self) -> list[Any] | Streamed:
        """What came of it."""
        return self.events if self.returned is None else Streamed(self.events, self.returned)

    def outcome(self, codecs: Sequence[Codec]) -> ToolOutcome:
        """As it is recorded."""
        told = outcome_of(self.value, [*codecs, _STREAM])
        return ToolOutcome(told.value, DRIVEN) if self.is_driven and is_kept(told) else told


def advance(source: Iterator[Any], sent: Any, thrown: BaseException | None) -> Any:
    """The next event of a generator, which gets what its consumer sent or threw. Raises what the generator does."""
    if thrown is not None:
        throw = getattr(source, "throw", None)
        if throw is None:
            raise thrown
        return throw(thrown)
    return next(source) if sent is None else source.send(sent)  # type: ignore[attr-defined]


async def advance_async(source: AsyncIterator[Any], sent: Any, thrown: BaseException | None) -> Any:
    """The same of an async generator."""
    if thrown is not None:
        throw = getattr(source, "athrow", None)
        if throw is None:
            raise thrown
        return await throw(thrown)
    return await (source.__anext__() if sent is None else source.asend(sent))  # type: ignore[attr-defined]


def follow(
    source: Iterator[Any],
    taken: Taken,
    frame: Frame | None = None,
    raised: Callable[[BaseException], object] = lambda error: None,
) -> Generator[Any, Any, Any]:
    """Pass a generator on as ``yield from`` does, and note what is taken.

    Args:
        frame: what the generator does is part of this call; what its consumer does meanwhile is not.
        raised: told of what ends it but its own end: an error of the generator's, or a consumer that stops early.
    """
    sent = thrown = None
    try:
        while True:
            token = enter(frame) if frame is not None else None
            try:
                event = advance(source, sent, thrown)
            except StopIteration as end:
                taken.returned = end.value
                break
            finally:
                if token is not None:
                    leave(token)
            taken.events.append(event)
            sent = thrown = None
            try:
                sent = yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                thrown = error
            taken.is_driven |= sent is not None or thrown is not None
    except BaseException as error:
        raised(error)
        raise
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()
    return taken.returned


async def follow_async(
    source: AsyncIterator[Any],
    taken: Taken,
    frame: Frame | None = None,
    raised: Callable[[BaseException], object] = lambda error: None,
    ended: Callable[[], object] = lambda: None,
) -> AsyncIterator[Any]:
    """The same of an async generator, which can't return anything: ``ended`` is called at its end, before its consumer knows."""
    sent = thrown = None
    try:
        while True:
            token = enter(frame) if frame is not None else None
            try:
                event = await advance_async(source, sent, thrown)
            except StopAsyncIteration:
                break
            finally:
                if token is not None:
                    leave(token)
            taken.events.append(event)
            sent = thrown = None
            try:
                sent = yield event
            except GeneratorExit:
                raise
            except BaseException as error:
                thrown = error
            taken.is_driven |= sent is not None or thrown is not None
    except BaseException as error:
        raised(error)
        raise
    finally:
        await closed(source)
    ended()


async def closed(events: Any) -> None:
    """Close an async generator; anything else has nothing to close."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


def hand_out(events: Any, name: str) -> Generator[Any, Any, Any]:
    """Yield recorded events, and return what was returned.

    Raises:
        ResultUnreadable: the consumer sends or throws something, which nobody was sent when they were recorded.
    """
    told = events if isinstance(events, Streamed) else Streamed(events, None)
    for event in told.events:
        try:
            sent = yield event
        except GeneratorExit:
            raise
        except BaseException as error:
            raise _not_asked(name) from error
        if sent is not None:
            raise _not_asked(name)
    return told.returned


async def hand_out_async(events: Any, name: str, ended: Callable[[], object] = lambda: None) -> AsyncIterator[Any]:
    """The same for an async consumer; raises likewise, and what ``ended`` raises at the end."""
    for event in events.events if isinstance(events, Streamed) else events:
        try:
            sent = yield event
        except GeneratorExit:
            raise
        except BaseException as error:
            raise _not_asked(name) from error
        if sent is not None:
            raise _not_asked(name)
    ended()


def _not_asked(name: str) -> ResultUnreadable:
    return ResultUnreadable(
        f"the stream of {name} is answered from the recording, and is now sent what it was not sent then",
        "a stream that is driven by send() or throw() can't be resumed: give what it needs as arguments",
    )

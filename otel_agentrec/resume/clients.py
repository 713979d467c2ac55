"""The seed's two decorators: a model client and a tool executor that answer from a cache what was done before.

    cache = ResumeCache.load_from_json("resume.json")
    model = ResumableModelClient(OpenAIChatClient(OpenAI()), cache)
    tools = ResumableToolExecutor(my_tools, cache)

A hit does not reach the delegate; a miss does, and what it returns is recorded. What it raises reaches the caller and is not
recorded. The counters are the cache's. Safe for threads and tasks as far as the delegate is: under ``match="content"`` equal
calls that come at once are one call.

**Streams**: a hit gives the listener the recorded pieces on every channel, each marked ``replayed``; an answer that was not
streamed comes in one piece per thing said. Where a stream of this prompt broke off before, a ``restart`` piece tells the
listener so before the first live one. A stream that does not come to its end is not kept.

**A run that is resumed** (a cache made by ``from_recording``, while something records): each recorded answer is handed out
once, in its lane; as long as there are some left, a prompt that was not recorded stops the run (``ResumeDivergence``) instead
of reaching the delegate, unless ``OTEL_AGENTREC_ON_DIVERGENCE=live``.

**Tools**: while something records, a call that is made is an entry of the effect ledger too, so that it is known to have begun
even when the process dies before it ends.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from opentelemetry import trace

from otel_agentrec.capture import handed
from otel_agentrec.capture.callkeys import asked_whole
from otel_agentrec.capture.effects import effect_log
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.placing import place_of_call
from otel_agentrec.capture.recorders import recorder_in_use
from otel_agentrec.clients.answers import chunks_of_result
from otel_agentrec.errors import RunStopped
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.declared import declare_all
from otel_agentrec.intercept.tools.point import Point, Seen
from otel_agentrec.prompts import (
    AgentModelChunk,
    AgentModelResult,
    AgentPrompt,
    AgentToolCall,
    AsyncModelClient,
    AsyncToolExecutor,
    ModelClient,
    ModelStreamListener,
    ToolExecutor,
)
from otel_agentrec.records import NodeType
from otel_agentrec.resume.asking import Asking, resumed_at
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.program import Program
from otel_agentrec.resume.prompted_run import PromptedRun
from otel_agentrec.resume.requests import asked_model
from otel_agentrec.settings import Settings

__all__ = [
    "AsyncResumableModelClient",
    "AsyncResumableToolExecutor",
    "ResumableModelClient",
    "ResumableToolExecutor",
]

Json = Any
HOOK = "tool_executor"


class ResumableModelClient:
    """A :class:`ModelClient` that asks its delegate only what its cache does not know."""

    def __init__(self, delegate: ModelClient, cache: ResumeCache) -> None:
        self.delegate = delegate
        self.cache = cache

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        """The recorded answer, else the delegate's. Raises as :meth:`create_stream`."""

        asked: list[bool] = []

        def ask() -> AgentModelResult:
            asked.append(True)
            with _asked(prompt):
                return self.delegate.create(prompt)

        if (run := _resumed(self.cache)) is not None:
            known = _known(run, self.cache, prompt)
            return ask() if known is None else known
        result = self.cache.answer_model(prompt, ask)
        if not asked:
            _answered(self.cache)
        return result

    def create_stream(self, prompt: AgentPrompt, listener: ModelStreamListener | None = None) -> AgentModelResult:
        """The recorded answer, told to ``listener`` as it came; else the delegate's, piece by piece.

        Raises:
            ResumeDivergence: the cache resumes a run, which has recorded answers left and did not ask this.
            UnknownOutcomeError: the cache resumes a run, which has effects of unknown outcome.
        """
        hearing = _Hearing(listener)

        def ask() -> AgentModelResult:
            hearing.is_live = True
            cut = self.cache.cut_stream(prompt)
            if listener is not None and cut is not None:
                listener.on_chunk(AgentModelChunk("restart", cut))
            try:
                with _asked(prompt):
                    return self.delegate.create_stream(prompt, hearing)
            except BaseException:
                self.cache.record_cut_stream(prompt, hearing.text)
                raise

        if (run := _resumed(self.cache)) is not None:
            known = _known(run, self.cache, prompt)
            result = ask() if known is None else known
        else:
            result = self.cache.answer_model(prompt, ask)
            if not hearing.is_live:
                _answered(self.cache)
        if not hearing.is_live:
            for chunk in _replayed(result):
                if listener is not None:
                    listener.on_chunk(chunk)
        return result


class AsyncResumableModelClient:
    """:class:`ResumableModelClient` for event loops."""

    def __init__(self, delegate: AsyncModelClient, cache: ResumeCache) -> None:
        self.delegate = delegate
        self.cache = cache

    async def create(self, prompt: AgentPrompt) -> AgentModelResult:
        """The recorded answer, else the delegate's."""

        asked: list[bool] = []

        async def ask() -> AgentModelResult:
            asked.append(True)
            with _asked(prompt):
                return await self.delegate.create(prompt)

        if (run := _resumed(self.cache)) is not None:
            known = _known(run, self.cache, prompt)
            return await ask() if known is None else known
        result = await self.cache.answer_model_async(prompt, ask)
        if not asked:
            _answered(self.cache)
        return result

    async def create_stream(self, prompt: AgentPrompt, listener: ModelStreamListener | None = None) -> AgentModelResult:
        """The recorded answer, told to ``listener`` as it came; else the delegate's, piece by piece."""
        hearing = _Hearing(listener)

        async def ask() -> AgentModelResult:
            hearing.is_live = True
            cut = self.cache.cut_stream(prompt)
            if cut is not None:
                await _told(listener, AgentModelChunk("restart", cut))
            try:
                with _asked(prompt):
                    return await self.delegate.create_stream(prompt, hearing)
            except BaseException:
                self.cache.record_cut_stream(prompt, hearing.text)
                raise

        if (run := _resumed(self.cache)) is not None:
            known = _known(run, self.cache, prompt)
            result = await ask() if known is None else known
        else:
            result = await self.cache.answer_model_async(prompt, ask)
            if not hearing.is_live:
                _answered(self.cache)
        if not hearing.is_live:
            for chunk in _replayed(result):
                await _told(listener, chunk)
        return result


class ResumableToolExecutor:
    """A :class:`ToolExecutor` that runs only what its cache does not know.

    An output of ``None`` is an output. One that tells of a failure (``TOOL_ERROR…``, a failed ``AgentToolResult``) is handed
    on but not kept: the next call runs.

    Args:
        cache: one made by ``from_recording`` resumes that recording's run: the ledger answers, and knows what it does not know.
        read_only: names of tools without effects, which may run again when nobody knows what came of them.
    """

    def __init__(self, delegate: ToolExecutor, cache: ResumeCache, *, read_only: Collection[str] = ()) -> None:
        self.delegate = delegate
        self.cache = cache

        def run(call: AgentToolCall) -> Json:
            RAN.set(True)
            return delegate.execute(call)

        self._run = _point(cache, read_only).sync(run)

    def execute(self, call: AgentToolCall) -> Json:
        """The recorded output, else the delegate's.

        Raises:
            UnknownOutcomeError: it was begun before, and nobody knows whether it happened.
            LedgerUnavailable: something records, and that the call begins can't be made durable; it was not called.
        """
        if self.cache.recording is None:
            return self.cache.answer_tool(call, lambda: self._run(call))
        with _counted(self.cache):
            return self._run(call)


class AsyncResumableToolExecutor:
    """:class:`ResumableToolExecutor` for event loops."""

    def __init__(self, delegate: AsyncToolExecutor, cache: ResumeCache, *, read_only: Collection[str] = ()) -> None:
        self.delegate = delegate
        self.cache = cache

        async def run(call: AgentToolCall) -> Json:
            RAN.set(True)
            return await delegate.execute(call)

        self._run = _point(cache, read_only).coroutine(run)

    async def execute(self, call: AgentToolCall) -> Json:
        """As :meth:`ResumableToolExecutor.execute`."""
        if self.cache.recording is None:
            return await self.cache.answer_tool_async(call, lambda: self._run(call))
        with _counted(self.cache):
            return await self._run(call)


RAN: ContextVar[bool] = ContextVar("otel_agentrec_tool_ran", default=False)
"""Whether the delegate was called in this call of an executor."""


@contextmanager
def _counted(cache: ResumeCache) -> Iterator[None]:
    """Count a call that the ledger decides on: a hit is what it answered, a failure that it raised again included."""
    token = RAN.set(False)
    refused = False
    try:
        yield
    except RunStopped:
        refused = True
        raise
    finally:
        ran = RAN.get()
        RAN.reset(token)
        if ran or not refused:
            cache.count(NodeType.TOOL, hit=not ran)


def _point(cache: ResumeCache, read_only: Collection[str]) -> Point:
    names = frozenset(read_only)

    def identify(call: AgentToolCall) -> Seen:
        return Seen(call.name, call.parsed, call.call_id, "read" if call.name in names else "effect")

    declare_all()
    return Point(HOOK, identify, answerer=Asking(cache))


class _Hearing:
    """Hears a live stream for a listener, and remembers what was said in case it breaks off."""

    def __init__(self, listener: ModelStreamListener | None) -> None:
        self._listener = listener
        self._said: list[str] = []
        self.is_live = False
        """Whether the delegate was asked."""

    @property
    def text(self) -> str:
        return "".join(self._said)

    def on_chunk(self, chunk: AgentModelChunk) -> object:
        if chunk.channel == "text" and chunk.text:
            self._said.append(chunk.text)
        return self._listener.on_chunk(chunk) if self._listener is not None else None


def _replayed(result: Any) -> Iterator[AgentModelChunk]:
    if isinstance(result, AgentModelResult):
        for chunk in chunks_of_result(result):
            yield replace(chunk, replayed=True)


async def _told(listener: ModelStreamListener | None, chunk: AgentModelChunk) -> None:
    if listener is not None:
        heard = listener.on_chunk(chunk)
        if inspect.isawaitable(heard):
            await heard


def _resumed(cache: ResumeCache) -> Program[PromptedRun] | None:
    """The run that a cache resumes; None when it resumes none, or nothing records, or answers are given further below."""
    if cache.recording is None or ACTIVE.models is not None or recorder_in_use() is None:
        return None
    return resumed_at(cache.recording, cache.run, Settings.load())


def _known(program: Program[PromptedRun], cache: ResumeCache, prompt: AgentPrompt) -> AgentModelResult | None:
    for one in program.courses:
        one.declare(cache.inert)
    asked = asked_model(prompt)
    course, at = program.of_model(asked)
    found = course.answer_prompt(asked, at) if course is not None else None
    cache.count(NodeType.MODEL, hit=found is not None)
    if found is None:
        return None
    result, origin = found
    _answered(cache, origin)
    return result


def _answered(cache: ResumeCache, origin: Mapping[str, Json] | None = None) -> None:
    """The model span around this call was answered without a model: what records it is told, so that it costs nothing."""
    recorder, span = recorder_in_use(), trace.get_current_span()
    attributes = getattr(span, "attributes", None) or {}
    if recorder is None or not span.is_recording() or attributes.get("gen_ai.operation.name") not in _ASKING:
        return
    told = {"cache": cache.match, "run": cache.run, **(origin or {})}
    from_ = {key: value for key, value in told.items() if value is not None}
    PROCESS.run("a cached answer", lambda: effect_log(recorder).answered(place_of_call(recorder), None, from_))


_ASKING = ("chat", "generate_content", "text_completion")


@contextmanager
def _asked(prompt: AgentPrompt) -> Iterator[None]:
    """The model span around or inside this block is of this prompt: its key is recorded with it, so that the recording can
    answer it."""
    asked = asked_whole(prompt)
    if asked is None:
        yield
        return
    span = trace.get_current_span()
    if span.is_recording():
        context = span.get_span_context()
        handed.hand_over((context.trace_id, context.span_id), {"asked": asked})
    with handed.starting({"asked": asked}):
        yield

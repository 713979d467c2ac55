"""The resumable clients: what was done is answered, the listener of a stream hears what it heard, effects happen once.

The first part holds what ai4j's own tests demand of its two decorators.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.configure import configure
from otel_agentrec.capture.emit import agent_run
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.clients.ready import (
    AsyncOpenAIChatClient,
    AsyncOpenAIResponsesClient,
    OpenAIChatClient,
    OpenAIResponsesClient,
)
from otel_agentrec.demo.script import Call, Turn, Usage, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import UnknownOutcomeError
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.protocol import PASS, Pass, ToolOutcome
from otel_agentrec.intercept.protocol import ToolCall as ToolAsked
from otel_agentrec.intercept.stopped import STOPPED
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.keys import KeyRing, prompt_key
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.nodes.stats import stats_of
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt, AgentToolCall, AgentToolResult
from otel_agentrec.records import NodeType
from otel_agentrec.resume.attempt import forget_attempts
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.clients import (
    AsyncResumableModelClient,
    AsyncResumableToolExecutor,
    ResumableModelClient,
    ResumableToolExecutor,
)

Json = Any
PROMPT = AgentPrompt("m", "Will it rain?")
CHUNKS = [
    AgentModelChunk("reasoning", "Hm", 0),
    AgentModelChunk("text", "Ye"),
    AgentModelChunk("text", "s."),
    AgentModelChunk("tool_call", "", 0, "weather", "c1"),
    AgentModelChunk("tool_call", "{}", 0),
    AgentModelChunk("usage", data={"total_tokens": 3}),
    AgentModelChunk("finish", "tool_calls"),
]
RESULT = AgentModelResult(
    "Yes.", {"id": "r1"}, [AgentToolCall("weather", "{}", "c1")], "Hm", {"total_tokens": 3}, ["tool_calls"]
)


class Ear:
    def __init__(self) -> None:
        self.chunks: list[AgentModelChunk] = []

    def on_chunk(self, chunk: AgentModelChunk) -> None:
        self.chunks.append(chunk)


class Model:
    """A model client that counts how often it is asked; ``breaks`` after so many pieces of a stream."""

    def __init__(self, result: AgentModelResult = RESULT, breaks: int | None = None) -> None:
        self.asked, self.result, self.breaks = 0, result, breaks

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        self.asked += 1
        return replace(self.result)

    def create_stream(self, prompt: AgentPrompt, listener: Any = None) -> AgentModelResult:
        self.asked += 1
        for chunk in CHUNKS[: self.breaks]:
            listener.on_chunk(chunk)
        if self.breaks is not None:
            raise ConnectionError("the stream broke off")
        return replace(self.result, chunks=CHUNKS)


class Tools:
    """A tool executor with effects that can be counted."""

    def __init__(self, output: Json = "done") -> None:
        self.effects: list[AgentToolCall] = []
        self.output = output

    def execute(self, call: AgentToolCall) -> Json:
        self.effects.append(call)
        if isinstance(self.output, BaseException):
            raise self.output
        return self.output


class OnLoop:
    """A client or executor for threads as one for event loops."""

    def __init__(self, held: Any) -> None:
        self.held = held

    async def create(self, prompt: AgentPrompt) -> AgentModelResult:
        await asyncio.sleep(0)
        return self.held.create(prompt)

    async def create_stream(self, prompt: AgentPrompt, listener: Any = None) -> AgentModelResult:
        await asyncio.sleep(0)
        return self.held.create_stream(prompt, listener)

    async def execute(self, call: AgentToolCall) -> Json:
        await asyncio.sleep(0)
        return self.held.execute(call)


class Waited:
    """One of our async classes, called as if it were the plain one."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*args: Any) -> Any:
            return await getattr(self.held, name)(*args)

        return lambda *args: asyncio.run(call(*args))


Made = Callable[[Any, ResumeCache], Any]


@pytest.fixture(params=["threads", "loop"])
def model_over(request: pytest.FixtureRequest) -> Made:
    if request.param == "threads":
        return ResumableModelClient
    return lambda delegate, cache: Waited(AsyncResumableModelClient(OnLoop(delegate), cache))


@pytest.fixture(params=["threads", "loop"])
def tools_over(request: pytest.FixtureRequest) -> Made:
    if request.param == "threads":
        return ResumableToolExecutor
    return lambda delegate, cache: Waited(AsyncResumableToolExecutor(OnLoop(delegate), cache))


# --- ai4j's assertions ----------------------------------------------------------------------------------------------------


def test_a_second_run_asks_nobody_and_gets_the_same_object(model_over: Made) -> None:
    model, cache = Model(), ResumeCache()
    first = [model_over(model, cache).create(AgentPrompt("m", text)) for text in ("a", "b")]
    second = [model_over(model, cache).create(AgentPrompt("m", text)) for text in ("a", "b")]
    assert model.asked == 2
    assert all(x is y for x, y in zip(first, second, strict=True))
    assert (cache.model_hits, cache.model_misses) == (2, 2)


def test_after_a_crash_before_the_last_step_one_call_is_made(model_over: Made) -> None:
    model, cache = Model(), ResumeCache()
    client = model_over(model, cache)
    prompts = [AgentPrompt("m", text) for text in ("a", "b", "c")]
    for prompt in prompts:
        client.create(prompt)
    cache.remove_last_model_entry()
    for prompt in prompts:
        client.create(prompt)
    assert model.asked == 3 + 1


def test_three_equal_tool_calls_are_one_effect_and_another_argument_is_another_call(tools_over: Made) -> None:
    tools, cache = Tools(), ResumeCache()
    executor = tools_over(tools, cache)
    for call_id in ("c1", "c2", "c3"):
        assert executor.execute(AgentToolCall("charge", '{"eur": 5, "to": "x"}', call_id)) == "done"
    executor.execute(AgentToolCall("charge", '{"to": "x",  "eur": 5}', "c4"))
    assert len(tools.effects) == 1
    executor.execute(AgentToolCall("charge", '{"eur": 6, "to": "x"}', "c5"))
    assert len(tools.effects) == 2
    assert (cache.tool_hits, cache.tool_misses) == (3, 2)


def test_another_process_goes_on_with_the_saved_cache(tmp_path: Path, model_over: Made, tools_over: Made) -> None:
    path = tmp_path / "resume.json"
    cache = ResumeCache.load_from_json(path)
    call = AgentToolCall("charge", {"eur": 5}, "c1")
    before = model_over(Model(), cache).create(PROMPT), tools_over(Tools(), cache).execute(call)
    cache.save_to_json(path)

    model, tools, loaded = Model(), Tools(), ResumeCache.load_from_json(path)
    after = model_over(model, loaded).create(PROMPT), tools_over(tools, loaded).execute(call)
    assert (after, model.asked, tools.effects) == (before, 0, [])


# --- what ai4j gets wrong -------------------------------------------------------------------------------------------------


def test_a_tool_that_gives_none_is_not_run_again(tools_over: Made) -> None:
    tools = Tools(output=None)
    executor = tools_over(tools, ResumeCache())
    assert [executor.execute(AgentToolCall("notify")) for _ in range(2)] == [None, None]
    assert len(tools.effects) == 1


@pytest.mark.parametrize("output", ["TOOL_ERROR: no such city", AgentToolResult("weather", error="no such city")])
def test_what_tells_of_a_failure_is_handed_on_and_the_next_call_runs(tools_over: Made, output: Json) -> None:
    tools = Tools(output)
    executor = tools_over(tools, ResumeCache())
    assert executor.execute(AgentToolCall("weather")) == output
    tools.output = "rain"
    assert [executor.execute(AgentToolCall("weather")) for _ in range(2)] == ["rain", "rain"]
    assert len(tools.effects) == 2


def test_what_is_raised_reaches_the_caller_as_it_is_and_is_not_kept(tools_over: Made) -> None:
    error = KeyError("no such city")
    tools = Tools(error)
    executor = tools_over(tools, ResumeCache())
    with pytest.raises(KeyError) as caught:
        executor.execute(AgentToolCall("weather"))
    assert caught.value is error
    tools.output = "rain"
    assert executor.execute(AgentToolCall("weather")) == "rain"


def test_how_the_answer_is_brought_is_no_part_of_the_question(model_over: Made) -> None:
    model = Model()
    client = model_over(model, ResumeCache())
    client.create(replace(PROMPT, stream=False))
    client.create_stream(replace(PROMPT, stream=True))
    assert model.asked == 1


def test_a_growing_list_does_not_change_what_was_asked(model_over: Made) -> None:
    model = Model()
    client, items = model_over(model, ResumeCache()), [{"role": "user", "content": "a"}]
    client.create(AgentPrompt("m", items))
    items.append({"role": "user", "content": "b"})
    client.create(AgentPrompt("m", items))
    client.create(AgentPrompt("m", items[:1]))
    assert model.asked == 2


# --- streams --------------------------------------------------------------------------------------------------------------


def replayed(chunks: list[AgentModelChunk]) -> list[AgentModelChunk]:
    return [replace(chunk, replayed=True) for chunk in chunks]


@pytest.mark.parametrize("through_a_file", [False, True])
def test_a_hit_gives_the_listener_the_same_pieces_on_every_channel(
    tmp_path: Path, model_over: Made, through_a_file: bool
) -> None:
    model, cache, first, second = Model(), ResumeCache(), Ear(), Ear()
    live = model_over(model, cache).create_stream(PROMPT, first)
    if through_a_file:
        cache.save_to_json(tmp_path / "resume.json")
        cache = ResumeCache.load_from_json(tmp_path / "resume.json")
    again = model_over(model, cache).create_stream(PROMPT, second)
    assert (first.chunks, second.chunks) == (CHUNKS, replayed(CHUNKS))
    assert (again, model.asked) == (live, 1)
    model_over(model, cache).create_stream(PROMPT)
    assert model.asked == 1, "nobody needs to listen"


def test_an_answer_that_was_not_streamed_is_heard_in_one_piece_per_thing_said(model_over: Made) -> None:
    model, cache, ear = Model(), ResumeCache(), Ear()
    model_over(model, cache).create(PROMPT)
    model_over(model, cache).create_stream(PROMPT, ear)
    assert ear.chunks == replayed(
        [
            AgentModelChunk("reasoning", "Hm"),
            AgentModelChunk("text", "Yes."),
            AgentModelChunk("tool_call", "{}", 0, "weather", "c1"),
            AgentModelChunk("usage", data={"total_tokens": 3}),
            AgentModelChunk("finish", "tool_calls"),
        ]
    )


def test_after_a_stream_broke_off_the_listener_is_told_before_the_first_live_piece(model_over: Made) -> None:
    cache, first, second, third = ResumeCache(), Ear(), Ear(), Ear()
    with pytest.raises(ConnectionError):
        model_over(Model(breaks=2), cache).create_stream(PROMPT, first)
    assert first.chunks == CHUNKS[:2]
    model = Model()
    model_over(model, cache).create_stream(PROMPT, second)
    assert second.chunks == [AgentModelChunk("restart", "Ye"), *CHUNKS]
    model_over(model, cache).create_stream(PROMPT, third)
    assert (third.chunks, model.asked) == (replayed(CHUNKS), 1)


@pytest.mark.parametrize("reasons", [["length"], []], ids=["cut for its length", "without an end"])
def test_a_stream_that_is_not_whole_is_not_kept(model_over: Made, reasons: list[str]) -> None:
    model = Model(replace(RESULT, finish_reasons=reasons))
    client = model_over(model, ResumeCache())
    client.create_stream(PROMPT, Ear())
    client.create_stream(PROMPT, Ear())
    assert model.asked == 2


def test_a_listener_on_an_event_loop_may_wait() -> None:
    heard: list[str] = []

    class Slow:
        async def on_chunk(self, chunk: AgentModelChunk) -> None:
            await asyncio.sleep(0)
            heard.append(chunk.channel)

    cache = ResumeCache()
    cache.record_model(PROMPT, replace(RESULT, chunks=CHUNKS))
    asyncio.run(AsyncResumableModelClient(OnLoop(Model()), cache).create_stream(PROMPT, Slow()))
    assert heard == [chunk.channel for chunk in CHUNKS]


def test_a_listener_that_raises_ends_a_live_stream_and_nothing_is_kept() -> None:
    class Enough(BaseException):
        pass

    class Deaf:
        def on_chunk(self, chunk: AgentModelChunk) -> None:
            raise Enough

    model, cache = Model(), ResumeCache()
    with pytest.raises(Enough):
        ResumableModelClient(model, cache).create_stream(PROMPT, Deaf())
    ResumableModelClient(model, cache).create(PROMPT)
    assert model.asked == 2


# --- many at once ---------------------------------------------------------------------------------------------------------


def test_equal_calls_at_once_are_one_effect() -> None:
    tools, cache = Tools(), ResumeCache()
    executor = ResumableToolExecutor(tools, cache)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: executor.execute(AgentToolCall("charge")), range(64)))
    assert len(tools.effects) == 1

    async def gathered() -> None:
        of_loop = AsyncResumableToolExecutor(OnLoop(tools), cache)
        await asyncio.gather(*(of_loop.execute(AgentToolCall("charge", {"n": n % 4})) for n in range(64)))

    asyncio.run(gathered())
    assert len(tools.effects) == 1 + 4


# --- whoever answers in this process --------------------------------------------------------------------------------------


class Answers:
    """An answerer of tool calls that keeps what it was asked and told."""

    def __init__(self, answer: ToolOutcome | Pass | BaseException = PASS) -> None:
        self.given = answer
        self.asked: list[ToolAsked] = []
        self.told: list[ToolOutcome] = []

    def answer(self, call: ToolAsked) -> ToolOutcome | ToolAsked | Pass:
        self.asked.append(call)
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given

    def returned(self, call: ToolAsked, outcome: ToolOutcome) -> None:
        self.told.append(outcome)

    def cancelled(self, call: ToolAsked, error: BaseException) -> None:
        raise AssertionError("nothing was cut off")


def test_a_call_that_is_not_in_the_cache_passes_the_point_of_interception(tools_over: Made) -> None:
    answers, tools, cache = Answers(), Tools(), ResumeCache()
    with using(tools=answers):
        executor = tools_over(tools, cache)
        for _ in range(2):
            assert executor.execute(AgentToolCall("charge", '{"eur": 5}', "c1")) == "done"
    assert [(a.name, a.arguments, a.call_id) for a in answers.asked] == [("charge", {"eur": 5}, "c1")]
    assert ([o.value for o in answers.told], len(tools.effects)) == (["done"], 1)


def test_a_recorded_outcome_is_handed_out_and_a_refusal_gets_through(tools_over: Made) -> None:
    tools = Tools()
    with using(tools=Answers(ToolOutcome("recorded"))):
        assert tools_over(tools, ResumeCache()).execute(AgentToolCall("charge")) == "recorded"
    with using(tools=Answers(UnknownOutcomeError("charge was begun"))), pytest.raises(UnknownOutcomeError):
        tools_over(tools, ResumeCache()).execute(AgentToolCall("charge"))
    assert tools.effects == []


# --- real clients ---------------------------------------------------------------------------------------------------------

ASKS = Turn(
    "Let me look.",
    tool_calls=[Call("weather", {"city": "Oslo"}, id="c1"), Call("trains", {"to": "Oslo"}, id="c2")],
    reasoning="I had better look.",
    usage=Usage(20, 9, cached=5, reasoning=3),
    when=When(step=1),
    times=0,
)
SCRIPT = [ASKS, Turn("It is {tool_results}.", when=When(step=2), times=0)]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(SCRIPT, seed="s") as running:
        yield running


def agent(model: Any, tools: Any, listener: Any) -> Any:
    """A hand-written agent; a model or tools of an event loop are waited for."""

    async def loop() -> str:
        items: list[Json] = list(PROMPT.items)
        while True:
            result = model.create_stream(AgentPrompt("m", items), listener)
            result = await result if inspect.isawaitable(result) else result
            if not result.tool_calls:
                return str(result.output_text)
            items += result.memory_items
            for call in result.tool_calls:
                output = tools.execute(call)
                output = await output if inspect.isawaitable(output) else output
                items.append(AgentToolResult(call.name, call.call_id, output).to_item())

    return asyncio.run(loop())


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("kind", ["threads", "loop"])
def test_the_example_of_the_seed_with_a_real_sdk(server: ScriptedServer, tmp_path: Path, api: str, kind: str) -> None:
    openai = pytest.importorskip("openai")
    options = {"base_url": server.base_url, "api_key": "none"}
    effects, ears = Tools("rain"), [Ear(), Ear()]

    def run(cache: ResumeCache, ear: Ear) -> Any:
        if kind == "threads":
            sdk = openai.OpenAI(**options)
            client = OpenAIChatClient(sdk) if api == "chat" else OpenAIResponsesClient(sdk)
            return agent(ResumableModelClient(client, cache), ResumableToolExecutor(effects, cache), ear)
        of_loop = openai.AsyncOpenAI(**options)
        model = AsyncOpenAIChatClient(of_loop) if api == "chat" else AsyncOpenAIResponsesClient(of_loop)
        tools = AsyncResumableToolExecutor(OnLoop(effects), cache)
        return agent(AsyncResumableModelClient(model, cache), tools, ear)

    cache = ResumeCache()
    assert run(cache, ears[0]) == "It is rain; rain."
    assert (len(server.requests), len(effects.effects)) == (2, 2)
    cache.save_to_json(tmp_path / "resume.json")
    loaded = ResumeCache.load_from_json(tmp_path / "resume.json")
    assert run(loaded, ears[1]) == "It is rain; rain."
    assert (len(server.requests), len(effects.effects)) == (2, 2)
    assert (loaded.model_hits, loaded.tool_hits, loaded.model_misses, loaded.tool_misses) == (2, 2, 0, 0)
    assert ears[1].chunks == replayed(ears[0].chunks)
    assert {"text", "reasoning", "tool_call", "usage", "finish"} <= {chunk.channel for chunk in ears[0].chunks}


@pytest.mark.parametrize("way", ["agent_run", "instrumentation", "both"])
def test_the_key_of_the_prompt_is_recorded_with_the_call(server: ScriptedServer, tmp_path: Path, way: str) -> None:
    openai = pytest.importorskip("openai")
    provider = TracerProvider()
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path))
    instrumentor = None
    if way != "agent_run":
        instrumentor = pytest.importorskip("opentelemetry.instrumentation.genai.openai").OpenAIInstrumentor()
        instrumentor.instrument(tracer_provider=provider)
    try:
        sdk = openai.OpenAI(base_url=server.base_url, api_key="none")
        client = ResumableModelClient(OpenAIChatClient(sdk), ResumeCache())
        if way == "instrumentation":
            client.create(PROMPT)
        else:
            run = agent_run("planner", tracer_provider=provider)
            with run, run.step() as step, step.model_call("Will it rain?") as call:
                call.response(client.create(PROMPT))
    finally:
        if instrumentor is not None:
            instrumentor.uninstrument()
        provider.shutdown()
    (record,) = [r for r in read_nodes(tmp_path) if r.node_type is NodeType.MODEL]
    assert record.keys == {"prompt": prompt_key(KeyRing.of(tmp_path), PROMPT)}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_from_the_cache_is_recorded_as_one_and_costs_nothing(tmp_path: Path, stream: bool) -> None:
    provider = TracerProvider()
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path))
    cache, model = (
        ResumeCache(),
        Model(replace(RESULT, raw_response={"usage": {"input_tokens": 7, "output_tokens": 3}})),
    )
    client = ResumableModelClient(model, cache)
    with agent_run("planner", tracer_provider=provider) as run:
        for _ in range(2):
            with run.step() as step, step.model_call(PROMPT) as call:
                call.response(client.create_stream(PROMPT, Ear()) if stream else client.create(PROMPT))
    provider.shutdown()
    live, cached = read_nodes(tmp_path)
    assert (model.asked, live.answered_from, cached.answered_from) == (1, None, {"cache": "content"})
    assert stats_of(fold(Recording(tmp_path))).tokens.input == 7


# --- a recording goes on --------------------------------------------------------------------------------------------------


def shop(executor: Any, recorder: Recorder) -> list[Json]:
    """Three calls of an agent."""
    calls = [AgentToolCall("charge", {"order": order}, f"call-{order}") for order in ("a", "b", "c")]
    with recorder, agent_run("shop", session_id="s1") as run, run.step():
        return [executor.execute(call) for call in calls]


def test_a_cache_of_a_recording_goes_on_and_stops_at_what_nobody_knows(tmp_path: Path, otel_globals: None) -> None:
    class Cut(Tools):
        def execute(self, call: AgentToolCall) -> Json:
            super().execute(call)
            if call.parsed["order"] == "c":
                raise KeyboardInterrupt
            return {"receipt": call.parsed["order"]}

    tools = Cut()
    with pytest.raises(KeyboardInterrupt):
        shop(ResumableToolExecutor(tools, ResumeCache()), configure(tmp_path / "rec"))
    assert len(tools.effects) == 3
    forget_attempts()
    STOPPED.clear()

    cache = ResumeCache.from_recording(tmp_path / "rec")
    with pytest.raises(UnknownOutcomeError, match="charge"):
        shop(ResumableToolExecutor(tools, cache), configure(tmp_path / "rec"))
    assert len(tools.effects) == 3
    assert (cache.tool_hits, cache.tool_misses) == (2, 0)


BREAKING = """
import os, signal, sys
from otel_agentrec import AgentModelChunk, AgentPrompt, ResumableModelClient, ResumeCache, agent_run, configure

class Model:
    def create_stream(self, prompt, listener):
        listener.on_chunk(AgentModelChunk("text", "Ye"))
        if sys.argv[2] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ConnectionError("the stream broke off")

prompt = AgentPrompt("m", "Will it rain?")
with configure(sys.argv[1]), agent_run("planner") as run, run.step() as step, step.model_call(prompt) as call:
    ResumableModelClient(Model(), ResumeCache()).create_stream(prompt, call)
"""


@pytest.mark.parametrize(("how", "said"), [("killed", ""), ("broken", "Ye")])
def test_a_stream_that_a_crash_cut_is_told_of_before_the_first_live_piece(tmp_path: Path, how: str, said: str) -> None:
    argv = [sys.executable, "-c", BREAKING, str(tmp_path / "rec"), how]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": "."})
    assert done.returncode == (-signal.SIGKILL if how == "killed" else 1), done.stderr
    model, ear = Model(), Ear()
    ResumableModelClient(model, ResumeCache.from_recording(tmp_path / "rec")).create_stream(PROMPT, ear)
    assert ear.chunks == [AgentModelChunk("restart", said), *CHUNKS]
    assert model.asked == 1

"""ResumeCache: what was done is answered, what was not is done; ai4j's own assertions first."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_agentrec.errors import AgentRecError, UsageError
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt, AgentToolCall, AgentToolResult
from otel_agentrec.records import NodeType
from otel_agentrec.resume.cache import ResumeCache
from otel_agentrec.resume.requests import WireRequest

MISS = object()


class Model:
    """A model that counts how often it is really asked."""

    def __init__(self) -> None:
        self.asked = 0

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        self.asked += 1
        return AgentModelResult(output_text=f"answer {self.asked} to {prompt.items[-1]['content']}")


def ask(cache: ResumeCache, model: Model, *texts: str) -> list[AgentModelResult]:
    prompts = [AgentPrompt(model="m", items=text) for text in texts]
    return [cache.answer_model(p, lambda p=p: model.create(p)) for p in prompts]


def call(cache: ResumeCache, done: list[str], name: str, arguments: Any, call_id: str | None = None) -> Any:
    def execute() -> str:
        done.append(f"{name} {arguments}")
        return f"done {len(done)}"

    return cache.answer_tool(AgentToolCall(name, arguments, call_id), execute)


# --- the seed's ---------------------------------------------------------------------------------------------------------


def test_a_second_run_makes_no_real_call_and_gets_the_same_objects() -> None:
    cache, model = ResumeCache(), Model()
    first = ask(cache, model, "a", "b")
    assert (cache.model_hits, cache.model_misses, model.asked) == (0, 2, 2)
    second = ask(cache, model, "a", "b")
    assert (cache.model_hits, cache.model_misses, model.asked) == (2, 2, 2)
    assert all(x is y for x, y in zip(first, second, strict=True))


def test_a_crash_before_the_last_step_costs_exactly_one_call() -> None:
    cache, model = ResumeCache(), Model()
    ask(cache, model, "a", "b", "c")
    assert cache.remove_last_model_entry()
    ask(cache, model, "a", "b", "c")
    assert model.asked == 4
    assert (cache.model_hits, cache.model_misses) == (2, 4)
    assert not ResumeCache().remove_last_model_entry()


def test_three_equal_tool_calls_have_one_effect_and_a_changed_argument_is_another() -> None:
    cache, done = ResumeCache(), []
    results = [call(cache, done, "charge", '{"eur": 5, "to": "a"}', f"call_{n}") for n in range(3)]
    assert (results, len(done)) == (["done 1"] * 3, 1)
    assert call(cache, done, "charge", {"to": "a", "eur": 5}) == "done 1", "JSON text and its value are one call"
    assert call(cache, done, "charge", '{"eur": 6, "to": "a"}') == "done 2"
    assert (cache.tool_hits, cache.tool_misses) == (3, 2)


def test_saved_and_loaded_it_answers_the_same(tmp_path: Path) -> None:
    cache, model, done = ResumeCache(), Model(), []
    answers = ask(cache, model, "a", "b")
    call(cache, done, "charge", '{"n":12345678901234567890}')
    cache.record_model({"model": "m", "messages": ["x"]}, {"plain": ["json", 2**70]})
    path = tmp_path / "deep" / "resume.json"
    cache.save_to_json(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]

    loaded = ResumeCache.load_from_json(path)
    assert ask(loaded, model, "a", "b") == answers
    assert call(loaded, done, "charge", '{"n": 12345678901234567890}') == "done 1"
    assert call(loaded, done, "charge", '{"n":12345678901234567891}') == "done 2"
    assert loaded.lookup_model({"messages": ["x"], "model": "m"}) == {"plain": ["json", 2**70]}
    assert (model.asked, loaded.model_hits, loaded.tool_hits) == (2, 3, 1)


def test_an_empty_cache_is_one_all_the_same() -> None:
    cache = ResumeCache()
    assert len(cache) == 0
    assert cache, "`if cache:` must not send an effect past it"


def test_an_absent_file_is_an_empty_cache(tmp_path: Path) -> None:
    cache = ResumeCache.load_from_json(tmp_path / "nothing.json")
    assert len(cache) == 0
    assert ask(cache, Model(), "a")


# --- beyond it ------------------------------------------------------------------------------------------------------------


def test_a_tool_that_gives_none_is_not_run_again(tmp_path: Path) -> None:
    cache, done = ResumeCache(), []
    for _ in range(2):
        assert cache.answer_tool(AgentToolCall("t"), lambda: done.append(1)) is None
    assert len(done) == 1
    cache.save_to_json(tmp_path / "c.json")
    loaded = ResumeCache.load_from_json(tmp_path / "c.json")
    assert loaded.lookup_tool(AgentToolCall("t"), MISS) is None
    assert loaded.lookup_tool(AgentToolCall("u"), MISS) is MISS


@pytest.mark.parametrize(
    "error", ["TOOL_ERROR: no network", AgentToolResult("t", ok=False), AgentToolResult("t", error="e")]
)
def test_what_tells_of_a_failure_is_no_answer(error: Any) -> None:
    cache, made = ResumeCache(), []
    for _ in range(2):
        cache.answer_tool(AgentToolCall("t"), lambda: made.append(1) or error)
    assert len(made) == 2
    kept = ResumeCache(cacheable=lambda kind, value: True)
    kept.record_tool(AgentToolCall("t"), error)
    assert kept.lookup_tool(AgentToolCall("t")) is error


def test_what_is_raised_reaches_the_caller_and_is_not_kept() -> None:
    cache, done = ResumeCache(), []

    def fails() -> str:
        raise ConnectionError("lost")

    with pytest.raises(ConnectionError):
        cache.answer_tool(AgentToolCall("t", "{}"), fails)
    assert call(cache, done, "t", "{}") == "done 1"


def test_a_stream_that_was_cut_for_its_length_is_no_answer() -> None:
    cache = ResumeCache()
    chunks = [AgentModelChunk("text", "Once")]
    cache.record_model({"a": 1}, AgentModelResult("Once", finish_reasons=["length"], chunks=chunks))
    cache.record_model({"a": 2}, AgentModelResult("Once", finish_reasons=["length"]))
    cache.record_model({"a": 3}, AgentModelResult("Once", finish_reasons=["stop"], chunks=chunks))
    assert [cache.lookup_model({"a": n}) is not None for n in (1, 2, 3)] == [False, True, True]


def test_a_stream_and_its_chunks_come_back_from_a_file(tmp_path: Path) -> None:
    cache = ResumeCache()
    prompt = AgentPrompt(model="m", items="hi", stream=True)
    result = AgentModelResult("Hallo", chunks=[AgentModelChunk("text", "Ha"), AgentModelChunk("text", "llo")])
    cache.record_model(prompt, result)
    cache.save_to_json(tmp_path / "c")
    loaded = ResumeCache.load_from_json(tmp_path / "c")
    assert loaded.lookup_model(AgentPrompt(model="m", items="hi")) == result, "how it is brought is not in the key"


def test_a_look_up_that_fails_is_a_miss_and_the_real_call_is_made() -> None:
    cycle: dict[str, Any] = {}
    cycle["me"] = cycle
    cache, made = ResumeCache(), []
    for _ in range(2):
        cache.answer_model(cycle, lambda: made.append(1))
        cache.answer_tool(object(), lambda: made.append(2))
    assert sorted(made) in ([1, 1, 2], [1, 1, 2, 2])
    assert cache.lookup_model(cycle, "none") == "none"


def test_a_prompt_that_is_changed_after_the_call_was_made_is_kept_as_it_was_asked(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "a"}]
    cache = ResumeCache()
    cache.answer_model({"messages": messages}, lambda: messages[0].update(content="changed") or "answer")
    cache.save_to_json(tmp_path / "c")
    loaded = ResumeCache.load_from_json(tmp_path / "c")
    assert loaded.lookup_model({"messages": [{"role": "user", "content": "a"}]}) == "answer"
    assert loaded.lookup_model({"messages": messages}) is None


def test_a_growing_conversation_is_not_held_once_per_call() -> None:
    cache, said = ResumeCache(), "x" * 10_000
    messages: list[str] = []
    for n in range(60):
        messages.append(f"{n}{said}")
        cache.record_model({"messages": list(messages)}, "ok")
    assert sum(map(len, cache._shelf.store._seen)) < 70 * 10_100


def test_call_ids_that_a_framework_makes_anew_are_found_by_the_second_look_up() -> None:
    def wire(call_id: str) -> WireRequest:
        messages = [{"role": "assistant", "tool_calls": [{"id": call_id}]}, {"role": "tool", "tool_call_id": call_id}]
        return WireRequest("POST", "/v1/chat/completions", json.dumps({"messages": messages}).encode(), "openai.chat")

    cache = ResumeCache()
    cache.record_model(wire("a"), "answer")
    same, other = cache.find_model(wire("a")), cache.find_model(wire("b"))
    assert same is not None and other is not None
    assert (same.value, same.aliased, other.value, other.aliased) == ("answer", False, "answer", True)
    assert cache.lookup_model(json.loads(wire("a").body)) is None, "schemes never answer one another"  # type: ignore[arg-type]


def test_declared_paths_are_inert_and_a_file_with_another_list_is_keyed_anew(tmp_path: Path) -> None:
    cache = ResumeCache(inert=["$.user"])
    cache.record_model({"model": "m", "user": "a"}, 1)
    assert cache.lookup_model({"model": "m", "user": "b"}) == 1
    cache.save_to_json(tmp_path / "c")
    assert ResumeCache.load_from_json(tmp_path / "c").lookup_model({"model": "m", "user": "b"}) == 1
    strict = ResumeCache.load_from_json(tmp_path / "c", inert=())
    assert strict.lookup_model({"model": "m", "user": "b"}) is None
    assert strict.lookup_model({"model": "m", "user": "a"}) == 1


def test_another_secret_changes_the_keys_and_not_the_answers() -> None:
    cache = ResumeCache()
    cache.record_model({"a": 1}, "x")
    cache.record_tool(AgentToolCall("t", "{}"), "y")
    ring = KeyRing.random()
    cache.adopt(ring)
    assert (cache.lookup_model({"a": 1}), cache.lookup_tool(AgentToolCall("t", {}))) == ("x", "y")
    assert all(ring.made(key) for kind in NodeType for entry in cache.entries(kind) for key in entry.keys)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":"agentrec-resume-cache/1"}', '{"format":"other"}'])
def test_a_file_that_is_no_cache_is_refused_with_a_hint(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(UsageError, match="no saved ResumeCache"):
        ResumeCache.load_from_json(tmp_path / "c.json")


def test_what_would_not_come_back_as_it_was_is_left_out_of_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ResumeCache()
    cache.record_tool(AgentToolCall("t", "1"), (1, 2))
    cache.record_tool(AgentToolCall("t", "2"), {"nan": 1, "raw": b"\xff", "big": 2**80, "$x": 1})
    with caplog.at_level("WARNING", "otel_agentrec"):
        cache.save_to_json(tmp_path / "c")
    assert "a tuple can't be written as JSON" in caplog.text
    loaded = ResumeCache.load_from_json(tmp_path / "c")
    assert loaded.lookup_tool(AgentToolCall("t", "1")) is None
    assert loaded.lookup_tool(AgentToolCall("t", "2")) == {"nan": 1, "raw": b"\xff", "big": 2**80, "$x": 1}


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ResumeCache()
    cache.record_tool(AgentToolCall("t"), 1)
    cache.save_to_json(tmp_path / "c")
    cache.record_tool(AgentToolCall("u"), 2)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        cache.save_to_json(tmp_path / "c")
    monkeypatch.undo()
    assert len(ResumeCache.load_from_json(tmp_path / "c")) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_an_unknown_match_is_refused() -> None:
    with pytest.raises(ValueError, match="'content' or 'occurrence'"):
        ResumeCache("contents")  # type: ignore[arg-type]


# --- occurrence -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abc"), max_size=12))
@settings(max_examples=50)
def test_k_recorded_calls_give_k_answers_in_order_and_then_a_miss(names: list[str]) -> None:
    cache = ResumeCache("occurrence")
    for n, name in enumerate(names):
        cache.record_tool(AgentToolCall(name, "{}"), n)
    assert all(cache.lookup_tool(AgentToolCall(name, "{}"), MISS) is MISS for name in "abc"), (
        "made by this process itself"
    )
    cache.rewind()
    for name in "abc":
        recorded = [n for n, x in enumerate(names) if x == name]
        got = [cache.lookup_tool(AgentToolCall(name, "{}"), MISS) for _ in recorded]
        assert got == recorded
        assert cache.lookup_tool(AgentToolCall(name, "{}"), MISS) is MISS


def test_polling_a_tool_twice_stays_two_calls() -> None:
    cache, done = ResumeCache("occurrence"), []
    assert [call(cache, done, "poll", "{}") for _ in range(2)] == ["done 1", "done 2"]
    cache.rewind()
    assert [call(cache, done, "poll", "{}") for _ in range(3)] == ["done 1", "done 2", "done 3"]


def test_of_equal_calls_the_one_with_the_same_call_id_is_meant() -> None:
    cache = ResumeCache("occurrence")
    for call_id in ("c1", "c2", "c3"):
        cache.record_tool(AgentToolCall("t", "{}", call_id), call_id)
    cache.rewind()
    got = [cache.lookup_tool(AgentToolCall("t", "{}", call_id)) for call_id in ("c2", "new", "c3", "c1")]
    assert got == ["c2", "c1", "c3", None]


@given(st.lists(st.tuples(st.text(max_size=3), st.integers()), max_size=6), st.sampled_from(["content", "occurrence"]))
@settings(max_examples=30)
def test_a_file_round_trip_changes_no_answer(
    tmp_path_factory: pytest.TempPathFactory, calls: list[Any], match: Any
) -> None:
    cache = ResumeCache(match)
    for n, (name, argument) in enumerate(calls):
        cache.record_tool(AgentToolCall(name, {"x": argument}), n)
        cache.record_model({"x": [name, argument]}, n)
    cache.rewind()
    path = tmp_path_factory.mktemp("c") / "c"
    cache.save_to_json(path)
    loaded = ResumeCache.load_from_json(path)
    assert loaded.match == match
    for name, argument in calls:
        for look_up, asked in (
            ("lookup_tool", AgentToolCall(name, {"x": argument})),
            ("lookup_model", {"x": [name, argument]}),
        ):
            expected = getattr(cache, look_up)(asked, MISS)
            assert expected is not MISS
            assert getattr(loaded, look_up)(asked, MISS) == expected


# --- many at once ---------------------------------------------------------------------------------------------------------


def test_eight_threads_with_a_thousand_calls_execute_nothing_twice() -> None:
    cache = ResumeCache()
    done: list[int] = []

    def work(seed: int) -> None:
        for n in range(1_000):
            k = (n * 7 + seed * 131) % 40
            value = cache.answer_tool(
                AgentToolCall("t", {"k": k}), lambda k=k: (time.sleep(0.0005), done.append(k), k)[2]
            )
            assert value == k

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == list(range(40))
    assert (cache.tool_misses, cache.tool_hits) == (40, 8_000 - 40)


def test_two_hundred_tasks_execute_nothing_twice() -> None:
    cache = ResumeCache()
    done: list[int] = []

    async def execute(k: int) -> int:
        await asyncio.sleep(0.002)
        done.append(k)
        return k

    async def main() -> list[int]:
        ask = [
            cache.answer_tool_async(AgentToolCall("t", {"k": n % 10}), lambda n=n: execute(n % 10)) for n in range(200)
        ]
        return await asyncio.gather(*ask)

    assert asyncio.run(main()) == [n % 10 for n in range(200)]
    assert sorted(done) == list(range(10))


def test_threads_wait_for_a_task_and_tasks_for_a_thread() -> None:
    cache, done = ResumeCache(), []
    begun = threading.Event()

    def slow() -> str:
        begun.set()
        time.sleep(0.05)
        done.append("thread")
        return "from the thread"

    async def never() -> str:
        raise AssertionError("asked twice")

    thread = threading.Thread(target=lambda: cache.answer_tool(AgentToolCall("t"), slow))
    thread.start()
    begun.wait(10)
    assert asyncio.run(cache.answer_tool_async(AgentToolCall("t"), never)) == "from the thread"
    thread.join()
    assert done == ["thread"]


def test_when_one_fails_one_of_those_that_waited_tries_again() -> None:
    cache, tries = ResumeCache(), []

    async def flaky() -> str:
        tries.append(1)
        await asyncio.sleep(0.005)
        if len(tries) == 1:
            raise ConnectionError("lost")
        return "ok"

    async def main() -> list[Any]:
        ask = [cache.answer_model_async({"a": 1}, flaky) for _ in range(5)]
        return await asyncio.gather(*ask, return_exceptions=True)

    got = asyncio.run(main())
    assert len(tries) == 2
    assert sorted(map(str, got)) == ["lost", "ok", "ok", "ok", "ok"]


def test_a_cancelled_call_lets_the_next_one_go() -> None:
    cache = ResumeCache()

    async def main() -> str:
        async def hangs() -> str:
            await asyncio.sleep(60)
            return "late"

        async def quick() -> str:
            return "now"

        first = asyncio.create_task(cache.answer_model_async({"a": 1}, hangs))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(cache.answer_model_async({"a": 1}, quick))
        third = asyncio.create_task(cache.answer_model_async({"a": 1}, quick))
        await asyncio.sleep(0.01)
        third.cancel()
        first.cancel()
        return await asyncio.wait_for(second, 5)

    assert asyncio.run(main()) == "now"


def test_a_tool_that_calls_itself_with_the_same_arguments_does_not_wait_for_itself() -> None:
    cache, depth = ResumeCache(), []

    def again() -> str:
        depth.append(1)
        return "end" if len(depth) == 2 else str(cache.answer_tool(AgentToolCall("t"), again))

    assert cache.answer_tool(AgentToolCall("t"), again) == "end"


def test_a_plain_function_on_a_loop_does_not_wait_for_a_task_of_that_loop() -> None:
    cache = ResumeCache()

    async def slow() -> str:
        await asyncio.sleep(0.05)
        return "ok"

    async def main() -> str:
        task = asyncio.create_task(cache.answer_tool_async(AgentToolCall("t"), slow))
        await asyncio.sleep(0)
        with pytest.raises(AgentRecError, match="event loop"):
            cache.answer_tool(AgentToolCall("t"), lambda: "twice")
        return await task

    assert asyncio.run(main()) == "ok"

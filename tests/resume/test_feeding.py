"""A cache that is fed with what a recorder sees, so that a program need not record anything itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec import AgentRecSpanProcessor, agent_run, read_nodes
from otel_agentrec.nodes.keys import KeyRing, prompt_key, tool_key
from otel_agentrec.prompts import AgentModelResult, AgentPrompt, AgentToolCall
from otel_agentrec.records import NodeType
from otel_agentrec.resume.cache import ResumeCache

PROMPT = AgentPrompt(model="m", items="What is 2+2?", temperature=0.5)
MISS = object()


class Recorded:
    """A provider whose spans feed a cache."""

    def __init__(self, path: Path, cache: ResumeCache, **settings: Any) -> None:
        self.path, self.cache = path, cache
        self.provider = TracerProvider()
        self.processor = AgentRecSpanProcessor(path, resume_cache=cache, **settings)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("my.instrumentation")

    def close(self) -> None:
        self.provider.shutdown()
        self.processor.recorder.shutdown()

    def tool(self, name: str = "pay", arguments: Any = '{"eur": 5}', result: Any = "paid", **more: Any) -> None:
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": arguments,
            "gen_ai.tool.call.result": result,
            **more,
        }
        with self.tracer.start_as_current_span(
            "execute_tool", attributes={k: v for k, v in told.items() if v is not None}
        ):
            pass

    def model(self, prompt: Any = PROMPT, answer: str | None = "4", tool: Any = None) -> None:
        with agent_run("agent", tracer_provider=self.provider) as run, run.step() as step:
            with step.model_call(prompt) as call:
                if answer is not None:
                    call.response(
                        {"choices": [{"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}]}
                    )
            if tool is not None:
                with step.tool_call(*tool[:2]) as called:
                    called.result(tool[2])

    def looked_up(self, name: str = "pay", arguments: Any = None) -> Any:
        return self.cache.lookup_tool(AgentToolCall(name, {"eur": 5} if arguments is None else arguments), MISS)


@pytest.fixture(params=["written", "deferred"])
def recorded(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Recorded]:
    there = Recorded(tmp_path / "rec", ResumeCache(), durability=request.param)
    yield there
    there.close()


def settle(recorded: Recorded) -> None:
    recorded.provider.force_flush()


def test_a_tool_span_feeds_by_name_and_arguments(recorded: Recorded) -> None:
    recorded.tool()
    settle(recorded)
    assert recorded.looked_up() == "paid"
    assert recorded.looked_up(arguments='{"eur":6}') is MISS


def test_agent_run_hangs_the_key_of_its_prompt_on_the_span(recorded: Recorded) -> None:
    recorded.model(tool=("pay", {"eur": 5}, {"ok": True}))
    settle(recorded)
    hit = recorded.cache.lookup_model(PROMPT)
    assert isinstance(hit, AgentModelResult)
    assert (hit.output_text, hit.finish_reasons) == ("4", ["stop"])
    assert hit.raw_response["choices"][0]["message"]["content"] == "4"
    assert recorded.looked_up() == {"ok": True}
    assert recorded.cache.lookup_model(AgentPrompt(model="m", items="What is 2+3?", temperature=0.5)) is None


def test_the_keys_stand_in_the_recording_under_its_secret(recorded: Recorded) -> None:
    recorded.model(tool=("pay", {"eur": 5}, "paid"))
    recorded.close()
    model, tool = read_nodes(recorded.path)
    ring = KeyRing.of(recorded.path, create=False)
    assert model.keys == {"prompt": prompt_key(ring, PROMPT)}
    assert tool.keys == {"tool": tool_key(ring, "pay", {"eur": 5})}
    assert "agentrec.key.prompt" not in (model.attributes or {})


@pytest.mark.parametrize(
    "told",
    [
        {"arguments": '{"eur": 5, "password": "hunter2hunter2"}'},
        {"result": "the password=hunter2hunter2 is wrong"},
        {"result": None},
        {"arguments": None},
        {"error.type": "ValueError"},
    ],
    ids=["redacted arguments", "redacted result", "no result", "no arguments", "failed"],
)
def test_what_was_redacted_or_not_told_or_failed_feeds_nothing(recorded: Recorded, told: dict[str, Any]) -> None:
    recorded.tool(**told)
    settle(recorded)
    assert len(recorded.cache) == 0


def test_a_model_call_without_an_answer_feeds_nothing(recorded: Recorded) -> None:
    recorded.model(answer=None)
    settle(recorded)
    assert len(recorded.cache) == 0


def test_a_span_that_a_limit_cut_feeds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "12")
    there = Recorded(tmp_path / "rec", ResumeCache())
    there.tool(arguments='{"eur": 5, "to": "somebody"}', result="x")
    there.tool(arguments='{"eur": 5}', result="a result that is longer")
    there.close()
    assert len(there.cache) == 0


@pytest.mark.parametrize("match", ["content", "occurrence"])
def test_a_call_that_its_maker_and_its_span_tell_of_is_one(tmp_path: Path, match: Any) -> None:
    cache = ResumeCache(match)
    there = Recorded(tmp_path / "rec", cache)
    output = {"exactly": ("this", "object")}
    for _ in range(2):
        cache.answer_tool(AgentToolCall("pay", {"eur": 5}), lambda: there.tool(result="from the span") or output)
    there.close()
    cache.rewind()
    expected = [output] if match == "content" else [output, output]
    assert [e.value for e in cache.entries(NodeType.TOOL)] == expected
    assert there.looked_up() is output


def test_what_was_in_the_cache_before_is_still_found(tmp_path: Path) -> None:
    cache = ResumeCache()
    cache.record_tool(AgentToolCall("old", "{}"), "kept")
    there = Recorded(tmp_path / "rec", cache)
    again = AgentRecSpanProcessor(tmp_path / "rec", resume_cache=cache)
    there.tool()
    there.close()
    again.shutdown()
    assert (there.looked_up("old", {}), there.looked_up()) == ("kept", "paid")
    assert len(cache) == 2


def test_a_directory_that_can_not_hold_a_secret_still_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("otel_agentrec.nodes.keys.resume_key", refused)
    monkeypatch.setattr("otel_agentrec.nodes.keys.read_resume_key", refused)
    there = Recorded(tmp_path / "rec", ResumeCache())
    there.model(tool=("pay", {"eur": 5}, "paid"))
    there.close()
    assert [r.keys for r in read_nodes(tmp_path / "rec")] == [{}, {}]
    assert there.looked_up() == "paid", "a tool call is keyed by the cache itself"

"""``otel-agentrec compare``: recorded prompts, put to models by the real openai SDK."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec.capture.emit import agent_run
from otel_agentrec.capture.processors import AgentRecSpanProcessor
from otel_agentrec.cli import compare
from otel_agentrec.cli.app import run
from otel_agentrec.demo.script import Call, Turn, Usage, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.prompts import AgentModelResult, AgentPrompt

Out = pytest.CaptureFixture[str]
TOOLS = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]
FIRST = AgentPrompt("gpt-5-mini", "Will it rain?", system_prompt="Be brief.", tools=TOOLS)
SECOND = AgentPrompt("gpt-5-mini", "And tomorrow?")


def answer(tokens_in: int, tokens_out: int, **message: object) -> dict[str, object]:
    """An answer of OpenAI's chat completions."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {"choices": [choice], "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}}


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """One run with two model calls: one asks for a tool, one says something; and one whose prompt was not recorded."""
    provider = TracerProvider()
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path / "rec"))
    with agent_run("planner", tracer_provider=provider) as made:
        with made.step() as step, step.model_call(FIRST, provider="openai") as call:
            function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
            call.response(answer(10, 5, tool_calls=[{"id": "c1", "type": "function", "function": function}]))
        with made.step() as step, step.model_call(SECOND, provider="openai") as call:
            call.response(answer(1000, 10, content="It stays dry."))
    other, third = agent_run("other", tracer_provider=provider), AgentPrompt("gpt-5-mini", "Hello?")
    with other, other.step() as step, step.model_call(third, provider="openai") as call:
        call.response(AgentModelResult("Hello."))
    provider.shutdown()
    return str(tmp_path / "rec")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    pytest.importorskip("openai")
    turns = [
        Turn(tool_calls=[Call("weather", {"city": "Bergen"})], when=When(last="rain", model="b"), times=0),
        Turn(tool_calls=[Call("weather", {"city": "Oslo"})], when=When(last="rain"), times=0),
        Turn("no", status=400, when=When(last="tomorrow", model="b"), times=0),
        Turn("It stays wet.", usage=Usage(1000, 20), when=When(last="tomorrow"), times=0),
        Turn("Hello.", times=0),
    ]
    with ScriptedServer(turns) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield server


def planner(recording: str) -> str:
    from otel_agentrec.nodes.read import read_nodes

    return next(str(r.run_id) for r in read_nodes(recording) if r.agent_name == "planner")


def test_answers_stand_beside_the_recorded_ones(recording: str, server: ScriptedServer, capsys: Out) -> None:
    words = ["compare", recording, "--run", planner(recording), "--model", "a=gpt-5", "--model", "b", "--yes"]
    assert run(words) == 1, "one call failed, which did not stop the others"
    out, err = capsys.readouterr()
    assert "LIVE: 4 real calls: 2 prompts to a=gpt-5, b" in err and server.base_url in err
    assert 'b: $.toolCalls[0].arguments.city: "Oslo" -> "Bergen"' in out
    assert "a: It stays [-dry-]{+wet+}." in out
    assert "BadRequestError" in out and "failed" in out
    sums = [line.split() for line in out.splitlines()[-2:]]
    assert sums[0][:6] == ["a", "gpt-5", "2", "1", "of", "2"] and sums[1][:7] == ["b", "b", "2", "1", "0", "of", "1"]
    assert {r.body["model"] for r in server.requests if r.body} == {"gpt-5", "b"}
    asked = next(r.body for r in server.requests if r.body)
    assert [m["role"] for m in asked["messages"]] == ["system", "user"] and asked["tools"], "the whole recorded prompt"


def test_json_tells_everything(recording: str, server: ScriptedServer, capsys: Out) -> None:
    words = ["compare", recording, "--run", planner(recording), "--model", "gpt-5", "--repeats", "2", "--yes", "--json"]
    assert run(words) == 0, "different answers are no failure"
    told = json.loads(capsys.readouterr().out)
    assert (told["live"], told["calls"], [n["step"] for n in told["nodes"]]) == (True, 4, [1, 2])
    first, second = told["nodes"]
    assert [(t["repeat"], t["same"]) for t in first["trials"]] == [(1, True), (2, True)]
    assert first["recorded"]["toolCalls"] == [{"name": "weather", "arguments": {"city": "Oslo"}}]
    trial = second["trials"][0]
    assert trial["textDiff"] == [["=", "It stays "], ["-", "dry"], ["+", "wet"], ["=", "."]]
    assert (trial["callDiff"], trial["inputTokens"], trial["outputTokens"], trial["error"]) == ([], 1000, 20, None)
    (summary,) = told["summary"]
    assert (summary["calls"], summary["same"], summary["failed"]) == (4, 2, 0)
    pytest.importorskip("genai_prices")
    assert trial["usd"] > second["recorded"]["usd"] > 0, "twice the words of a dearer model"


def test_one_node_is_asked_again_of_its_own_model(recording: str, server: ScriptedServer, capsys: Out) -> None:
    node = f"model@{planner(recording)}"
    assert run(["compare", recording, "--node", node, "--yes"]) == 2
    assert "means more than one record" in capsys.readouterr().err
    from otel_agentrec.nodes.read import read_nodes

    (second,) = [r.record_id for r in read_nodes(recording) if r.output_text == "It stays dry."]
    assert run(["compare", recording, "--node", second, "--yes"]) == 0
    assert [r.body["model"] for r in server.requests if r.body] == ["gpt-5-mini"]


def test_real_calls_want_a_word(
    recording: str, server: ScriptedServer, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no terminal always; at a terminal when they are many."""
    assert run(["compare", recording]) == 2
    assert "give --yes" in capsys.readouterr().err and not server.requests

    class Terminal:
        def __init__(self, stream: object) -> None:
            self._stream = stream

        def __getattr__(self, name: str) -> object:
            return getattr(self._stream, name)

        def isatty(self) -> bool:
            return True

    asked: list[str] = []
    monkeypatch.setattr(sys, "stdin", Terminal(sys.stdin))
    monkeypatch.setattr(compare.click, "confirm", lambda text, **_: bool(asked.append(text)))
    monkeypatch.setattr(sys, "stderr", Terminal(sys.stderr))
    assert run(["compare", recording, "--repeats", "6"]) == 2
    assert asked == ["Go on?"] and not server.requests
    assert run(["compare", recording]) == 0, "one call is made without asking"
    assert (len(asked), len(server.requests)) == (1, 1)


def test_what_was_answered_before_an_interruption_is_printed(
    recording: str, server: ScriptedServer, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    from otel_agentrec.clients.ready import OpenAIChatClient

    create = OpenAIChatClient.create

    def interrupted(self: OpenAIChatClient, prompt: AgentPrompt) -> AgentModelResult:
        if prompt.model == "b":
            raise KeyboardInterrupt
        return create(self, prompt)

    monkeypatch.setattr(OpenAIChatClient, "create", interrupted)
    assert run(["compare", recording, "--model", "a", "--model", "b", "--yes", "--json"]) == 130
    told = json.loads(capsys.readouterr().out)
    assert [t["text"] for n in told["nodes"] for t in n["trials"]] == ["Hello."]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "x=", "--yes"], "names no model"),
        (["--model", "a=m", "--model", "a=n", "--yes"], "two models are called 'a'"),
        (["--node", "n", "--run", "r"], "can't be given together"),
        (["--run", "nothing", "--yes"], "nothing"),
    ],
)
def test_what_can_not_be_asked_is_refused(recording: str, capsys: Out, words: list[str], said: str) -> None:
    assert run(["compare", recording, *words]) == 2
    out, err = capsys.readouterr()
    assert said in err and not out


def test_a_missing_key_is_one_line(recording: str, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert run(["compare", recording, "--client", "openai", "--yes"]) == 2
    err = capsys.readouterr().err
    assert "set OPENAI_API_KEY" in err and "Traceback" not in err


def test_a_changed_recording_is_not_asked_from(recording: str, server: ScriptedServer, capsys: Out) -> None:
    (content,) = Path(recording).glob("*.content.jsonl")
    content.write_bytes(content.read_bytes().replace(b"And tomorrow", b"And yesterday"))
    assert run(["compare", recording, "--run", planner(recording), "--yes"]) == 1
    assert "not as it was written" in capsys.readouterr().err and not server.requests

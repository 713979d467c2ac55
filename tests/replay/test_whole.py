"""A whole run once more, in this process: the same, or stopped at the first thing that differs."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from openai import OpenAI

from otel_agentrec import agent_run, configure, replaying, resumable_tool
from otel_agentrec.demo.script import Turn
from otel_agentrec.errors import (
    CannotReplay,
    RecordingBusy,
    RecordingEnds,
    RecordingTampered,
    ReplayDivergence,
    ToolNotIntercepted,
)
from otel_agentrec.intercept.active import ACTIVE, Active
from tests.cases.case import ingested

from .agent import ASK, Tools, in_agent, loop, recording


def recorded(path: Path, run: Callable[[OpenAI, Tools], str] = in_agent) -> tuple[OpenAI, str]:
    """Record one run; gives its client, whose server is gone, and what came of it."""
    with recording(path) as client:
        return client, run(client, Tools())


@pytest.mark.parametrize("run", [loop, in_agent])
def test_it_is_the_same_and_nothing_is_real(tmp_path: Path, run: Callable[[OpenAI, Tools], str]) -> None:
    client, answer = recorded(tmp_path / "rec", run)
    before = sorted((p.name, p.read_bytes()) for p in (tmp_path / "rec").iterdir())
    tools = Tools()
    with replaying(tmp_path / "rec") as report:
        assert run(client, tools) == answer
    assert tools.ran == []
    assert (report.outcome, report.exit_code, report.models, report.tools) == ("same", 0, 3, 2)
    assert report.recorded == {"models": 3, "tools": 2}
    assert sorted((p.name, p.read_bytes()) for p in (tmp_path / "rec").iterdir()) == before
    assert Active() == ACTIVE, "afterwards all is as it was"


def test_a_changed_word_stops_it_with_step_path_and_both_values(tmp_path: Path) -> None:
    client, _ = recorded(tmp_path / "rec")
    tools = Tools()
    with pytest.raises(ReplayDivergence) as stopped, replaying(tmp_path / "rec") as report:
        in_agent(client, tools, ASK.replace("Oslo", "Bergen"))
    told = stopped.value.divergence
    assert (told.kind, told.step, told.path, told.lane) == ("model", 1, "$.messages[1].content", "traveller")
    assert (told.recorded, told.asked) == (ASK, ASK.replace("Oslo", "Bergen"))
    assert (report.outcome, report.exit_code, report.models) == ("diverged", 1, 0)
    assert report.divergence == told.to_json()
    assert "step 1" in str(stopped.value)
    assert "Bergen" in str(stopped.value)


def test_a_word_that_changed_far_into_a_prompt_is_shown(tmp_path: Path) -> None:
    long = "All of this stays as it is. " * 40
    with recording(tmp_path / "rec") as client:
        loop_once(client, f"{long}Go to Oslo. {long}")
    with pytest.raises(ReplayDivergence) as stopped, replaying(tmp_path / "rec"):
        loop_once(client, f"{long}Go to Bergen. {long}")
    recorded, now = str(stopped.value).splitlines()[-2:]
    assert "Go to Oslo. All" in recorded
    assert "Go to Bergen. All" in now
    assert max(len(recorded), len(now)) < 200


def test_a_call_of_another_agent_names_those_of_which_it_is_recorded(tmp_path: Path) -> None:
    tools = Tools()

    def as_agents(client: OpenAI, *names: str) -> None:
        for name in names:
            with agent_run(name):
                loop_once(client, "Sing.")
                tools.by_name["weather"](city="Oslo")

    with recording(tmp_path / "rec", [Turn("la", times=0)]) as client:
        as_agents(client, "alto", "bass")
    with replaying(tmp_path / "rec", strict=False), pytest.raises(ReplayDivergence, match="not of tenor") as stopped:
        as_agents(client, "tenor")
    assert stopped.value.divergence.elsewhere == ("alto", "bass")
    with replaying(tmp_path / "rec", strict=False), pytest.raises(ReplayDivergence) as stopped:
        loop_once(client, "Sing.")
    assert "recorded of alto and bass, not of the run itself" in str(stopped.value)
    with replaying(tmp_path / "rec", strict=False), pytest.raises(ReplayDivergence) as stopped:
        tools.by_name["weather"](city="Oslo")
    assert "recorded of alto and bass, not of the run itself" in str(stopped.value)
    with replaying(tmp_path / "rec", strict=False), pytest.raises(ReplayDivergence, match="handed out") as stopped:
        as_agents(client, "alto", "alto")
    assert stopped.value.divergence.elsewhere == (), "it is the right agent"


def test_a_program_that_swallows_it_is_told_again_and_at_the_end(tmp_path: Path) -> None:
    client, _ = recorded(tmp_path / "rec")
    with pytest.raises(ReplayDivergence, match=r"\$\.messages\[1\]"), replaying(tmp_path / "rec"):
        for ask in ("something else", ASK):
            with pytest.raises(ReplayDivergence, match=r"\$\.messages\[1\]"):
                in_agent(client, Tools(), ask)


def test_another_argument_of_a_tool_is_a_divergence(tmp_path: Path) -> None:
    client, _ = recorded(tmp_path / "rec")
    tools = Tools()
    changed = tools.by_name["book"]
    tools.by_name["book"] = lambda train, seat: changed(train=train, seat="window")
    with replaying(tmp_path / "rec", strict=False) as report, pytest.raises(ReplayDivergence):
        in_agent(client, tools)
    assert report.divergence is not None
    assert report.divergence["kind"] == "tool"
    assert (report.divergence["path"], report.divergence["recorded"], report.divergence["asked"]) == (
        "$.seat",
        None,
        "window",
    )
    assert tools.ran == []


def test_what_nobody_asked_for_is_left_over(tmp_path: Path) -> None:
    recorded(tmp_path / "rec")
    with pytest.raises(ReplayDivergence, match="5 recorded calls were not asked for"), replaying(tmp_path / "rec"):
        pass
    with replaying(tmp_path / "rec", strict=False) as report:
        pass
    assert (report.outcome, report.exit_code) == ("diverged", 1)
    assert [(one["kind"], one["step"]) for one in report.left_over] == [
        ("model", 1),
        ("model", 2),
        ("model", 3),
        ("tool", None),
        ("tool", None),
    ]


def test_a_call_more_than_recorded_is_a_divergence(tmp_path: Path) -> None:
    client, _ = recorded(tmp_path / "rec")
    with replaying(tmp_path / "rec", strict=False) as report:
        in_agent(client, Tools())
        with pytest.raises(ReplayDivergence, match="handed out already"):
            in_agent(client, Tools())
    assert report.exit_code == 1


def test_as_an_http_error_the_program_goes_on(tmp_path: Path) -> None:
    from openai import BadRequestError

    client, _ = recorded(tmp_path / "rec")
    with replaying(tmp_path / "rec", as_http_error=True, strict=False) as report:
        for _ in range(2):
            with pytest.raises(BadRequestError, match=r"\$\.messages\[1\]\.content"):
                in_agent(client, Tools(), "something else")
    assert (report.outcome, report.divergence and report.divergence["step"]) == ("diverged", 1)


def test_nothing_else_reaches_a_network(tmp_path: Path) -> None:
    recorded(tmp_path / "rec")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with replaying(tmp_path / "rec", strict=False) as report, pytest.raises(ReplayDivergence, match="127"):
            socket.create_connection(("127.0.0.1", port))
        assert report.divergence is not None
        assert report.divergence["kind"] == "network"
        assert report.guard is not None
        assert report.guard["refused"] == [f"127.0.0.1:{port}"]
        for allowed in (f"127.0.0.1:{port}", "127.0.0.1"):
            with replaying(tmp_path / "rec", allow_hosts=[allowed], strict=False) as report:
                socket.create_connection(("127.0.0.1", port)).close()
            assert report.divergence is None
        socket.create_connection(("127.0.0.1", port)).close()


def test_a_tool_that_nobody_intercepts_is_not_asked_for(tmp_path: Path) -> None:
    def bare(client: OpenAI, tools: Tools) -> str:
        return loop(client, tools)

    with recording(tmp_path / "rec") as client:
        answer = bare(client, Tools(lambda tool: tool))
    tools = Tools(lambda tool: tool)
    with replaying(tmp_path / "rec", strict=False) as report, pytest.raises(ToolNotIntercepted, match="weather"):
        bare(client, tools)
    assert (report.outcome, report.exit_code, report.unseen) == ("cannot", 125, ["weather", "book"])
    assert tools.ran == []
    with replaying(tmp_path / "rec", rerun_tools=["weather", "book"]) as report:
        assert bare(client, tools) == answer
    assert tools.ran == ["weather Oslo", "book 7"]
    assert report.exit_code == 0


def test_several_processes_in_one_recording_are_told_apart(tmp_path: Path) -> None:
    for _ in range(2):
        client, answer = recorded(tmp_path / "rec")
    with pytest.raises(CannotReplay, match="2 processes") as refused, replaying(tmp_path / "rec"):
        pass
    run = refused.value.hint.rpartition("--run ")[2]
    with replaying(tmp_path / "rec", run[:12]):
        assert in_agent(client, Tools()) == answer
    with pytest.raises(CannotReplay, match="no run 'none'"), replaying(tmp_path / "rec", "none"):
        pass


def test_a_recording_that_is_being_written_is_refused(tmp_path: Path) -> None:
    with recording(tmp_path / "rec") as client:
        in_agent(client, Tools())
        with pytest.raises(RecordingBusy), replaying(tmp_path / "rec"):
            pass


def test_the_replay_can_be_recorded_itself(tmp_path: Path) -> None:
    from otel_agentrec import read_nodes, verify

    client, _ = recorded(tmp_path / "rec")
    with replaying(tmp_path / "rec", out=tmp_path / "again"):
        in_agent(client, Tools())
    assert verify(tmp_path / "again").exit_code == 0
    first, second = ([(r.node_type, r.outputs) for r in read_nodes(tmp_path / d)] for d in ("rec", "again"))
    assert first == second


# --- what was changed is refused ------------------------------------------------------------------------------------------


def _streams(path: Path) -> list[Path]:
    return [p for p in path.glob("*.jsonl") if not p.name.endswith(".content.jsonl") and p.name != "index.jsonl"]


def test_what_was_changed_is_refused_before_the_first_answer(tmp_path: Path) -> None:
    recorded(tmp_path / "rec")
    recorded(tmp_path / "other")
    (stream,) = _streams(tmp_path / "rec")
    (other,) = _streams(tmp_path / "other")
    content = stream.with_name(stream.name.replace(".jsonl", ".content.jsonl"))
    lines, foreign = (p.read_bytes().splitlines(keepends=True) for p in (stream, other))
    whole, kept = stream.read_bytes(), content.read_bytes()
    damaged = {
        "edited": [whole.replace(b'"endedAt":"1', b'"endedAt":"2', 1)],
        "spliced": [b"".join(lines[:6] + foreign[6:])],
        "a line left out": [b"".join(lines[:5] + lines[6:])],
        "a cut tail": [b"".join(lines[:-1]), b"".join(lines[:-3]), whole[:-40]],
    }
    for how, versions in damaged.items():
        for version in versions:
            assert version != whole
            stream.write_bytes(version)
            with pytest.raises(RecordingTampered), replaying(tmp_path / "rec"):
                pytest.fail(how)
    stream.write_bytes(whole)
    content.write_bytes(kept.replace(b"rain", b"snow"))
    with pytest.raises(RecordingTampered), replaying(tmp_path / "rec"):
        pytest.fail("an edited answer")
    content.write_bytes(kept)
    with replaying(tmp_path / "rec", strict=False):
        pass


def test_an_open_end_is_replayed_up_to_where_it_stops(tmp_path: Path) -> None:
    import shutil

    with recording(tmp_path / "rec") as client:
        recorder = configure(tmp_path / "rec")
        with pytest.raises(KeyboardInterrupt):
            in_agent(client, _Interrupted())
        recorder.force_flush()
        shutil.copytree(tmp_path / "rec", tmp_path / "cut")  # as a crash leaves it
    tools = Tools()
    with replaying(tmp_path / "cut", strict=False) as report, pytest.raises(RecordingEnds, match="recording_ends"):
        in_agent(client, tools)
    assert (report.outcome, report.exit_code) == ("recording_ends", 125)
    assert (report.models, report.tools, tools.ran) == (2, 1, [])


class _Interrupted(Tools):
    """Its second tool never comes back."""

    def __init__(self) -> None:
        from otel_agentrec import resumable_tool

        super().__init__()

        @resumable_tool
        def book(train: int, seat: str | None) -> str:
            raise KeyboardInterrupt

        self.by_name["book"] = book


# --- tools ----------------------------------------------------------------------------------------------------------------


def test_an_agent_as_a_tool_runs_again_and_what_it_calls_is_answered(tmp_path: Path) -> None:
    ran: list[str] = []

    def agent(client: OpenAI) -> str:
        @resumable_tool
        def look_up(word: str) -> str:
            ran.append("look_up")
            return f"{word}!"

        @resumable_tool(effect="container")
        def research(topic: str) -> str:
            ran.append("research")
            with agent_run("researcher"):
                return loop_once(client, f"About {topic}") + look_up(topic)

        with agent_run("planner"):
            return loop_once(client, "Plan.") + research("rain")

    with recording(tmp_path / "rec", [Turn("said", times=0)]) as client:
        answer = agent(client)
    assert ran == ["research", "look_up"]
    ran.clear()
    with replaying(tmp_path / "rec") as report:
        assert agent(client) == answer
    assert ran == ["research"], "nothing of what it calls"
    assert (report.models, report.tools, report.reran) == (2, 1, ["research"])


def test_a_recorded_error_of_a_tool_is_raised_as_the_same_class(tmp_path: Path) -> None:
    calls: list[str] = []

    @resumable_tool
    def buy(item: str) -> str:
        calls.append(item)
        raise FileNotFoundError(2, item) if item == "pen" else KeyError(item)

    def program(client: OpenAI) -> list[str]:
        got = [loop_once(client, "Buy.")]
        for item in ("pen", "ink"):
            try:
                buy(item)
            except (OSError, KeyError) as error:
                got.append(f"{type(error).__name__} {error}")
        return got

    with recording(tmp_path / "rec", [Turn("fine")]) as client:
        before = program(client)
    with replaying(tmp_path / "rec"):
        assert program(client) == before
    assert [said.split()[0] for said in before[1:]] == ["FileNotFoundError", "KeyError"]
    assert calls == ["pen", "ink"]


def test_telemetry_alone_answers_nothing(tmp_path: Path) -> None:
    """Case 009: attributes that the SDK has cut. What was not recorded on the wire is never made up."""
    ingested("009", tmp_path)
    with pytest.raises(CannotReplay, match="no call that could be answered"), replaying(tmp_path / "rec"):
        pass


def loop_once(client: OpenAI, ask: str) -> str:
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": ask}])
    return answer.choices[0].message.content or ""

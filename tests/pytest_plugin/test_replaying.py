"""A test of an agent: recorded with real calls, then answered without any; every difference is named."""

from __future__ import annotations

from otel_agentrec.demo.server import ScriptedServer
from tests.pytest_plugin.conftest import Project


def test_a_recorded_test_passes_without_a_model(recorded: Project) -> None:
    before = recorded.recordings()
    result = recorded.run("-v")
    assert result.outcomes == {"test_agent.py::test_plan": "passed"}
    assert "1 recording replayed, no call was made" in result.lines()
    import agent  # type: ignore[import-not-found]

    assert agent.RAN == [], "the tool did not run"
    assert recorded.recordings() == before, "nothing is written where recordings stand"


def test_a_word_of_the_prompt_fails_the_test_and_is_named(recorded: Project) -> None:
    recorded.change("keep it short", "keep it brief")
    result = recorded.run()
    assert (result.code, result.outcomes) == (1, {"test_agent.py::test_plan": "failed"})
    told = result.out[result.out.index("the agent differs") :].splitlines()
    assert told[0] == "the agent differs from its recording at step 1, $.messages[0].content"
    assert "recorded: " in told[2] and "keep it short. Be kind" in told[2], "cut to where they differ"
    assert "now:      " in told[3] and "keep it brief. Be kind" in told[3]
    assert told[4].startswith("  asked in agent.py:") and told[4].endswith("(plan)")
    assert told[5].startswith("  recording: tests/recordings/test_agent/test_plan (0 of 2 model calls")
    assert told[6].endswith("pytest --agentrec=refresh tests/test_agent.py::test_plan")
    assert any(line.startswith("FAILED tests/test_agent.py::test_plan - Failed: the agent") for line in told)
    assert len(result.lines()) < 30, "no traceback through an SDK"


def test_a_call_of_another_agent_is_told_of_whom_it_is_recorded(recorded: Project) -> None:
    head = "from otel_agentrec import agent_run\nimport agent\n\ndef test_plan(agentrec_recording):\n"
    recorded.write("tests/test_agent.py", head + "    with agent_run('author'):\n        agent.plan('Oslo?')\n")
    assert "this very call is recorded of the run itself, not of author" in recorded.run().out


def test_a_program_that_hides_the_difference_fails_all_the_same(recorded: Project) -> None:
    recorded.change("keep it short", "keep it brief")
    recorded.write(
        "tests/test_agent.py",
        """
import agent

def test_plan(agentrec_recording):
    try:
        agent.plan("Oslo?")
    except BaseException:
        pass

def test_next():
    pass
""",
    )
    result = recorded.run()
    assert result.outcomes == {"test_agent.py::test_plan": "failed", "test_agent.py::test_next": "passed"}
    assert "$.messages[0].content" in result.out and "went on as if nothing had happened" in result.out


def test_a_test_that_fails_by_itself_keeps_its_traceback(recorded: Project) -> None:
    recorded.change("Take an umbrella.", "Take a hat.", "tests/test_agent.py")
    result = recorded.run()
    assert result.outcomes == {"test_agent.py::test_plan": "failed"}
    assert "assert 'Take an umbrella.' == 'Take a hat.'" in result.out and "differs from" not in result.out


def test_without_a_recording_the_test_says_how_to_make_one(project: Project, server: ScriptedServer) -> None:
    project.write("tests/test_agent.py", "def test_plan(agentrec_recording):\n    raise SystemError\n")
    result = project.run()
    assert (result.code, result.outcomes) == (1, {"test_agent.py::test_plan": "failed in setup"})
    assert "there is no recording in tests/recordings/test_agent/test_plan" in result.out
    assert "pytest --agentrec=record tests/test_agent.py::test_plan" in result.out and not server.requests


def test_calls_that_nobody_asked_for_are_reported(recorded: Project) -> None:
    recorded.change(
        'agent.plan("Oslo?") == "Take an umbrella."', 'agent.plan("Oslo?", steps=1) is None', "tests/test_agent.py"
    )
    result = recorded.run()
    assert result.outcomes == {"test_agent.py::test_plan": "passed"}
    (line,) = [line for line in result.lines() if "tests/test_agent.py::test_plan: " in line]
    assert "step 2: model gpt-5-mini" in line
    recorded.write("pytest.ini", "[pytest]\nagentrec_strict = true\n")
    strict = recorded.run()
    assert strict.code == 1 and "recorded calls are left that nobody asked for" in strict.out


def test_the_test_itself_reaches_nothing(recorded: Project) -> None:
    recorded.write(
        "tests/test_agent.py",
        """
import socket, agent

def test_plan(agentrec_recording):
    agent.plan("Oslo?")
    socket.create_connection(("127.0.0.1", 9))
""",
    )
    result = recorded.run()
    assert result.outcomes == {"test_agent.py::test_plan": "failed"}
    assert "127.0.0.1:9" in result.out and "the test reaches out while it is replayed" in result.out


def test_a_changed_recording_is_refused(recorded: Project) -> None:
    (words,) = (recorded.path / "tests/recordings/test_agent/test_plan").glob("*.content.jsonl")
    words.write_bytes(words.read_bytes().replace(b"umbrella", b"sunshade"))
    result = recorded.run()
    assert result.outcomes == {"test_agent.py::test_plan": "failed in setup"}
    assert "tests/recordings/test_agent/test_plan is not as it was written" in result.out


def test_a_tool_that_is_called_otherwise_is_named_and_the_next_test_is_not_concerned(
    project: Project, server: ScriptedServer
) -> None:
    test = """
import agent, pytest

@pytest.mark.agentrec
@pytest.mark.parametrize("n", [1, 2])
def test_plan(n, monkeypatch):
    call = agent.weather
    if n == 1:
        monkeypatch.setattr(agent, "weather", lambda place: call(place + ""))
    assert agent.plan("Oslo?") == "Take an umbrella."
"""
    project.write("tests/test_agent.py", test)
    assert project.run("--agentrec=record").code == 0
    server.stop()
    project.change('place + ""', 'place + "!"', "tests/test_agent.py")
    result = project.run()
    assert result.outcomes == {"test_agent.py::test_plan[1]": "failed", "test_agent.py::test_plan[2]": "passed"}
    assert 'recorded: "Oslo"' in result.out and 'now:      "Oslo!"' in result.out

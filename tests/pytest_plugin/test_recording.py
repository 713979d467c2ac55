"""What is recorded, where it stands, and when it is put there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from otel_agentrec.demo.script import Turn, When
from otel_agentrec.demo.server import ScriptedServer
from tests.pytest_plugin.conftest import TEST, Project

FOLDER = "tests/recordings/test_agent/test_plan"


def test_what_stands_there_can_be_committed(recorded: Project) -> None:
    names = [Path(name).name for name in recorded.recordings()]
    assert [name for name in names if not name.endswith(".jsonl")] == [".gitattributes", ".gitignore"], "no key"
    assert len(names) == 5 and "index.jsonl" in names
    said = b"".join(recorded.recordings().values())
    assert b"umbrella" in said and b"sk-proj-" not in said, "the words, and not the key of the API"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    Path(".gitignore").write_text("*.jsonl\n")
    (recorded.path / FOLDER / "resume.key").write_bytes(b"k" * 32)
    subprocess.run([*git, "add", "tests/recordings"], check=True)
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(Path(name).name for name in listed) == sorted(names), "all of them, whatever is ignored around them"


def test_a_folder_that_git_ignores_is_told_of(project: Project, server: ScriptedServer) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    Path(".gitignore").write_text("recordings/\n")
    project.write("tests/test_agent.py", TEST)
    assert "git ignores what was recorded" in project.run("--agentrec=record").out


def test_a_test_that_fails_is_not_recorded(project: Project, server: ScriptedServer) -> None:
    project.write("tests/test_agent.py", TEST.replace("umbrella", "hat"))
    assert project.run("--agentrec=record").outcomes == {"test_agent.py::test_plan": "failed"}
    assert not project.recordings()
    project.write("tests/test_agent.py", TEST)
    assert project.run("--agentrec=record").code == 0
    before = project.recordings()
    project.write("tests/test_agent.py", TEST.replace("umbrella", "hat"))
    result = project.run("--agentrec=record")
    assert result.code == 1 and project.recordings() == before
    assert "not recorded, and the former recording stands" in result.out


def test_a_refresh_records_only_what_differs(project: Project, server: ScriptedServer) -> None:
    project.write(
        "tests/test_agent.py",
        """
import agent, pytest

@pytest.mark.agentrec
@pytest.mark.parametrize("place", ["oslo", "Bergen"])
def test_plan(place):
    assert agent.plan(f"{place}?") == "Take an umbrella."
""",
    )
    assert project.run("--agentrec=refresh").code == 0, "there was none"
    before, asked = project.recordings(), len(server.requests)
    assert project.run("--agentrec=refresh").code == 0
    assert (project.recordings(), len(server.requests)) == (before, asked), "nothing differs"
    project.change('f"{place}?"', 'f"{place}!" if place == "oslo" else f"{place}?"', "tests/test_agent.py")
    result = project.run("--agentrec=refresh")
    assert result.code == 0 and list(result.outcomes.values()) == ["passed", "passed"]
    after = project.recordings()
    changed = {str(Path(n).parent) for n in before.keys() ^ after.keys()}
    assert changed == {"tests/recordings/test_agent/test_plan-oslo"}
    assert len(server.requests) == asked + 2
    server.stop()
    assert project.run().code == 0


def test_a_refresh_that_fails_leaves_all_as_it_was(project: Project, server: ScriptedServer) -> None:
    project.write("tests/test_agent.py", TEST)
    assert project.run("--agentrec=record").code == 0
    before = project.recordings()
    server.script.answer_next(Turn("no", status=400, when=When(step=2)))
    project.change("keep it short", "keep it brief")
    result = project.run("--agentrec=refresh")
    assert result.outcomes == {"test_agent.py::test_plan": "failed"} and "BadRequestError" in result.out
    assert project.recordings() == before
    assert not [p for p in (project.path / "tests/recordings/test_agent").iterdir() if p.name.startswith(".")]


def test_nothing_else_is_ever_replaced(project: Project, server: ScriptedServer) -> None:
    project.write("tests/test_agent.py", 'import pytest\n@pytest.mark.agentrec(path=".")\n' + TEST.lstrip())
    project.change("import agent\n", "", "tests/test_agent.py")
    result = project.run("--agentrec=record")
    assert result.outcomes == {"test_agent.py::test_plan": "failed in setup"} and not server.requests
    assert "tests holds test_agent.py, which is no part of a recording" in result.out


def test_a_test_without_a_model_call_records_nothing(project: Project) -> None:
    project.write("tests/test_agent.py", "def test_plan(agentrec_recording):\n    pass\n")
    result = project.run("--agentrec=record")
    assert result.code == 1 and "not kept: what was recorded holds no call" in result.out and not project.recordings()


def test_tools_that_nobody_intercepts_are_told_of_at_once(project: Project, server: ScriptedServer) -> None:
    project.change("@resumable_tool\n", "")
    project.change("weather(place: str)", "plain_weather(place: str)")
    project.change("result = weather(", "result = plain_weather(")
    project.write("tests/test_agent.py", TEST)
    result = project.run("--agentrec=record")
    assert result.code == 0
    assert "@pytest.mark.agentrec(rerun_tools=['weather'])" in result.out
    result = project.run()
    assert result.code == 1 and "@pytest.mark.agentrec(rerun_tools=['weather'])" in result.out
    marked = TEST.replace("def test", "import pytest\n@pytest.mark.agentrec(rerun_tools=['weather'])\ndef test")
    project.write("tests/test_agent.py", marked)
    assert project.run().code == 0


def test_every_test_has_a_folder_of_its_own(project: Project, server: ScriptedServer) -> None:
    project.write(
        "tests/test_agent.py",
        """
import agent, pytest

class TestAgent:
    def test_plan(self, agentrec_recording):
        agent.plan("a")
        assert agentrec_recording.path.name == "TestAgent.test_plan" and agentrec_recording.mode == "record"

@pytest.mark.agentrec(path="given/here")
def test_marked():
    agent.plan("b")

@pytest.mark.parametrize("place", ["a/b", "a b", "A b"])
def test_plan(agentrec_recording, place):
    agent.plan(place)
""",
    )
    assert project.run("--agentrec=record").code == 0
    assert (project.path / "tests/given/here/index.jsonl").exists()
    names = [Path(folder).name for folder in project.folders()]
    assert len(names) == len({name.lower() for name in names}) == 4
    assert names[:1] == ["TestAgent.test_plan"] and all(name.startswith("test_plan-a-b-") or 1 for name in names[1:])


def test_recordings_of_no_test_are_reported(recorded: Project) -> None:
    recorded.write("tests/test_agent.py", TEST.replace("test_plan", "test_other"))
    result = recorded.run()
    assert "of no test; to be deleted:" in result.lines() and f"  {FOLDER}" in result.lines()
    recorded.write("tests/test_agent.py", TEST)
    assert "to be deleted" not in recorded.run().out
    recorded.write("tests/test_agent.py", TEST + "\n\ndef test_more():\n    pass\n")
    assert "to be deleted" not in recorded.run("tests/test_agent.py::test_more").out
    assert "to be deleted" not in recorded.run("-k", "test_more").out


@pytest.mark.slow
def test_processes_of_xdist_and_event_loops(project: Project, server: ScriptedServer) -> None:
    pytest.importorskip("xdist")
    pytest.importorskip("anyio")
    project.write(
        "tests/test_agent.py",
        """
import agent, pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.parametrize("place", ["a", "b", "c", "d"])
async def test_plan(agentrec_recording, place):
    assert await agent.plan_async(place) == "Take an umbrella."
""",
    )
    told = project.run_alone("-n", "2", "--agentrec=record")
    assert "4 passed" in told and "recorded 4 recordings" in told, told
    server.stop()
    (project.path / "tests/recordings/test_agent/old").mkdir()
    (project.path / "tests/recordings/test_agent/old/x.jsonl").touch()
    told = project.run_alone("-n", "2", "-v")
    assert "4 passed" in told and "4 recordings replayed" in told and "tests/recordings/test_agent/old" in told, told
    project.change("keep it short", "keep it brief")
    told = project.run_alone("-n", "2")
    assert "4 failed" in told and told.count("at step 1, $.messages[0].content") >= 4, told


def test_secrets_are_taken_out_whatever_is_set_and_the_test_is_told(
    project: Project, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone has not the key under which the request was known before something was taken out."""
    monkeypatch.setenv("OTEL_AGENTREC_REDACT", "off")
    project.write("tests/test_agent.py", TEST.replace('"Oslo?"', '"Oslo? password=hunter2-and-more"'))
    result = project.run("--agentrec=record")
    assert result.code == 1 and not project.recordings()
    assert "not kept: " in result.out and "can't be compared any more" in result.out


def test_other_fixtures_of_a_marked_test_are_recorded_too(project: Project, server: ScriptedServer) -> None:
    project.write(
        "tests/test_agent.py",
        """
import agent, pytest

pytestmark = pytest.mark.agentrec

@pytest.fixture
def asked():
    yield agent.plan("before")
    agent.plan("after")

def test_plan(asked):
    assert asked == "Take an umbrella."
""",
    )
    assert project.run("--agentrec=record").code == 0
    server.stop()
    assert project.run().outcomes == {"test_agent.py::test_plan": "passed"}


@pytest.mark.parametrize("words", ["oops=1", "'a', 'b'"])
def test_a_marker_that_is_misspelt_is_told(project: Project, words: str) -> None:
    project.write("tests/test_agent.py", f"import pytest\n@pytest.mark.agentrec({words})\ndef test_plan():\n    pass\n")
    result = project.run()
    assert result.code == 1 and "@pytest.mark.agentrec does not know" in result.out


def test_the_plugin_imports_nothing_until_a_test_asks_for_it(project: Project) -> None:
    project.write("tests/test_agent.py", "def test_nothing():\n    pass\n")
    project.write(
        "tests/conftest.py",
        """
import sys

def pytest_unconfigure():
    print("loaded:", sorted(name for name in sys.modules if name.startswith("otel_agentrec.") or name == "opentelemetry"))
""",
    )
    told = project.run_alone("-s")
    assert "1 passed" in told
    loaded = told.partition("loaded: ")[2].partition("\n")[0]
    assert loaded == "['otel_agentrec.pytest_plugin', 'otel_agentrec.pytest_plugin.summary']"

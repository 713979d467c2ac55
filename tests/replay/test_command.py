"""``otel-agentrec replay``: an unchanged program, its model gone, in a namespace without a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from otel_agentrec.cli.app import run
from otel_agentrec.demo.script import Turn, When
from otel_agentrec.demo.server import ScriptedServer

from .agent import SCRIPT

PROGRAM = Path(__file__).with_name("program.py")
SONG = Turn("La la la, and so on.", when=When(any="Sing"), times=0)
NO_NETWORK = ["unshare", "--user", "--map-root-user", "--net"]


@dataclass
class Recorded:
    """A recording of the program, what it printed, and the address of the model that is gone."""

    path: Path
    out: str
    url: str

    def replay(self, *words: str, options: tuple[str, ...] = (), before: list[str] | None = None) -> Done:
        argv = [*(before or []), sys.executable, "-m", "otel_agentrec", "replay", str(self.path), *options]
        return _run([*argv, "--", sys.executable, str(PROGRAM), *words], self.url)

    def report(self, *words: str, options: tuple[str, ...] = ()) -> tuple[int, dict[str, object]]:
        done = self.replay(*words, options=("--json", *options))
        return done.returncode, json.loads(done.stdout)


Done = subprocess.CompletedProcess[str]


def _run(argv: list[str], url: str) -> Done:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_"))}
    environ = {
        **kept,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "none",
        "OTEL_METRICS_EXPORTER": "none",
    }
    return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    path = tmp_path_factory.mktemp("whole") / "rec"
    with ScriptedServer([SONG, *SCRIPT], seed="same") as model:
        argv = [sys.executable, "-m", "otel_agentrec", "run", "--out", str(path), "--", sys.executable, str(PROGRAM)]
        done = _run(argv, model.base_url)
        assert done.returncode == 0, done.stderr
        return Recorded(path, done.stdout, model.base_url)


@pytest.mark.slow
def test_the_same_output_and_chunks_in_an_empty_network_namespace(recorded: Recorded) -> None:
    assert recorded.out.count("chunk") > 5
    done = recorded.replay("sockets", before=NO_NETWORK)
    assert done.returncode == 1, "it tried to get out"
    assert done.stdout == recorded.out
    assert done.stderr.count("refused") >= 4
    assert "outside" not in done.stderr
    calm = recorded.replay(before=NO_NETWORK)
    assert (calm.returncode, calm.stdout) == (0, recorded.out), calm.stderr
    assert "the same; 4 model calls and 2 tool calls answered" in calm.stderr
    assert "no network: the audit hook, Landlock" in calm.stderr


@pytest.mark.slow
def test_without_a_namespace_the_guards_hold_it_back(recorded: Recorded) -> None:
    with ScriptedServer([SONG, *SCRIPT]) as alive:
        recorded = Recorded(recorded.path, recorded.out, alive.base_url)
        done = recorded.replay("sockets")
        assert alive.requests == []
    assert done.stdout == recorded.out
    has_landlock = "Landlock active" in done.stderr
    assert done.stderr.count("outside") == (0 if has_landlock else 1), (
        "only a shell gets out, where no kernel guards it"
    )


@pytest.mark.parametrize(
    "words", ["changed hard", *(pytest.param(w, marks=pytest.mark.slow) for w in ("changed", "changed swallow"))]
)
def test_a_divergence_is_1_however_the_program_ends(recorded: Recorded, words: str) -> None:
    code, report = recorded.report(*words.split())
    assert (code, report["outcome"], report["exitCode"]) == (1, "diverged", 1)
    told = report["divergence"]
    assert isinstance(told, dict)
    assert (told["step"], told["path"]) == (2, "$.messages[1].content")
    assert told["recorded"].replace("Oslo", "Bergen") == told["asked"]


@pytest.mark.slow
def test_other_ends(recorded: Recorded) -> None:
    code, report = recorded.report("fail")
    assert (code, report["outcome"], report["programExit"]) == (1, "failed", 3)
    code, report = recorded.report("short")
    assert (code, report["outcome"]) == (1, "diverged")
    assert isinstance(report["leftOver"], list)
    assert len(report["leftOver"]) == 5
    code, report = recorded.report("killed")
    assert (code, report["outcome"]) == (125, "cannot")
    assert "signal 9" in str(report["reason"])


@pytest.mark.slow
def test_a_second_process_that_asks_too_is_not_replayed(recorded: Recorded) -> None:
    code, report = recorded.report("child")
    assert (code, report["outcome"]) == (125, "cannot")
    assert "both ask" in str(report["reason"])


def test_what_can_not_be_replayed_is_125_before_it_starts(
    recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(recorded.path, cut)
    (stream,) = [p for p in cut.glob("*.jsonl") if ".content" not in p.name and p.name != "index.jsonl"]
    stream.write_bytes(b"".join(stream.read_bytes().splitlines(keepends=True)[:-1]))
    program = ["--", sys.executable, str(PROGRAM)]
    for words, why in [
        ([str(cut), *program], "not as it was written"),
        ([str(tmp_path / "none"), *program], "none"),
        ([str(recorded.path), "--run", "nope", *program], "no run 'nope'"),
        ([str(recorded.path), "--inert", "$[", *program], "inert"),
        ([str(recorded.path), "--allow-host", "a:b", *program], "no host"),
        ([str(recorded.path), "--", "no-such-program"], "no-such-program"),
        ([str(recorded.path), "--no-such-option", *program], "--no-such-option"),
        ([str(recorded.path)], "CMD"),
        ([str(recorded.path), "--", sys.executable, "-I", str(PROGRAM)], "-I"),
    ]:
        assert run(["replay", *words]) == 125, words
        told = capsys.readouterr()
        assert told.out == ""
        assert why in told.err
        assert "Traceback" not in told.err


@pytest.mark.slow
def test_a_program_that_does_not_load_us_is_125(recorded: Recorded) -> None:
    done = _run([sys.executable, "-m", "otel_agentrec", "replay", str(recorded.path), "--", "sh", "-c", "true"], "")
    assert done.returncode == 125
    assert "nothing was replayed" in done.stderr


@pytest.mark.slow
def test_git_bisect_finds_the_change_of_the_prompt(recorded: Recorded, tmp_path: Path) -> None:
    """Six revisions: the third can't be tested (exit 125), the fifth changes one word of the prompt."""
    repo = tmp_path / "repo"
    repo.mkdir()
    source = PROGRAM.read_text()
    broken = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    changed = source.replace('"Sing."', '"Sing!"')
    assert changed != source

    def git(*words: str) -> str:
        argv = ["git", "-c", "user.name=a", "-c", "user.email=a@example.test", *words]
        environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "PYTHONPATH": str(Path(__file__).parents[2])}
        environ.update(OPENAI_BASE_URL=recorded.url, OPENAI_API_KEY="none", OTEL_METRICS_EXPORTER="none")
        done = subprocess.run(argv, cwd=repo, env=environ, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    git("init", "-q", "-b", "main")
    for number, text in enumerate([source, source, broken, source, changed, changed], 1):
        (repo / "agent.py").write_text(f"{text}# {number}\n")
        git("add", "agent.py")
        git("commit", "-q", "-m", f"revision {number}")
    git("bisect", "start", "HEAD", "HEAD~5")
    replay = [sys.executable, "-m", "otel_agentrec", "replay", str(recorded.path), "--", sys.executable, "agent.py"]
    git("bisect", "run", *replay)
    assert git("log", "-1", "--format=%s", "refs/bisect/bad").strip() == "revision 5"

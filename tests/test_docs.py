"""The programs and commands that the pages show do what the pages say: run here, against a scripted model."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from otel_agentrec import read_nodes
from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.journal.journal import Journal

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MESSAGES = [{"role": "user", "parts": [{"type": "text", "content": f"Grüße {n}, 東京 \\ \u2028 {{"}]} for n in range(4)]


def program(page: str, language: str, where: Path) -> Path:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    where.write_text(text)
    return where


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A closed stream with content: three model calls that each resend what the ones before said."""
    journal = Journal(tmp_path / "recording", origin="docs")
    for n in range(1, 4):
        facts = {"model": "gpt-5", "messages": MESSAGES[:n], "outputMessages": [MESSAGES[n]]}
        journal.append("NODE_RECORDED", {"type": "MODEL", "name": "chat", "facts": facts})
    journal.seal()
    (path,) = (p for p in (tmp_path / "recording").glob("2*.jsonl") if ".content." not in p.name)
    return path


def run(*command: str | Path) -> tuple[int, str]:
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout + result.stderr


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


VERIFIERS = [
    pytest.param(shell, language, marks=pytest.mark.skipif(not shutil.which(shell), reason=f"{shell} is not installed"))
    for shell, language in (("bash", "bash"), ("node", "javascript"))
]


@pytest.mark.parametrize(("command", "language"), VERIFIERS)
def test_a_verifier_in_another_language(command: str, language: str, stream: Path, tmp_path: Path) -> None:
    verifier = program("verify.md", language, tmp_path / "verifier.txt")
    lines = stream.read_text().splitlines()
    last_hash = lines[-1][-153:][9:73]

    code, said = run(command, verifier, stream)
    assert (code, f"{len(lines)} lines" in said, last_hash in said) == (0, True, True), said

    change(stream, '"name":"chat"', '"name":"chit"')
    code, said = run(command, verifier, stream)
    assert (code, "line 1" in said) == (1, True), said


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_verifier_that_reads_content_finds_a_changed_word(stream: Path, tmp_path: Path) -> None:
    verifier = program("verify.md", "javascript", tmp_path / "verifier.txt")
    change(stream.with_suffix(".content.jsonl"), "東京", "京都")
    code, said = run("node", verifier, stream)
    assert (code, "content of line 1" in said) == (1, True), said


# --- record.md --------------------------------------------------------------------------------------------------------

HILL = "Grefsenkollen, 377 metres."
PYTHON = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = dict(PYTHON.findall((DOCS / "record.md").read_text()))


class Desk:
    """A directory with the programs of the page, and the environment of a user with a model to talk to."""

    def __init__(self, where: Path, model: str) -> None:
        self.where = where
        for name, text in PROGRAMS.items():
            (where / name).write_text(text)
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "OPENAI_BASE_URL": model,
            "OPENAI_API_KEY": "none",
            "HOME": str(where),
        }

    def run(self, *words: str, **environment: str) -> str:
        result = subprocess.run(
            words,
            cwd=self.where,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ScriptedServer([Turn(HILL, times=0)]) as server:
        yield Desk(tmp_path, server.base_url)


def recorded(desk: Desk) -> list[tuple[str, str | None, str | None, str]]:
    return [(r.node_type.value, r.model_id, r.output_text, r.status) for r in read_nodes(desk.where / "agentrec")]


def test_the_page_holds_the_programs_that_are_tried_here() -> None:
    assert set(PROGRAMS) == {"agent.py", "configured.py", "provider.py", "by_hand.py", "look.py"}


def test_run(desk: Desk) -> None:
    said = desk.run(sys.executable, "-m", "otel_agentrec", "run", "--", "python", "agent.py")
    assert said == HILL + "\n"
    assert recorded(desk) == [("MODEL", "gpt-5-mini", HILL, "ok")]


@pytest.mark.skipif(
    not entry_points(group="opentelemetry_post_instrument", name="agentrec"), reason="otel-agentrec is not installed"
)
def test_opentelemetry_instrument(desk: Desk) -> None:
    exporters = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    desk.run("opentelemetry-instrument", "python", "agent.py", OTEL_AGENTREC_PATH="agentrec", **exporters)
    assert recorded(desk) == [("MODEL", "gpt-5-mini", HILL, "ok")]


def test_configure(desk: Desk) -> None:
    desk.run(sys.executable, "configured.py")
    assert recorded(desk) == [("MODEL", "gpt-5-mini", HILL, "ok")]


def test_a_provider_of_ones_own(desk: Desk) -> None:
    desk.run(sys.executable, "provider.py")
    assert recorded(desk) == [("MODEL", "gpt-5-mini", None, "ok")]


def test_a_provider_of_ones_own_with_messages_asked_for(desk: Desk) -> None:
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in (DOCS / "record.md").read_text()
    desk.run(sys.executable, "provider.py", OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="SPAN_ONLY")
    assert recorded(desk) == [("MODEL", "gpt-5-mini", HILL, "ok")]


def test_by_hand_and_looking_at_it(desk: Desk) -> None:
    desk.run(sys.executable, "by_hand.py")
    assert [(kind, status) for kind, _, _, status in recorded(desk)] == [("MODEL", "ok"), ("TOOL", "ok")]
    assert desk.run(sys.executable, "look.py").splitlines() == [
        "MODEL my-model ok I will look it up.",
        "TOOL weather ok None",
    ]
    looks = re.findall(r"^    otel-agentrec ((?:runs|show|nodes) .*)$", (DOCS / "record.md").read_text(), re.MULTILINE)
    assert len(looks) >= 4
    for command in looks:
        desk.run(sys.executable, "-m", "otel_agentrec", *shlex.split(command.split("|")[0]))
    assert desk.run(sys.executable, "-m", "otel_agentrec", "verify", "agentrec")


# --- clients.md ---------------------------------------------------------------------------------------------------------


def test_an_agent_that_does_nothing_twice_and_its_replay(tmp_path: Path) -> None:
    script = [
        Turn(tool_calls=[Call("weather", {"city": "Oslo"})], when=When(step=1), times=0),
        Turn("{tool_results}.", when=When(step=2), times=0),
    ]
    with ScriptedServer(script) as server:
        desk = Desk(tmp_path, server.base_url)
        for name, text in PYTHON.findall((DOCS / "clients.md").read_text()):
            (tmp_path / name).write_text(text)
        assert desk.run(sys.executable, "resumable.py") == "12 degrees. 0 2 0 1\n"
        assert desk.run(sys.executable, "resumable.py") == "12 degrees. 2 0 1 0\n"
        assert (len(server.requests), (tmp_path / "effects.txt").read_text()) == (2, "weather {'city': 'Oslo'}\n")
        said = desk.run(sys.executable, "replay.py").splitlines()
        assert said == ["mock: None", "mock: 12 degrees.", "mock: None", "mock: 12 degrees.", "live: 12 degrees."]
        assert len(server.requests) == 3


# --- cache.md -----------------------------------------------------------------------------------------------------------


def test_the_cache_asks_only_once(tmp_path: Path) -> None:
    path = program("cache.md", "python", tmp_path / "cached.py")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = [
        subprocess.run([sys.executable, path], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        for _ in range(2)
    ]
    assert [one.returncode for one in said] == [0, 0]
    assert said[0].stdout == said[1].stdout
    assert [one.stderr.strip() for one in said] == ["0 model hits, 0 tool hits", "1 model hits, 1 tool hits"]

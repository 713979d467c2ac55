"""Runs ``unchanged.py`` under ``otel-agentrec run``, kills and resumes it, and counts effects and model calls."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import UNKNOWN, Effect, read_effects

PROGRAM = Path(__file__).with_name("unchanged.py")
STEPS = [["s1"], ["s2a", "s2b"], ["s3"], ["s4a", "s4b"], ["s5"], ["s6"]]
CALLS = [call for calls in STEPS for call in calls]
EACH_ONCE = dict.fromkeys(CALLS, 1)
MODEL_CALLS = len(STEPS) + 1
ANSWER = "All orders are charged."


def script(words: str = "") -> list[Turn]:
    """Which turn answers is told by how far the conversation is, so a call that is repeated gets an answer too.

    Args:
        words: said before the tool calls.
    """
    turns = [
        Turn(words, tool_calls=[Call("charge", {"order": o}, f"call_{o}") for o in orders], when=When(step=n), times=0)
        for n, orders in enumerate(STEPS, 1)
    ]
    return [*turns, Turn(ANSWER, when=When(step=MODEL_CALLS), times=0)]


@dataclass
class Shop:
    """One recording, its file of effects, and the model."""

    where: Path
    model: ScriptedServer
    words: list[str] = field(default_factory=list)
    program: list[str] = field(default_factory=lambda: [sys.executable, str(PROGRAM)])
    launcher: str = sys.executable
    beside: list[str] = field(default_factory=list)
    """Further directories of modules."""
    variables: dict[str, str] = field(default_factory=dict)
    """More of the environment."""

    @property
    def recording(self) -> Path:
        return self.where / "rec"

    def start(self, kill_at: str = "never") -> subprocess.CompletedProcess[str]:
        """Record the program, up to its end or to SIGKILL."""
        return self._run(["--out", str(self.recording)], kill_at)

    def resume(self, *options: str, kill_at: str = "never") -> subprocess.CompletedProcess[str]:
        """Go on with it."""
        return self._run(["--resume", str(self.recording), *options], kill_at)

    def _run(self, options: list[str], kill_at: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_"))}
        environ = {
            **kept,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *self.beside]),
            "OPENAI_BASE_URL": self.model.base_url,
            "OPENAI_API_KEY": "none",
            "OTEL_METRICS_EXPORTER": "none",
            **self.variables,
        }
        argv = [self.launcher, "-m", "otel_agentrec", "run", *options, "--", *self.program]
        argv += [str(self.where / "effects"), kill_at, *self.words]
        if kill_at.startswith("model:"):
            done = self._killed_while_asking(argv, environ, int(kill_at.partition(":")[2]))
        else:
            done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120)
        if kill_at != "never":
            assert done.returncode == -signal.SIGKILL, done.stderr
        return done

    def _killed_while_asking(
        self, argv: list[str], environ: dict[str, str], step: int
    ) -> subprocess.CompletedProcess[str]:
        """SIGKILL while the model has got a request and does not answer it."""
        held = Turn("too late", end="hang", when=When(step=step))
        self.model.script.answer_next(held)
        with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            while child.poll() is None and not any(request.turn is held for request in self.model.requests):
                time.sleep(0.02)
            child.kill()
            out, err = child.communicate(timeout=60)
        return subprocess.CompletedProcess(argv, child.returncode, out, err)

    def effects(self) -> dict[str, int]:
        """How often each effect happened."""
        path = self.where / "effects"
        return dict(Counter(path.read_text().split())) if path.exists() else {}

    def unknown(self) -> list[Effect]:
        return [e for e in read_effects(Recording(self.recording)) if e.state == UNKNOWN]

    def settle(self) -> None:
        """Do what an operator does: look whether each unknown effect happened, and say so."""
        for effect in self.unknown():
            name = effect.arguments["order"]
            happened = self.effects().get(name)
            say = ["--done", json.dumps({"receipt": f"r-{name}"})] if happened else ["--not-done"]
            argv = [sys.executable, "-m", "otel_agentrec", "resolve", str(self.recording), effect.id, *say]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr

    def finish(self) -> None:
        """Resume, settling what is unknown, until the program comes to its end."""
        for _ in range(3):
            done = self.resume()
            if done.returncode == 0:
                assert done.stdout.endswith(f"{ANSWER}\n")
                return
            assert done.returncode == 75, done.stderr
            self.settle()
        raise AssertionError("it never came to its end")


@contextmanager
def shop(where: Path, *words: str, turns: list[Turn] | None = None) -> Iterator[Shop]:
    with ScriptedServer(turns or script(), seed="same") as model:
        yield Shop(where, model, list(words))

"""Runs ``agent.py`` in a child process that dies where it is told to, and counts its effects."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import UNKNOWN, Effect, read_effects

AGENT = Path(__file__).with_name("agent.py")
CALLS = ["s1", "s2a", "s2b", "s3", "s4a", "s4b", "s5", "s6"]
EACH_ONCE = dict.fromkeys(CALLS, 1)


@dataclass
class Shop:
    """One recording and its file of effects."""

    where: Path
    mode: str = "threads"

    @property
    def recording(self) -> Path:
        return self.where / "rec"

    def start(self, kill_at: str = "never", *, resume: bool = False) -> subprocess.CompletedProcess[str]:
        """Run the program to its end, which may be SIGKILL."""
        environ = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        if resume:
            environ["OTEL_AGENTREC_RESUME"] = str(self.recording)
        argv = [sys.executable, str(AGENT), str(self.recording), str(self.where / "effects"), kill_at, self.mode]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60)
        if kill_at != "never":
            assert done.returncode == -signal.SIGKILL, done.stderr
        return done

    def effects(self) -> dict[str, int]:
        """How often each effect happened."""
        path = self.where / "effects"
        return dict(Counter(path.read_text().split())) if path.exists() else {}

    def unknown(self) -> list[Effect]:
        return [e for e in read_effects(Recording(self.recording)) if e.state == UNKNOWN]

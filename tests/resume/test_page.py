"""docs/resume.md: its program dies, stops, is settled, and comes to its end with every order charged once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "resume.md").read_text()


def test_the_program_of_the_page(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "shop.py").write_text(text)

    def call(*argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
        known = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
        return subprocess.run(
            [sys.executable, *argv], cwd=tmp_path, env=known, capture_output=True, text=True, timeout=60
        )

    assert call("shop.py", "o-2").returncode == -signal.SIGKILL
    stopped = call("shop.py", OTEL_AGENTREC_RESUME="agentrec").stderr
    (effect,) = re.findall(r"UnknownOutcomeError: charge\(.*\(effect ([0-9a-f-]{36})\)", stopped)
    assert effect in call("-m", "otel_agentrec", "runs", "agentrec").stdout
    settled = call("-m", "otel_agentrec", "resolve", "agentrec", effect[:8], "--done", '{"receipt": "r-o-2"}')
    assert settled.returncode == 0, settled.stderr
    done = call("shop.py", OTEL_AGENTREC_RESUME="agentrec")
    assert done.stdout.count("receipt") == 3, done.stderr
    assert (tmp_path / "charges.txt").read_text().split() == ["o-1", "o-2", "o-3"]

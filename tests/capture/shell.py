"""Programs in processes of their own, as a user starts them from a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from otel_agentrec.audit.verify import verify
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.records import NodeIoRecord
from tests.test_project import PYPROJECT

__all__ = ["INSTRUMENT", "ROOT", "RUN", "Shell", "as_installed"]

ROOT = Path(__file__).parent.parent.parent

RUN = """
import sys
from pathlib import Path
from otel_agentrec.capture.launch import run_command
sys.exit(run_command(sys.argv[2:], Path(sys.argv[1])))
"""

INSTRUMENT = [sys.executable, "-c", "from opentelemetry.instrumentation.auto_instrumentation import run; run()"]
"""``opentelemetry-instrument``, which may not stand on the PATH."""


class Shell:
    """A directory with programs, and an environment to run them in."""

    def __init__(self, path: Path, model: str) -> None:
        self.path = path
        self.rec = path / "rec"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))}
        self.env["PYTHONPATH"] = str(ROOT)
        self.env["MODEL"] = model
        self.env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), self.env.get("PATH", "")])

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        file = self.path / name
        file.write_text(text)
        file.chmod(mode)
        return file

    def argv(self, *cmd: str) -> list[str]:
        return [sys.executable, "-c", RUN, str(self.rec), *cmd]

    def run(self, *cmd: str) -> subprocess.CompletedProcess[str]:
        """``otel-agentrec run --out rec -- CMD``."""
        return self.plain(*self.argv(*cmd))

    def plain(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, cwd=self.path, env=self.env, capture_output=True, text=True, timeout=60)

    def nodes(self) -> list[NodeIoRecord]:
        assert verify(self.rec).is_valid
        return list(read_nodes(self.rec))


def as_installed(site: Path) -> Path:
    """A directory for PYTHONPATH in which this checkout is installed, as far as its entry points go.

    Where it is installed for real, this takes its place: of two with the same name, Python looks at the first.
    """
    dist = site / "otel_agentrec-0.dist-info"
    dist.mkdir(parents=True)
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: otel-agentrec\nVersion: 0\n")
    groups = PYPROJECT["project"]["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups]
    (dist / "entry_points.txt").write_text("\n".join(lines))
    return site

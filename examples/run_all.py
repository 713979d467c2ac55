"""Run the examples, each with the packages it needs: ``python examples/run_all.py [NAME...]``.

Exit code 0 when each ended well; its recording stays in a temporary folder only as long as it runs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import environments

SHARED = {"environments", "run_all", "scene"}
NODE = {"vercel_ai"}
GIT = {"bisect_a_prompt"}
NAMES = sorted(path.stem for path in environments.HERE.glob("*.py") if path.stem not in SHARED)
SECONDS = 120


def command(name: str, recording: Path) -> list[str]:
    """How to start an example; installs what it needs."""
    return [str(environments.python()), str(environments.HERE / f"{name}.py"), str(recording)]


def has_node() -> bool:
    """Whether the examples in Node can run here."""
    return shutil.which("node") is not None and shutil.which("npm") is not None


def main(names: list[str]) -> int:
    failed = []
    for name in names or NAMES:
        print(f"\n-- {name}", flush=True)
        if name not in NAMES:
            print(f"there is no such example; there are {', '.join(NAMES)}")
            failed.append(name)
        elif name in NODE and not has_node():
            print("left out: it needs Node")
        elif name in GIT and not shutil.which("git"):
            print("left out: it needs git")
        else:
            with tempfile.TemporaryDirectory() as folder:
                words = command(name, Path(folder) / "recording")
                if subprocess.run(words, env=environments.environment(), timeout=SECONDS).returncode:
                    failed.append(name)
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall ended well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

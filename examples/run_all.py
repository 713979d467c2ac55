"""Run the examples, each with the packages it needs: ``python examples/run_all.py [NAME or FOLDER ...]``.

Exit code 0 when each ended well; its recording stays in a temporary folder only as long as it runs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import environments

SHARED = {"environments", "run_all", "scene", "combos/planner", "resume/play", "resume/trip"}
NODE = {"vercel_ai"}
GIT = {"bisect_a_prompt"}
TYPED = {"chat/chat": "chat/conversation.txt"}
"""Examples that read what a user types -> what is typed."""
SECONDS = 300
"""For one example; those of ``resume/`` start four processes, each with a framework."""


def _names() -> list[str]:
    here = environments.HERE
    paths = [*here.glob("*.py"), *here.glob("chat/*.py"), *here.glob("combos/*.py"), *here.glob("resume/*.py")]
    return sorted({path.relative_to(here).with_suffix("").as_posix() for path in paths} - SHARED)


NAMES = _names()
"""Of all examples; those in a folder as ``folder/name``."""


def command(name: str, recording: Path) -> list[str]:
    """How to start an example; installs what it needs."""
    folder, _, agent = name.rpartition("/")
    program = [str(environments.HERE / f"{name}.py")]
    if folder == "resume":  # an agent that somebody else kills and resumes
        program = [str(environments.HERE / "resume" / "play.py"), agent]
    return [str(environments.python()), *program, str(recording)]


def has_node() -> bool:
    """Whether the examples in Node can run here."""
    return shutil.which("node") is not None and shutil.which("npm") is not None


def main(names: list[str]) -> int:
    failed = []
    wanted = [one for name in names for one in ([n for n in NAMES if n.startswith(f"{name}/")] or [name])]
    for name in wanted or NAMES:
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
                typed = (environments.HERE / TYPED[name]).read_bytes() if name in TYPED else b""
                if subprocess.run(words, env=environments.environment(), input=typed, timeout=SECONDS).returncode:
                    failed.append(name)
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall ended well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

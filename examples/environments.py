"""The packages that the examples need, installed once into a cache outside this repository.

The cache is ``$XDG_CACHE_HOME/otel-agentrec/examples`` (``~/.cache/...``); what stands there is keyed on the pins, so that
other pins make another environment. It can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
SETUP_SECONDS = 1200
FOREIGN = (
    *("OTEL_", "OPENAI_", "ANTHROPIC_", "LANGCHAIN_", "LANGSMITH_", "TRACELOOP_", "PYTHONPATH"),
    # set by a test runner for itself: pytest-xdist tells its workers how wide the terminal is and that they are such
    *("PYTEST_", "COLUMNS", "LINES"),
)


def python() -> Path:
    """The interpreter of a virtual environment that holds otel-agentrec's dependencies and those of the examples.

    Raises:
        subprocess.CalledProcessError: pip could not install them; what it said went to stderr.
    """
    pins = [ROOT / "pyproject.toml", ROOT / "constraints.txt", HERE / "requirements.txt"]

    def install(place: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=SETUP_SECONDS)
        pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wanted = ["-c", ROOT / "constraints.txt", "-r", HERE / "requirements.txt", f"{ROOT}[demo]"]
        subprocess.run([*pip, *wanted], check=True, timeout=SETUP_SECONDS, env=environment(PIP_USER="0"))

    return _made("python", pins, install) / "bin" / "python"


def python_with(requirements: Path) -> Path:
    """The interpreter of a virtual environment that holds what a requirements file pins, and nothing else.

    Raises:
        subprocess.CalledProcessError: pip could not install it; what it said went to stderr.
    """

    def install(place: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=SETUP_SECONDS)
        # not compiled ahead: of the packages of a framework little is ever imported
        pip = [
            place / "bin" / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-compile",
        ]
        subprocess.run([*pip, "-r", requirements], check=True, timeout=SETUP_SECONDS, env=environment(PIP_USER="0"))

    return _made(requirements.stem, [requirements], install) / "bin" / "python"


def node() -> Path:
    """A folder in which Node finds the packages of ``package.json``.

    Raises:
        subprocess.CalledProcessError: npm could not install them; what it said went to stderr.
    """

    def install(place: Path) -> None:
        place.mkdir()
        shutil.copy(HERE / "package.json", place)
        words = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(words, cwd=place, check=True, timeout=SETUP_SECONDS, stdout=sys.stderr)

    return _made("node", [HERE / "package.json"], install)


def environment(**more: str) -> dict[str, str]:
    """The variables of this process without those that steer models, telemetry and tests, and with this checkout's package."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **more}


def _made(kind: str, pins: list[Path], install: Callable[[Path], None]) -> Path:
    """The folder that ``install`` filled for these pins, now or earlier."""
    said = b"\0".join([sys.version.encode(), sys.base_prefix.encode(), *(path.read_bytes() for path in pins)])
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otel-agentrec" / "examples"
    home.mkdir(parents=True, exist_ok=True)
    place = home / f"{kind}-{hashlib.sha256(said).hexdigest()[:12]}"
    ready = place / ".ready"
    with _alone(home / f"{kind}.lock"):
        if not ready.exists():
            print(f"installing packages ({kind}) into {place} (once)", file=sys.stderr, flush=True)
            shutil.rmtree(place, ignore_errors=True)
            install(place)
            ready.touch()
    return place


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time installs; the others wait and find it done."""
    import fcntl

    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield

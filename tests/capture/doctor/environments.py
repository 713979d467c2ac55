"""Python environments that are nothing but files: a prefix with an interpreter that can't be run, and packages' metadata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["GENAI", "environment", "instrumentation", "package"]

GENAI = "opentelemetry-instrumentation-genai-openai"


def environment(prefix: Path, **versions: str) -> Path:
    """A virtual environment with packages of these names (``_`` for ``-``) and versions; returns its interpreter."""
    (prefix / "bin").mkdir(parents=True)
    site(prefix).mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("home = /nowhere/bin\nversion = 3.12.4\n")
    python = prefix / "bin" / "python"
    python.write_text("this can't be run")
    python.chmod(0o755)
    for name, version in versions.items():
        package(prefix, name.replace("_", "-"), version)
    return python


def site(prefix: Path) -> Path:
    return prefix / "lib" / "python3.12" / "site-packages"


def package(prefix: Path, name: str, version: str, *, metadata: Sequence[str] = (), points: str = "") -> None:
    """Install metadata. ``points``: the text of its entry_points.txt."""
    info = site(prefix) / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata])
    )
    if points:
        (info / "entry_points.txt").write_text(points)


def instrumentation(prefix: Path, name: str, version: str, wants: str, *, point: str = "", maker: str = "") -> None:
    """Install an instrumentation for a library, given as ``openai>=1,<4``."""
    lines = [f"Requires-Dist: {wants}; extra == 'instruments'", "Provides-Extra: instruments"]
    lines += [f"Project-URL: Repository, https://example.org/{maker}/x"] if maker else []
    point = point or name.rpartition("-")[2]
    package(prefix, name, version, metadata=lines, points=f"[opentelemetry_instrumentor]\n{point} = x:Y\n")

"""A Python environment as its files tell it: nothing of it is run or imported."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

__all__ = ["Interpreter", "interpreter_at", "name_of", "numbers", "our_interpreter"]


@dataclass(frozen=True)
class Interpreter:
    """Args:
    path: the interpreter.
    version: ``3.11.7``, or as much of it as is known.
    packages: normalised name -> what is installed under it.
    is_ours: it is the one that runs this code.
    """

    path: str
    version: str
    packages: Mapping[str, Distribution] = field(repr=False)
    is_ours: bool = False

    def version_of(self, package: str) -> str | None:
        found = self.packages.get(package)
        return found.version if found is not None else None

    def has(self, *packages: str) -> bool:
        return all(package in self.packages for package in packages)

    def pip(self, words: str) -> str:
        """The command that installs into this environment: ``pip install …``."""
        return f"pip {words}" if self.is_ours else f"{self.path} -m pip {words}"

    def entry_points(self, group: str) -> Iterator[tuple[Distribution, EntryPoint]]:
        for package in self.packages.values():
            for point in package.entry_points:
                if point.group == group:
                    yield package, point


def our_interpreter(more: Iterable[str] = ()) -> Interpreter:
    """The one that runs this code; ``more``: directories that PYTHONPATH names for the program."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Interpreter(sys.executable, version, _packages([*more, *sys.path]), is_ours=True)


def interpreter_at(program: Path, more: Iterable[str] = ()) -> Interpreter | None:
    """The environment of an interpreter; None when its files can't be found.

    Args:
        program: the interpreter. In a virtual environment it is a link, whose place counts, not its target.
        more: directories that PYTHONPATH names.
    """
    prefix = program.absolute().parent.parent
    config = prefix / "pyvenv.cfg"
    if not config.is_file():
        prefix = program.resolve().parent.parent
    if prefix == Path(sys.prefix) or _is_same(prefix, Path(sys.prefix)):
        return our_interpreter(more)
    said = _read(config)
    version = said.get("version") or said.get("version_info", "")
    places = list(_places(prefix, version))
    if said.get("include-system-site-packages", "").lower() == "true" and said.get("home"):
        places += _places(Path(said["home"]).parent, version)
    if not places:
        return None
    if not version:
        named = re.search(r"python(3\.\d+)", f"{program.resolve().name} {places[0]}")
        version = named[1] if named else ""
    listed = [str(place) for place in places]
    return Interpreter(str(program), version, _packages([*more, *listed, *_named_by_pth(places)]))


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _read(config: Path) -> dict[str, str]:
    try:
        lines = config.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {key.strip().lower(): value.strip() for key, _, value in (line.partition("=") for line in lines)}


def _places(prefix: Path, version: str) -> Iterator[Path]:
    """The directories in which an interpreter looks for packages."""
    short = ".".join(version.split(".")[:2]) if version else "3*"
    patterns = (
        f"lib*/python{short}/site-packages",
        "Lib/site-packages",
        f"local/lib/python{short}/dist-packages",
        "lib/python3/dist-packages",
        f"lib/python{short}/dist-packages",
    )
    for pattern in patterns:
        yield from (place for place in sorted(prefix.glob(pattern)) if place.is_dir())


def _named_by_pth(places: Iterable[Path]) -> Iterator[str]:
    for place in places:
        for file in sorted(place.glob("*.pth")):
            try:
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                continue
            for line in lines:
                if line.strip() and not line.startswith(("#", "import ", "import\t")):
                    named = place / line.strip()
                    if named.is_dir():
                        yield str(named)


def _packages(places: Iterable[str]) -> dict[str, Distribution]:
    """What is installed there; of two under one name Python sees the first."""
    found: dict[str, Distribution] = {}
    for package in distributions(path=list(places)):
        try:
            name, version = package.metadata["Name"], package.version
        except Exception:  # what a broken or interrupted installation left behind
            continue
        if name and version:
            found.setdefault(name_of(name), package)
    return found


def name_of(package: str) -> str:
    """The normalised name of a package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", package).lower()


def numbers(version: str | None) -> tuple[int, ...]:
    """The leading numbers of a version: ``0.66b2`` -> (0, 66). Enough to tell releases apart that are far from one another."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[a-zA-Z+]", version or "", maxsplit=1)[0]))

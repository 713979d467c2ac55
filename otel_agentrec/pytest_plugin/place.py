"""Where the recording of a test stands, and what of it is kept there: the lines, the words, nothing that is a secret.

By default ``recordings/<module>/<test>/`` beside the test's file. A recording is made elsewhere and put there as a whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["Place", "place_of"]

DEFAULT = "recordings"
LONGEST = 80
"""Characters of a folder's name."""
IGNORE = """\
# Commit the lines of a recording and their words. All else is made again, and resume.key is nobody's business.
*
!.gitignore
!.gitattributes
!*.jsonl
"""
ATTRIBUTES = """\
# Every byte counts: no change of line ends. Diffs of recordings tell little; otel-agentrec diff tells more.
*.jsonl -text linguist-generated
"""
KEPT = ("*.jsonl", ".gitignore", ".gitattributes")
OURS = re.compile(r".*\.jsonl|\.gitignore|\.gitattributes|resume\.key|projections|.*\.lock|.*\.sqlite3?")


class Place:
    """A recording's folder.

    Args:
        path: the folder; it need not exist.
        base: the folder that holds those of all tests of a module, where it is such a one.
    """

    def __init__(self, path: Path, base: Path | None = None) -> None:
        self.path, self.base = path, base

    @property
    def shown(self) -> str:
        """The folder as a person here would write it."""
        return os.path.relpath(self.path)

    def exists(self) -> bool:
        """Whether there is a recording. What an interrupted :meth:`put` left is put right."""
        old = self._beside("old")
        if old.is_dir() and not self.path.exists():
            old.rename(self.path)
        return any(self.path.glob("*.jsonl"))

    def copy(self, to: Path) -> None:
        """Copy what is kept, so that nothing is ever written here while a test runs."""
        for file in self.kept(self.path):
            shutil.copyfile(file, to / file.name)

    def put(self, recording: Path) -> None:
        """Put a recording here, in place of the one that is there: wholly or not at all.

        Raises:
            ValueError: what stands here is no recording.
            OSError: it can't be written.
        """
        foreign = self.foreign()
        if foreign is not None:
            raise ValueError(
                f"{self.shown} holds {foreign}, which is no part of a recording: nothing is put in its place"
            )
        new, old = self._beside("new"), self._beside("old")
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)
        new.mkdir(parents=True)
        for file in self.kept(recording):
            shutil.copyfile(file, new / file.name)
        (new / ".gitignore").write_text(IGNORE)
        (new / ".gitattributes").write_text(ATTRIBUTES)
        if self.path.exists():
            self.path.rename(old)
        new.rename(self.path)
        shutil.rmtree(old, ignore_errors=True)

    def foreign(self) -> str | None:
        """The first thing here that is no part of a recording."""
        if not self.path.exists():
            return None
        if not self.path.is_dir():
            return "a file"
        return next((p.name for p in sorted(self.path.iterdir()) if not OURS.fullmatch(p.name)), None)

    def is_hidden_from_git(self) -> bool:
        """Whether git would leave the recording out of a commit; False where nobody can tell."""
        files = [str(path) for path in self.path.glob("*.jsonl")][:1]
        try:
            told = subprocess.run(
                ["git", "check-ignore", "-q", "--", *files], cwd=self.path, capture_output=True, timeout=10, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return bool(files) and told.returncode == 0

    @staticmethod
    def kept(recording: Path) -> list[Path]:
        """The files of a recording that are kept."""
        return [file for pattern in KEPT for file in sorted(recording.glob(pattern)) if file.is_file()]

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{what}")


def place_of(item: pytest.Item) -> Place:
    """Where the recording of a test stands."""
    marker = item.get_closest_marker("agentrec")
    given = marker.kwargs.get("path") or (marker.args[0] if marker.args else None) if marker is not None else None
    if given is not None:
        return Place(Path(os.path.normpath(item.path.parent / given)))
    chosen = item.config.getini("agentrec_dir")
    if chosen:
        inside = os.path.relpath(item.path.with_suffix(""), item.config.rootpath)
        base = item.config.rootpath / str(chosen) / inside
    else:
        base = item.path.parent / DEFAULT / item.path.stem
    return Place(base / _name(item), base)


def _name(item: pytest.Item) -> str:
    """The name of a test's folder: ``test_it``, ``TestAgent.test_it``, ``test_it-oslo`` for the parameter ``oslo``.

    File systems take no other characters than these everywhere, and some do not tell a from A: a digest does then.
    """
    parent = item.getparent(pytest.Class)
    names = [node.name for node in parent.listchain() if isinstance(node, pytest.Class)] if parent is not None else []
    names.append(getattr(item, "originalname", None) or item.name.partition("[")[0])
    parameters = item.name.partition("[")[2].removesuffix("]")
    name = ".".join(names) + (f"-{parameters}" if parameters else "")
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
    if plain == name and len(name) <= LONGEST and (not parameters or parameters == parameters.lower()):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: LONGEST - 9].rstrip('.-')}-{digest}"

"""What a person must know after a run of pytest: what was recorded, what is out of date, what nobody uses any more.

Imports nothing of otel-agentrec: every run of pytest looks here at its end. Processes of pytest-xdist hand their part over as
plain data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Summary", "hand_over", "summary_of", "write"]

Told = dict[str, list[list[str]]]
KINDS = ("recorded", "unseen", "hidden", "stale", "kept", "unused", "replayed")
SHOWN = 20


class Summary:
    """What is told, by kind; an entry is a test or a folder, and a line about it.

    ``recorded``: put in place; ``unseen``: tools of it that nobody intercepted; ``hidden``: of those, what git would leave out; ``stale``: replayed, and calls were left over;
    ``kept``: not recorded anew, because the test failed; ``unused``: folders of no test; ``replayed``: the same.
    """

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        self.used: set[str] = set()
        self._bases: dict[Path, bool] = {}
        """Folder of a module's recordings -> whether all tests of that module were collected."""
        self.recorded_at: dict[str, str] = {}
        """Folder -> the test that recorded there in this run."""

    def collected(self, items: Iterable[pytest.Item]) -> None:
        """These tests have recordings of their own."""
        from otel_agentrec.pytest_plugin.place import place_of

        for item in items:
            place = place_of(item)
            self.used.add(os.path.realpath(place.path))
            if place.base is not None:
                self._bases.setdefault(place.base, _is_whole(item.config, item))

    def tell(self, kind: str, what: str, line: str = "") -> None:
        self.entries[kind][what] = line

    def find_unused(self) -> None:
        """Recordings that no test of these modules uses, and those of modules that are gone."""
        whole = {base for base, is_whole in self._bases.items() if is_whole}
        for base in whole:
            for folder in _recordings_in(base):
                if os.path.realpath(folder) not in self.used:
                    self.tell("unused", os.path.relpath(folder))
        for parent in {base.parent for base in whole if base.parent.name == "recordings"}:
            for base in parent.iterdir() if parent.is_dir() else ():
                if not base.name.startswith(".") and not parent.parent.joinpath(f"{base.name}.py").exists():
                    for folder in _recordings_in(base):
                        if os.path.realpath(folder) not in self.used:
                            self.tell("unused", os.path.relpath(folder))

    def to_json(self) -> Told:
        return {kind: [[what, line] for what, line in told.items()] for kind, told in self.entries.items()}

    def add(self, told: Told) -> None:
        """Take what another process found."""
        for kind, entries in told.items():
            for what, line in entries:
                self.tell(kind, what, line)


_KEY: pytest.StashKey[Summary] = pytest.StashKey()


def summary_of(config: pytest.Config) -> Summary:
    """The summary of this run, made when there is none."""
    return config.stash.setdefault(_KEY, Summary())


def hand_over(config: pytest.Config) -> None:
    """At the end of a process: find what is unused, and give all to the process that prints it, where that is another."""
    summary = config.stash.get(_KEY, None)
    if summary is None:
        return
    summary.find_unused()
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["agentrec"] = summary.to_json()


def write(reporter: Any, config: pytest.Config) -> None:
    """Print it."""
    summary = config.stash.get(_KEY, None)
    if summary is None:
        return
    told = summary.entries
    lines: list[str] = []
    if told["recorded"]:
        lines.append(f"recorded {_count(told['recorded'])}; to be committed:")
        lines += _listed("  git add " + what for what in told["recorded"])
    if told["hidden"]:
        lines.append("git ignores what was recorded; take the folder out of .gitignore:")
        lines += _listed("  " + what for what in told["hidden"])
    if told["unseen"]:
        lines.append("tools that nobody intercepts; a replay wants @resumable_tool on them, or on the test:")
        lines += _listed(
            f"  {what}: @pytest.mark.agentrec(rerun_tools={names})" for what, names in told["unseen"].items()
        )
    if told["kept"]:
        lines.append("not recorded, and the former recording stands, for the test failed:")
        lines += _listed("  " + what for what in told["kept"])
    if told["stale"]:
        lines.append("out of date: recorded calls that nobody asked for (pytest --agentrec=refresh):")
        lines += _listed(f"  {what}: {line}" for what, line in told["stale"].items())
    if told["unused"]:
        lines.append("of no test; to be deleted:")
        lines += _listed("  " + what for what in told["unused"])
    if told["replayed"] and (lines or config.getoption("verbose") > 0):
        lines.append(f"{_count(told['replayed'])} replayed, no call was made")
    if lines:
        reporter.section("recordings of agents", sep="-")
        for line in lines:
            reporter.line(line)


def _listed(lines: Iterable[str]) -> list[str]:
    all_ = list(lines)
    return all_[:SHOWN] + ([f"  and {len(all_) - SHOWN} more"] if len(all_) > SHOWN else [])


def _count(told: dict[str, str]) -> str:
    return f"{len(told)} recording" + ("" if len(told) == 1 else "s")


def _is_whole(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether all tests of an item's module are collected; not when some were named, or only what failed last time runs."""
    if config.getoption("lf", False):
        return False
    module = os.path.realpath(item.path)
    for given in config.args:
        file, sign, _ = given.partition("::")
        if sign and os.path.realpath(config.invocation_params.dir / file) == module:
            return False
    return True


def _recordings_in(base: Path) -> list[Path]:
    if not base.is_dir():
        return []
    folders = [p for p in sorted(base.iterdir()) if p.is_dir() and not p.name.startswith(".")]
    return [folder for folder in folders if any(folder.glob("*.jsonl"))]

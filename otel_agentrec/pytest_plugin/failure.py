"""Why a replayed test failed, in a few lines: what the agent asks now, what it asked then, where, and how to go on."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from otel_agentrec.redaction import Redactor
from otel_agentrec.replay.divergence import in_other_lanes
from otel_agentrec.replay.report import ReplayReport
from otel_agentrec.resume.excerpts import excerpts

__all__ = ["again", "fail", "failure_text", "in_test_words", "longrepr"]

Json = Any
MOST = 5
"""Differences that are shown."""
_HERE = str(Path(__file__).parent.parent) + os.sep
_FLAG = re.compile(r"--(rerun-tools|inert) ('[^']*'|[^\s;,]+(?:,[^\s;,]+)*)")


def failure_text(report: ReplayReport, item: pytest.Item, where: str) -> str:
    """What stopped a replay.

    Args:
        report: with the ``error`` that stopped it.
        where: the recording, as a person here would write it.
    """
    told = report.divergence
    redact = Redactor().text
    lines = _diverged(told, redact) if told is not None else _stopped(report)
    asked = _asked_at(report.error.__traceback__, item)
    answered = f"{report.models} of {report.recorded.get('models', 0)} model calls were answered until then"
    lines += [f"  asked in {asked}"] if asked else []
    lines += [f"  recording: {where} ({answered})"]
    heal = told.get("heal") if told is not None else None
    if heal:
        lines.append(f"  if it can't change the answer: @pytest.mark.agentrec(inert={list(heal)!r})")
    elif report.hint:
        lines.append(f"  {in_test_words(report.hint)}")
    lines.append(f"  {again(item)}")
    return redact("\n".join(lines))


def again(item: pytest.Item, mode: str = "refresh") -> str:
    """The command that records a test anew."""
    said = "if the change is meant, record it anew" if mode == "refresh" else "record it (real calls)"
    return f"{said}: pytest --agentrec={mode} {shlex.quote(item.nodeid)}"


def in_test_words(hint: str) -> str:
    """A hint of the command line as a test says it."""

    def named(match: re.Match[str]) -> str:
        values = [value for value in match[2].strip("'").split(",") if value]
        return f"@pytest.mark.agentrec({match[1].replace('-', '_')}={values!r})"

    return _FLAG.sub(named, hint)


def fail(text: str) -> None:
    """Raise pytest's own failure, without a traceback."""
    pytest.fail(text, pytrace=False)


def longrepr(item: pytest.Item, text: str) -> Any:
    """A failure as pytest keeps it in a report, with ``text`` in place of a traceback."""
    try:
        fail(text)
    except pytest.fail.Exception:
        return item.repr_failure(pytest.ExceptionInfo.from_current())


def _diverged(told: Mapping[str, Json], redact: Callable[[str], str]) -> list[str]:
    step, path, lane = told.get("step"), told.get("path"), told.get("lane")
    at = (f" at step {step}" if step is not None else "") + (f" of {lane}" if lane else "")
    if told.get("kind") == "network":
        return [f"the test reaches out while it is replayed: {told.get('reason')}"]
    lines = [f"the agent differs from its recording{at}" + (f", {path}" if path else f": {told.get('reason')}")]
    elsewhere = told.get("elsewhere")
    if elsewhere:
        lines.append(f"  {in_other_lanes(elsewhere, lane or '')}")
    differences = told.get("differences") or []
    for one in differences[:MOST]:
        # cut afterwards: of half a secret nobody would know that it is one
        recorded, now = excerpts(redact(_shown(one, "recorded")), redact(_shown(one, "asked")))
        lines += [f"  {one['path']} ({one['kind']})", f"    recorded: {recorded}", f"    now:      {now}"]
    if len(differences) > MOST:
        lines.append(f"  and {len(differences) - MOST} more")
    return lines


def _stopped(report: ReplayReport) -> list[str]:
    return [f"the test can't be replayed: {report.reason}"]


def _shown(difference: Mapping[str, Json], key: str) -> str:
    return json.dumps(difference[key], ensure_ascii=False, default=str) if key in difference else "(absent)"


def _asked_at(trace: TracebackType | None, item: pytest.Item) -> str | None:
    """The innermost place in the project's own code: ``agent.py:12 (ask)``."""
    found = None
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename
        if "site-packages" not in file and not file.startswith(_HERE) and _is_below(file, item.config.rootpath):
            found = f"{os.path.relpath(file)}:{trace.tb_lineno} ({code.co_name})"
        trace = trace.tb_next
    return found


def _is_below(file: str, root: Path) -> bool:
    return Path(file).is_relative_to(root)

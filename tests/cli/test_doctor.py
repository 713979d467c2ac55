"""``doctor`` as a person reads it and as a program does."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.capture.doctor import packages
from otel_agentrec.cli.app import run
from tests.test_project import PYPROJECT

Out = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def findings(capsys: Out, *words: str) -> tuple[int, list[dict[str, Any]]]:
    code = run(["doctor", "--json", *words])
    out, err = capsys.readouterr()
    assert err == ""
    (line,) = out.splitlines()
    return code, json.loads(line)


def test_json_is_one_list_of_findings_with_stable_ids(capsys: Out) -> None:
    code, found = findings(capsys)
    assert all(list(one) == ["id", "level", "what", "why", "mend"] for one in found)
    assert all("\n" not in text for one in found for text in one.values())
    assert all(one["mend"] for one in found if one["level"] == "problem")
    ids = {one["id"] for one in found}
    assert {"python", "agentrec", "otel.sdk", "sampler", "limits.count", "limits.length", "path", "extra.run"} <= ids
    assert code == (1 if any(one["level"] == "problem" for one in found) else 0)


def test_exit_code_and_words(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    code = run(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert "     ok  calls that would be recorded: openai with messages" in lines
    assert code == any(line.startswith("problem") for line in lines)
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert run(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("problem  OTEL_SDK_DISABLED=true")
    assert lines[at + 1 : at + 3] == [
        "         OpenTelemetry makes no spans, so nothing is recorded",
        "         → unset OTEL_SDK_DISABLED",
    ]
    assert re.match(r"\d problem", lines[-1])


def test_words_of_the_command_are_its_own_and_nothing_is_run(
    capsys: Out, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is run and nobody is asked")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    (here / "app.py").write_text("raise SystemExit(5)")
    code, found = findings(capsys, "--", "python", "app.py", "--json", "--help")
    assert [one["what"] for one in found if one["id"] == "program.way"] != []
    assert code in (0, 1)
    assert [path.name for path in here.iterdir()] == ["app.py"]


def test_a_missing_extra_is_told_with_its_mend(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_is_there", lambda module: not module.startswith(("wrapt", "openai")))
    _, found = findings(capsys)
    missing = {one["id"]: one for one in found if one["level"] == "note" and one["id"].startswith("extra.")}
    assert set(missing) == {"extra.run", "extra.demo"}
    assert missing["extra.run"]["mend"] == "pip install 'otel-agentrec[run]'"


def test_every_extra_of_the_project_is_looked_for() -> None:
    for_users = set(PYPROJECT["project"]["optional-dependencies"]) - {"all", "test", "dev"}
    assert set(packages.EXTRAS) == for_users


def test_every_entry_point_of_the_project_is_looked_for() -> None:
    of_otel = set(PYPROJECT["project"]["entry-points"]) - {"pytest11"}
    assert set(packages.GROUPS) == of_otel

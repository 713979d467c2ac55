"""What every command does alike: help, errors, signals, closed streams, odd locales."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.cli import app as frame
from otel_agentrec.errors import UsageError

COMMANDS = sorted(frame.COMMANDS)


def agentrec(
    *argv: str, env: dict[str, str] | None = None, shell: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own; ``shell`` is put behind it (a redirection, a pipe)."""
    command = [sys.executable, "-m", "otel_agentrec", *argv]
    settings = {"capture_output": True, "timeout": 60, "env": {**os.environ, **(env or {})}}
    if shell is None:
        return subprocess.run(command, **settings)
    return subprocess.run(["bash", "-c", f'"$@" {shell}', "bash", *command], **settings)


def test_help_lists_the_commands_and_where_to_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert frame.run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert "otel-agentrec demo" in out


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_with_examples(name: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert frame.run([name, flag]) == 0
    out = capsys.readouterr().out
    assert f"Usage: otel-agentrec {name}" in out
    assert f"\n  otel-agentrec {name}" in out.partition("Examples:")[2]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from otel_agentrec._version import __version__

    assert frame.run(["--version"]) == 0
    assert capsys.readouterr().out == f"otel-agentrec {__version__}\n"


def test_a_mistyped_command_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert frame.run(["verfy", "x"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Did you mean 'verify'?" in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(
    "argv", [["--nonsense"], ["nodes"], ["nodes", "--limit", "many", "x"], ["verify", "--nonsense"]]
)
def test_wrong_usage_is_two_lines_and_exit_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert frame.run(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    what, hint = err.splitlines()
    assert what.startswith("otel-agentrec: ")
    assert "--help" in hint


class Failing:
    """Puts a command in place that raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
        import click

        from otel_agentrec.cli.command import command

        @command(examples="x")
        def failing() -> None:
            raise error

        assert isinstance(failing, click.Command)
        monkeypatch.setattr(frame.Commands, "get_command", lambda *_: failing)
        monkeypatch.setitem(frame.COMMANDS, "fail", ("", ""))


def test_an_error_is_what_happened_and_how_to_mend_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Failing(monkeypatch, UsageError("the cake is out", "bake one"))
    assert frame.run(["fail"]) == 2
    assert capsys.readouterr() == ("", "otel-agentrec: the cake is out\n  bake one\n")


def test_the_traceback_comes_only_with_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Failing(monkeypatch, ZeroDivisionError("by zero"))
    assert frame.run(["fail"]) == 2
    err = capsys.readouterr().err
    assert "ZeroDivisionError: by zero" in err and "--debug" in err and "Traceback" not in err
    for argv in (["fail", "--debug"], ["--debug", "fail"]):
        assert frame.run(argv) == 2
        assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
        (OSError(28, "No space left on device"), 2),
        (RecursionError(), 2),
    ],
)
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    Failing(monkeypatch, error)
    assert frame.run(["fail"]) == code


@pytest.mark.parametrize("shell", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_streams_that_are_closed_from_the_start(shell: str) -> None:
    done = agentrec("--help", shell=shell)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_a_full_disk_behind_stdout_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = agentrec("--help", shell="> /dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [b"otel-agentrec: No space left on device"]


def test_help_works_in_a_bare_environment() -> None:
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TERM": "dumb"}
    keep = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "otel_agentrec", "-h"], capture_output=True, timeout=30, env={**bare, **keep}
    )
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout


def test_help_loads_no_heavy_package() -> None:
    code = (
        "import sys; from otel_agentrec.cli.app import run; run(['--help'])\n"
        "heavy = {'rich', 'opentelemetry', 'openai', 'orjson', 'cryptography', 'google'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_help_is_quick() -> None:
    """Our own part: the processor's time beyond a bare interpreter, best of three."""

    def used() -> float:
        times = os.times()
        return times.children_user + times.children_system

    def best(*argv: str) -> float:
        times = []
        for _ in range(3):
            begun = used()
            subprocess.run([sys.executable, *argv], capture_output=True, timeout=60, check=True)
            times.append(used() - begun)
        return min(times)

    assert best("-m", "otel_agentrec", "--help") - best("-c", "") < 0.5

"""What can be wrong with a path, with the streams of a process, and with the words in a recording."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.cli.app import run
from tests.cli.test_frame import agentrec

READERS = [
    ["nodes"],
    ["nodes", "--json"],
    ["runs"],
    ["runs", "--json"],
    ["show"],
    ["show", "--json"],
    ["verify"],
    ["verify", "--json"],
]
Out = pytest.CaptureFixture[str]


def bad_paths(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("milk, bread\n")
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "binary.jsonl").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "nothing.jsonl").write_bytes(b"")
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "readme.md").write_text("# hello")
    return {
        "missing": tmp_path / "missing",
        "below a file": tmp_path / "notes.txt" / "rec",
        "empty directory": tmp_path / "empty",
        "text file": tmp_path / "notes.txt",
        "other JSON": tmp_path / "other.jsonl",
        "binary": tmp_path / "binary.jsonl",
        "empty file": tmp_path / "nothing.jsonl",
        "directory of something else": tmp_path / "strange",
        "name too long": tmp_path / ("x" * 5000),
    }


@pytest.mark.parametrize("command", READERS, ids=" ".join)
@pytest.mark.parametrize(
    "what",
    [
        "missing",
        "below a file",
        "empty directory",
        "text file",
        "other JSON",
        "binary",
        "empty file",
        "directory of something else",
        "name too long",
    ],
)
def test_a_path_without_a_recording(command: list[str], what: str, tmp_path: Path, capsys: Out) -> None:
    assert run([*command, str(bad_paths(tmp_path)[what])]) == 2
    out, err = capsys.readouterr()
    assert out == "" or command[0] == "verify"
    if out == "":
        said, hint = err.splitlines()
        assert said.startswith("otel-agentrec: ") and "inside otel-agentrec" not in said
        assert hint.startswith("  ")


@pytest.mark.parametrize("what", ["missing", "empty directory", "binary", "other JSON"])
def test_ingest_of_what_is_no_otlp(what: str, tmp_path: Path, capsys: Out) -> None:
    assert run(["ingest", str(bad_paths(tmp_path)[what]), "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2 and "inside otel-agentrec" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_reader_that_leaves_is_no_news(command: list[str], recording: Path) -> None:
    """``otel-agentrec … | true``; the exit code of verify is its answer all the same."""
    done = agentrec(*command, str(recording), shell='| true; exit "${PIPESTATUS[0]}"')
    assert done.stderr == b""
    assert done.returncode in ((0,) if command[0] == "verify" else (0, 141))


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_closed_stdout_is_no_error(command: list[str], recording: Path) -> None:
    done = agentrec(*command, str(recording), shell=">&-")
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_full_disk_behind_stdout(command: list[str], recording: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = agentrec(*command, str(recording), shell="> /dev/full")
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr and b"Traceback" not in done.stderr


BARE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_locale_without_umlauts_and_no_home(command: list[str], recording: Path) -> None:
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "otel_agentrec", *command, str(recording)],
        capture_output=True,
        timeout=30,
        env={**keep, **BARE},
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    if "--json" not in command:
        done.stdout.decode("ascii")


@pytest.mark.parametrize("command", [c for c in READERS if "--json" not in c], ids=" ".join)
def test_words_of_a_tool_can_not_colour_the_terminal(command: list[str], recording: Path, capsys: Out) -> None:
    argv = [*command, str(recording), *(["aa"] if command == ["show"] else [])]
    assert run(argv) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    if command[0] in ("nodes", "show"):
        assert "\\x1b[31mred" in out


@pytest.mark.parametrize("command", [c for c in READERS if "--json" not in c], ids=" ".join)
@pytest.mark.parametrize("width", ["1", "20", "40", "80"])
def test_a_narrow_terminal(
    command: list[str], width: str, recording: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert run([*command, str(recording)]) == 0
    assert capsys.readouterr().out.strip()


def on_a_terminal(argv: list[str], env: dict[str, str]) -> str:
    """The output of a command whose stdout and stderr are a terminal."""
    import pty
    import select

    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "otel_agentrec", *argv],
        stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **env},
    ) as child:  # fmt: skip
        os.close(follower)
        said = b""
        try:
            while select.select([leader], [], [], 20)[0] and (data := os.read(leader, 65536)):
                said += data
        except OSError:
            pass  # Linux: the other side was closed
        finally:
            os.close(leader)
            child.wait(timeout=20)
    return said.decode("utf-8", "replace")


def test_colours_only_on_a_terminal_and_not_with_no_color(recording: Path) -> None:
    argv = ["verify", str(recording)]
    assert "\x1b[1;32mINTACT" in on_a_terminal(argv, {})
    assert "\x1b[1;32m" not in on_a_terminal(argv, {"NO_COLOR": "1"})

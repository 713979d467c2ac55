"""What the demo does, without a word of it printed: an agent recorded in a process of its own, a byte changed in a copy."""

from __future__ import annotations

import codecs
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from otel_agentrec.demo.script import Call, Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import AgentRecError, ExtraMissing, UsageError

__all__ = [
    "ANSWER",
    "QUESTION",
    "Flip",
    "agent_command",
    "changed_copy",
    "fresh_directory",
    "record",
    "require_extra",
    "script",
]

QUESTION = "I want to go walking in the hills near Oslo tomorrow. Will it rain, and when does the last train go home?"
ANSWER = "Go, but start early: light rain from 15:00. Your last train leaves Finse at 21:42, platform 3."
CHILD_SECONDS = 180.0
"""So long the agent may take. Right after an installation, Python has yet to compile what it imports."""
NEEDED = ("openai", "opentelemetry.util.genai", "opentelemetry.instrumentation.genai.openai")


def script(answer: str) -> list[Turn]:
    """The model's part: it asks for two tools at once, then answers."""
    return [
        Turn(
            tool_calls=[
                Call("weather", {"place": "Finse", "day": "tomorrow"}),
                Call("last_train", {"start": "Finse", "to": "Oslo"}),
            ],
            delay=0.05,
        ),
        Turn(answer, delay=0.05, chunk_delay=0.02),
    ]


def require_extra() -> None:
    """Raise ExtraMissing unless the packages of the extra ``demo`` are there."""
    for name in NEEDED:
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ExtraMissing("the demo", "demo")


def fresh_directory(out: str | None) -> Path:
    """Make the directory to record into: ``out``, or the first free one of ``agentrec-demo``, ``agentrec-demo-2`` ... here.

    Raises:
        UsageError: ``out`` is there already and not empty, or the directory can't be made.
    """
    try:
        if out is not None:
            path = Path(out)
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise UsageError(
                    f"{out} is there already, and not empty", "give --out a new directory, or leave it out"
                )
            return path
        number = 1
        while True:
            path = Path("agentrec-demo" if number == 1 else f"agentrec-demo-{number}")
            try:
                path.mkdir(mode=0o700)
                return path
            except FileExistsError:
                number += 1
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"can't make a directory to record into: {why}", "give --out a directory you can write"
        ) from None


def agent_command(question: str, python: str = "python") -> list[str]:
    """The demo's agent as a program to run."""
    return [python, "-m", "otel_agentrec.demo.agent", question]


def record(out: Path, answer: str, question: str, say: Callable[[str], None]) -> None:
    """Run the demo's agent under ``otel-agentrec run`` against a scripted model.

    Args:
        out: the recording.
        answer: what the model answers in the end.
        question: what the agent is asked.
        say: is given what the agent prints, as it comes.

    Raises:
        AgentRecError: the agent failed, or did not end in time.
    """
    with ScriptedServer(script(answer)) as server:
        command = [sys.executable, "-m", "otel_agentrec", "run", "--out", str(out), "--"]
        command += agent_command(question, sys.executable)
        with subprocess.Popen(
            command,
            env=_environment(server.base_url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            late = threading.Event()

            def give_up() -> None:
                late.set()
                child.kill()

            alarm = threading.Timer(CHILD_SECONDS, give_up)
            alarm.start()
            errors: list[bytes] = []
            drain = threading.Thread(target=lambda: errors.append(child.stderr.read() if child.stderr else b""))
            drain.start()
            try:
                for piece in _pieces(child):
                    say(piece)
                child.wait()
                drain.join()
            except BaseException:
                child.kill()
                raise
            finally:
                alarm.cancel()
    told = b"".join(errors).decode("utf-8", "replace").strip()
    if late.is_set():
        raise AgentRecError(
            f"the demo's agent did not end within {CHILD_SECONDS:g} seconds",
            "the first start is the longest: try again",
        ) from RuntimeError(told)
    ours = [line for line in told.splitlines() if line.startswith("otel-agentrec: ")]
    if child.returncode != 0:
        lines = [line for line in told.splitlines() if line not in ours]
        last = f": {lines[-1]}" if lines else ""
        raise AgentRecError(
            f"the demo's agent ended with code {child.returncode}{last}", "with --debug you see all that it said"
        ) from RuntimeError(told)
    if not any(out.glob("*.jsonl")):
        why = f": {ours[-1].partition(': ')[2]}" if ours else ""
        raise AgentRecError(f"nothing was recorded{why}", "give --out another directory") from RuntimeError(told)


def _environment(base_url: str) -> dict[str, str]:
    """The user's environment with the scripted model in place of a real one, and no proxy between."""
    hidden = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"}
    kept = {k: v for k, v in os.environ.items() if k.upper() not in hidden and not k.startswith(("OTEL_", "OPENAI_"))}
    return {
        **kept,
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": "no-key-needed",
        "NO_PROXY": "127.0.0.1",
        # nothing leaves the machine, whatever is set for other programs
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONUNBUFFERED": "1",
    }


def _pieces(child: subprocess.Popen[bytes]) -> Iterator[str]:
    assert child.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := os.read(child.stdout.fileno(), 4096):
        if text := decoder.decode(data):
            yield text


@dataclass(frozen=True)
class Flip:
    """One changed byte: ``file`` by name, ``at`` counted from 0, and the text around it before and after."""

    file: str
    at: int
    before: str
    after: str


@contextmanager
def changed_copy(recording: Path, answer: str, at: int | None) -> Iterator[tuple[Path, Flip]]:
    """A copy of a recording with the lowest bit of one byte changed; it is deleted at the end.

    Args:
        recording: a directory with one stream.
        answer: text that the content file holds; without ``at`` its first digit is changed, else its first letter.
        at: which byte of the content file to change, counted from 0.

    Raises:
        UsageError: the content file is shorter than ``at``.
    """
    with tempfile.TemporaryDirectory(prefix="agentrec-demo-") as scratch:
        copy = Path(scratch) / "changed-copy"
        shutil.copytree(recording, copy)
        content = max(copy.glob("*.content.jsonl"), key=lambda path: path.stat().st_size)
        data = bytearray(content.read_bytes())
        at = _place(bytes(data), answer) if at is None else at
        if not 0 <= at < len(data):
            raise UsageError(f"there is no byte {at} in {content.name}", f"give a number from 0 to {len(data) - 1}")
        before = _around(data, at)
        data[at] ^= 1
        content.write_bytes(data)
        yield copy, Flip(content.name, at, before, _around(data, at))


def _place(data: bytes, answer: str) -> int:
    """A byte of the answer whose lowest bit can change and leave a character that is as plain."""
    inside = json.dumps(answer, ensure_ascii=False)[1:-1].encode()  # as it stands inside a JSON string
    start = data.rfind(inside)
    if start < 0:
        return len(data) // 2
    for plain in (bytes.isdigit, bytes.isalpha):
        for offset in range(len(inside)):
            byte = inside[offset : offset + 1]
            if plain(byte) and plain(bytes([byte[0] ^ 1])):
                return start + offset
    return start


def _around(data: bytes | bytearray, at: int) -> str:
    return bytes(data[max(0, at - 12) : at + 13]).decode("utf-8", "replace")

"""What the demo does, without a word of it printed: an agent recorded in a process of its own, a byte changed in a copy."""

from __future__ import annotations

import importlib.util
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from otel_agentrec.demo.child import run_agent
from otel_agentrec.demo.script import Call, Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import AgentRecError, ExtraMissing, UsageError

__all__ = [
    "ANSWER",
    "QUESTION",
    "Flip",
    "changed_copy",
    "fresh_directory",
    "record",
    "require_extra",
    "script",
]

QUESTION = "I want to go walking in the hills near Oslo tomorrow. Will it rain, and when does the last train go home?"
ANSWER = "Go, but start early: light rain from 15:00. Your last train leaves Finse at 21:42, platform 3."
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
        ended = run_agent(["run", "--out", str(out)], question, server.base_url, say)
    if ended.code != 0:
        last = f": {ended.last_of_agent}" if ended.last_of_agent else ""
        raise AgentRecError(
            f"the demo's agent ended with code {ended.code}{last}", "with --debug you see all that it said"
        ) from RuntimeError(ended.told)
    if not any(out.glob("*.jsonl")):
        why = f": {ended.ours[-1].partition(': ')[2]}" if ended.ours else ""
        raise AgentRecError(f"nothing was recorded{why}", "give --out another directory") from RuntimeError(ended.told)


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

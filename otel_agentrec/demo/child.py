"""The demo's agent under ``otel-agentrec run`` or ``replay``, in a process of its own, against a scripted model."""

from __future__ import annotations

import codecs
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from otel_agentrec.errors import AgentRecError

__all__ = ["Ended", "agent_command", "run_agent"]

CHILD_SECONDS = 180.0
"""So long the agent may take. Right after an installation, Python has yet to compile what it imports."""


@dataclass(frozen=True)
class Ended:
    """How it ended. ``code``: its exit code, negative for the signal that killed it; ``told``: what it said on stderr."""

    code: int
    told: str

    @property
    def ours(self) -> list[str]:
        """The lines of ``told`` that otel-agentrec wrote, each with the hint below it."""
        ours: list[str] = []
        for line in self.told.splitlines():
            if line.startswith("otel-agentrec: ") or (line.startswith("  ") and ours and line != line.strip()):
                ours.append(line)
        return ours

    @property
    def last_of_agent(self) -> str:
        """The last line that the agent itself wrote, empty if there is none."""
        lines = [line for line in self.told.splitlines() if line not in self.ours]
        return lines[-1] if lines else ""


def agent_command(question: str, python: str = "python") -> list[str]:
    """The demo's agent as a program to run."""
    return [python, "-m", "otel_agentrec.demo.agent", question]


def run_agent(
    words: Sequence[str], question: str, base_url: str, say: Callable[[str], None] = lambda _: None, **more: str
) -> Ended:
    """Run the agent to its end.

    Args:
        words: the command of ``otel-agentrec`` and its options, up to the ``--``.
        question: what it is asked.
        base_url: where the model is.
        say: is given what the agent prints, as it comes.
        more: further variables for its environment.

    Raises:
        AgentRecError: it did not end in time.
    """
    command = [sys.executable, "-m", "otel_agentrec", *words, "--", *agent_command(question, sys.executable)]
    with subprocess.Popen(
        command,
        env={**_environment(base_url), **more},
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
    return Ended(child.returncode, told)


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

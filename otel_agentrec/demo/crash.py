"""The demo's second story, without a word of it printed: an agent is killed between an effect and its record, and goes on.

with Crash(recording) as crash:
    crash.kill(say)             # the ticket is bought, the process gone
    crash.resume(say)           # exit code 75: nobody knows whether it was bought
    crash.unknown()             # what is to be settled
    crash.resume(say)           # after that: goes on to its end
    crash.tickets, crash.asked  # one ticket, two answers of the model
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from otel_agentrec.demo.child import Ended, run_agent
from otel_agentrec.demo.script import Call, Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import AgentRecError
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import UNKNOWN, Effect, read_effects
from otel_agentrec.nodes.read import read_nodes

__all__ = ["DONE", "ORDER", "TICKET", "Crash"]

ORDER = "Buy me a ticket for that train."
DONE = "Done: seat 42 on the 21:42 from Finse is yours, 329 kroner."
TICKET = '{"seat": 42, "kroner": 329}'
"""What ``buy_ticket`` gave, and nobody was told."""


class Crash:
    """A run that buys a ticket, with the model that it asks and the ticket office that sells. A context manager.

    Args:
        recording: where it is recorded; every run in it has come to its end.
    """

    def __init__(self, recording: Path) -> None:
        self.recording = recording
        self.run = ""
        """Id of the run that was killed, once :meth:`unknown` has looked."""
        self._model = ScriptedServer(
            [Turn(tool_calls=[Call("buy_ticket", {"start": "Finse", "to": "Oslo"})]), Turn(DONE)]
        )
        self._scratch = tempfile.TemporaryDirectory(prefix="agentrec-demo-")
        self._office = Path(self._scratch.name) / "tickets.txt"

    def __enter__(self) -> Crash:
        self._model.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._model.stop()
        self._scratch.cleanup()

    @property
    def tickets(self) -> list[str]:
        """What the ticket office has sold, a line for each."""
        return self._office.read_text(encoding="utf-8").splitlines() if self._office.exists() else []

    @property
    def asked(self) -> int:
        """Requests that reached the model."""
        return len(self._model.requests)

    def kill(self, say: Callable[[str], None]) -> None:
        """Start the run; it dies (SIGKILL) in the tool, after the effect.

        Raises:
            AgentRecError: it ended in another way.
        """
        ended = self._run(["run", "--out", str(self.recording)], say, AGENTREC_DEMO_KILL="1")
        if ended.code != -signal.SIGKILL:
            raise AgentRecError(f"the agent was to be killed, but ended with code {ended.code}: {ended.last_of_agent}")

    def resume(self, say: Callable[[str], None]) -> Ended:
        """Go on with it."""
        return self._run(["run", "--resume", str(self.recording)], say)

    def replay(self, say: Callable[[str], None]) -> Ended:
        """See it once more, all starts as one. The model is switched off for it."""
        address = self._model.base_url
        self._model.stop()
        return run_agent(["replay", str(self.recording), "--run", self.run], ORDER, address, say, **self._environment())

    def unknown(self) -> Effect:
        """The effect of which nobody knows whether it happened.

        Raises:
            AgentRecError: there is not exactly one.
        """
        recording = Recording(self.recording)
        found = [e for e in read_effects(recording, read_nodes(recording)) if e.state == UNKNOWN]
        if len(found) != 1:
            raise AgentRecError(f"there are {len(found)} effects of unknown outcome, not 1")
        self.run = found[0].root
        return found[0]

    def _run(self, words: list[str], say: Callable[[str], None], **more: str) -> Ended:
        return run_agent(words, ORDER, self._model.base_url, say, **self._environment(), **more)

    def _environment(self) -> dict[str, str]:
        return {"AGENTREC_DEMO_OFFICE": str(self._office)}

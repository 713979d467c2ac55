"""A server program of a test: started on loopback, its words kept, ended by the process id that the start gave."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_WAIT = 30.0


def free_ports(count: int) -> list[int]:
    """TCP ports of loopback that nobody listened on a moment ago, all different."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def get(url: str, timeout: float = 10.0) -> bytes:
    """The body of an answer that is not an error.

    Raises:
        OSError: nobody is there, or the answer is an error (:class:`urllib.error.HTTPError`).
    """
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        body: bytes = answer.read()
        return body


class Program:
    """A subclass says what :meth:`is_healthy`; ``directory`` is where it works and where ``log`` is."""

    has_children = False
    """It starts programs of its own, which do not end with it unless they are told."""
    start_wait = 120.0
    """Seconds that its start may take."""

    def __init__(self, directory: Path, command: Sequence[str], environment: Mapping[str, str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.command = list(command)
        self.environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was never started"
        return self._process.pid

    @property
    def log(self) -> str:
        """All that it printed since it was made, over all its starts."""
        path = self.directory / "log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def is_healthy(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        """Returns once it is healthy.

        Raises:
            RuntimeError: it ended, or was not healthy within ``start_wait``; with the last it printed.
        """
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=self.has_children,
            )
        until = time.monotonic() + self.start_wait
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"{Path(self.command[0]).name} does not start: {self.log[-4000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return self.is_healthy()
        except OSError:
            return False

    def kill(self) -> None:
        """``kill -9``, and its end awaited."""
        if self._process is not None and self._process.poll() is None:
            self._tell(signal.SIGKILL)
            self._process.wait(STOP_WAIT)

    def _tell(self, what: signal.Signals) -> None:
        os.killpg(self.pid, what) if self.has_children else os.kill(self.pid, what)

    def stop(self) -> None:
        """Ends it in good order, so that it delivers what it holds; does nothing when it does not run."""
        if self._process is None or self._process.poll() is not None:
            return
        self._tell(signal.SIGTERM)
        try:
            self._process.wait(STOP_WAIT)
        except subprocess.TimeoutExpired:
            self.kill()

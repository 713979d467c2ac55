"""A PostgreSQL server of its own: Debian's packages, loopback, a free port, data in a temporary directory, no fsync."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

NEEDED = "PostgreSQL is not installed: apt-get install postgresql"
START_WAIT, STOP_WAIT = 60.0, 30.0


def programs() -> Path | None:
    """Where the newest ``initdb`` and ``postgres`` are; Debian keeps them off the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3].split(".")[0]))
    on_path = shutil.which("initdb")
    initdb = found[-1] if found else Path(on_path).resolve() if on_path else None
    return initdb.parent if initdb else None


class Postgres:
    """Make the data with the constructor, then :meth:`start`; :meth:`kill` is what a crash of the machine's process is."""

    def __init__(self, directory: Path) -> None:
        found = programs()
        assert found is not None, NEEDED
        self._bin = found
        self._directory = directory
        self._server: subprocess.Popen[bytes] | None = None
        # It refuses to run as root, so root lends it the user that Debian's package made.
        self._as: dict[str, object] = {}
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(directory, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._run("initdb", "-D", "data", "-A", "trust", "-U", "agentrec", "-E", "UTF8", "--locale=C", "--no-sync")

    @property
    def url(self) -> str:
        return f"postgresql://agentrec@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Returns once it answers."""
        options = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "off"}
        command = [str(self._bin / "postgres"), "-D", "data", *(f"--{key}={value}" for key, value in options.items())]
        with (self._directory / "log").open("ab") as log:
            self._server = subprocess.Popen(  # type: ignore[call-overload]
                command, cwd=self._directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as
            )
        until = time.monotonic() + START_WAIT
        asked = [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "agentrec"]
        while subprocess.run([*asked, "-d", "postgres"], timeout=10).returncode:
            if self._server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL does not start: {(self._directory / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """``kill -9``, the process that listens and those that serve, at once."""
        assert self._server is not None
        mine = _children(self._server.pid)
        for pid in (self._server.pid, *mine):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._server.wait(STOP_WAIT)
        until = time.monotonic() + STOP_WAIT
        while any(Path(f"/proc/{pid}").exists() for pid in mine) and time.monotonic() < until:
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends it without waiting for those who are connected."""
        if self._server is None or self._server.poll() is not None:
            return
        self._server.send_signal(signal.SIGQUIT)
        try:
            self._server.wait(STOP_WAIT)
        except subprocess.TimeoutExpired:
            self.kill()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(  # type: ignore[call-overload]
            [str(self._bin / program), *arguments], cwd=self._directory, capture_output=True, timeout=120, **self._as
        )
        assert done.returncode == 0, done.stderr.decode()


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    """A server that runs for the length of the block; skips the test where PostgreSQL is not installed."""
    if programs() is None:
        pytest.skip(NEEDED)
    directory = Path(tempfile.mkdtemp(prefix="agentrec-pg-"))
    try:
        server = Postgres(directory)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)

"""``claims/``: one lock per run that is being resumed, so that a run has one attempt at a time.

A claim is a ``flock`` on ``claims/<name>.lock``; it goes with the process that holds it. The files are left: a lock that is
deleted while somebody waits for it would be two locks. Beside them lie ``claims/<command>.over``: empty files that tell the
processes of a command (see :mod:`otel_agentrec.journal.process`) that its run is gone on with by another one, so that one that
was left over begins no effect any more.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import weakref
from pathlib import Path

from otel_agentrec.errors import RecordingBusy
from otel_agentrec.journal.liveness import is_locked
from otel_agentrec.journal.locks import try_lock
from otel_agentrec.journal.process import command_of

__all__ = ["Claim", "claim_path", "is_claimed", "over_path"]

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def claim_path(directory: str | os.PathLike[str], root: str) -> Path:
    """The lock file of a run, by its root's id."""
    name = root if _PLAIN.fullmatch(root) else hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()
    return Path(directory) / "claims" / f"{name}.lock"


def is_claimed(directory: str | os.PathLike[str], root: str) -> bool:
    """Whether somebody (this process too) holds the claim of a run."""
    return is_locked(claim_path(directory, root))


def over_path(directory: str | os.PathLike[str], path: str) -> Path | None:
    """The file that says that the command of a process is over, by the process' path; None: it was started by no command."""
    last = command_of(path).rpartition("/")[2]
    return Path(directory) / "claims" / f"{last}.over" if last.startswith("r") and last.isalnum() else None


class Claim:
    """The claim of a run, held until :meth:`release` or the end of the process. A forked child does not hold it.

    Raises:
        RecordingBusy: somebody else holds it.
        OSError: its file can't be made.
    """

    def __init__(self, directory: str | os.PathLike[str], root: str) -> None:
        self.path = claim_path(directory, root)
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        if not try_lock(self._fd, 0.05):
            holder = _holder(self._fd)
            os.close(self._fd)
            self._fd = -1
            raise RecordingBusy(
                f"run {root} is being resumed or settled by {holder} already",
                "one attempt at a time: wait for it to end, or stop it",
            )
        self._file = os.fstat(self._fd)
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        _CLAIMS.add(self)

    @property
    def is_held(self) -> bool:
        """Whether this process still holds it: its descriptor is open, and the file is where it was."""
        if self._fd < 0:
            return False
        try:
            ours, there = os.fstat(self._fd), self.path.stat()
        except OSError:
            return False
        return all((x.st_dev, x.st_ino) == (self._file.st_dev, self._file.st_ino) for x in (ours, there))

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


_CLAIMS: weakref.WeakSet[Claim] = weakref.WeakSet()


def _holder(fd: int) -> str:
    try:
        text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    except OSError:
        text = ""
    return f"process {text}" if text.isdecimal() else "another process"


def _after_fork_in_child() -> None:
    for claim in list(_CLAIMS):
        claim.release()  # closing keeps the parent's lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

"""Replace a whole file: whoever reads it, at any time and after any crash, finds the old contents or the new ones."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from otel_agentrec.journal.sync import sync_directory

__all__ = ["replace_file"]


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write ``data`` beside the file, on disk, and put it in its place. The directory is made (0700) if it is not there.

    Raises:
        OSError: nothing was changed.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)

"""The directory that is recorded into: is it there, can it be written, is there room, does locking work?"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from otel_agentrec.capture.doctor.finding import Finding, note, ok, problem

__all__ = ["check_place"]

LITTLE = 1 << 30
TOO_LITTLE = 100 << 20


def check_place(path: str) -> Iterator[Finding]:
    """Looks at a directory, or at where it will be made. Writes one empty file there, and removes it."""
    place = Path(path).absolute()
    if place.exists() and not place.is_dir():
        yield problem(
            "path", f"{place} is a file", "recordings are directories", "name a directory in OTEL_AGENTREC_PATH"
        )
        return
    there = next((above for above in (place, *place.parents) if above.exists()), None)
    if there is None or not there.is_dir():
        yield problem(
            "path", f"{place} can't be made", f"{there} is no directory", "name another directory in OTEL_AGENTREC_PATH"
        )
        return
    try:
        locks = _try_to_write(there)
    except OSError as error:
        yield problem(
            "path",
            f"{there} can't be written: {error.strerror or error}",
            "the program runs, and every event is counted as lost",
            "make it writable for this user, or name another directory in OTEL_AGENTREC_PATH",
        )
        return
    yield ok("path", f"recordings go to {place}" + ("" if place.exists() else ", which will be made"))
    if not locks:
        yield note(
            "path.locks",
            f"the file system of {there} supports no locks (flock)",
            "whether a stream is still being written can't be told",
            "record onto a local disk",
        )
    free = shutil.disk_usage(there).free
    if free < LITTLE:
        level = problem if free < TOO_LITTLE else note
        yield level(
            "path.space",
            f"{free >> 20} MB are free in {there}",
            "when the disk is full, events are lost and counted",
            "make room, or record onto another disk",
        )


def _try_to_write(place: Path) -> bool:
    """Whether locks work there. Raises OSError when it can't be written."""
    handle, name = tempfile.mkstemp(prefix=".agentrec-doctor-", dir=place)
    try:
        try:
            import fcntl
        except ImportError:  # Windows has locks of its own
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
    finally:
        os.close(handle)
        Path(name).unlink()

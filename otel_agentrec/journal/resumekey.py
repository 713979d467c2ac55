"""``resume.key``: the secret of one recording, under which the keys of its calls are made (docs/resume.md).

A plain hash of a request can be guessed back; an HMAC under this key can't. 32 random bytes, mode 0600, made once per
directory, never exported. Its *id* names it in stored keys: the first 8 hex digits of
``sha256("agentrec/resume-key/1\\0" ‖ key)``, which tells nothing of the key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from pathlib import Path

from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.journal.journal import make_directory
from otel_agentrec.journal.sync import sync_directory

__all__ = ["KEY_BYTES", "NAME", "key_id", "read_resume_key", "replace_resume_key", "resume_key"]

NAME = "resume.key"
KEY_BYTES = 32
_DOMAIN = b"agentrec/resume-key/1\0"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_PATIENCE = 1.0
"""Seconds to wait for another process that is writing the key where the file system has no hard links."""


def key_id(key: bytes) -> str:
    """The id of a key: 8 hex digits."""
    return hashlib.sha256(_DOMAIN + key).hexdigest()[:8]


def resume_key(directory: str | os.PathLike[str]) -> bytes:
    """The key of a recording directory; made, with the directory, when there is none. Racing processes get the same one.

    Raises:
        OSError: it can't be made or read.
        RecordingUnreadable: the file is no key.
    """
    where = Path(directory)
    found = read_resume_key(where)
    if found is not None:
        return found
    make_directory(where)
    draft = _draft(where)
    try:
        try:
            os.link(draft, where / NAME)  # all of it or nothing, and never over another one
        except FileExistsError:
            pass
        except OSError:  # no hard links here
            with contextlib.suppress(FileExistsError):
                _write(where / NAME, draft.read_bytes())
    finally:
        draft.unlink()
    sync_directory(where)
    return _had(where)


def read_resume_key(directory: str | os.PathLike[str]) -> bytes | None:
    """The key of a recording directory; None when it has none (a copy without its secret, an export).

    Raises:
        OSError: it can't be read.
        RecordingUnreadable: the file is no key.
    """
    path = Path(directory) / NAME
    try:
        key = path.read_bytes()
        deadline = time.monotonic() + _PATIENCE
        while len(key) < KEY_BYTES and time.monotonic() < deadline:
            time.sleep(0.01)
            key = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(key) != KEY_BYTES:
        raise RecordingUnreadable(
            f"{path} is no key: {len(key)} bytes instead of {KEY_BYTES}",
            "move it away; a new one is made, and recorded requests get new keys",
        )
    return key


def replace_resume_key(directory: str | os.PathLike[str]) -> bytes:
    """Give a recording a new key, so that no key made under the old one can be checked again. Raises OSError."""
    where = Path(directory)
    draft = _draft(where)
    key = draft.read_bytes()
    draft.replace(where / NAME)
    sync_directory(where)
    return key


def _draft(where: Path) -> Path:
    """A new key in a file of its own."""
    path = where / f".{NAME}.{secrets.token_hex(8)}"
    _write(path, secrets.token_bytes(KEY_BYTES))
    return path


def _write(path: Path, key: bytes) -> None:
    fd = os.open(path, _FLAGS, 0o600)
    try:
        os.write(fd, key)
        os.fsync(fd)
    finally:
        os.close(fd)


def _had(where: Path) -> bytes:
    found = read_resume_key(where)
    if found is None:
        raise FileNotFoundError(f"{where / NAME} was taken away")
    return found

"""The streams of chat sessions: ``sessions/<id>.jsonl`` in a recording, each opened by many processes one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from otel_agentrec.journal.draft import ContentMode, NewEvent
from otel_agentrec.journal.gate import OWN_EVENTS, Gate
from otel_agentrec.journal.index import Index, opening_payload
from otel_agentrec.journal.journal import make_directory
from otel_agentrec.journal.named import NamedStream
from otel_agentrec.journal.reader import SESSIONS

__all__ = ["id_of", "open_session", "seal_session", "stream_of"]

LONGEST = 180
"""Characters of an encoded id that a file name surely holds, with all endings."""


def stream_of(session: str) -> str:
    """``sessions/<percent-encoded id>``, the name of a session's stream: different ids have different names, and no id leads
    out of the directory.

    An id that is too long for a file name is cut and told apart by its digest; its events say it whole.

    Raises:
        ValueError: the id is empty.
    """
    if not session:
        raise ValueError("a session needs an id")
    name = quote(session, safe="", errors="surrogatepass").replace("~", "%7E")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if name.endswith(".content"):  # else its events would stand where another session has its content
        name = name.removesuffix(".content") + "%2Econtent"
    if len(name) > LONGEST:
        digest = sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        name = f"{name[: LONGEST - 40].rstrip('%')}~{digest}"
    return f"{SESSIONS}/{name}"


def id_of(stream: str) -> str | None:
    """The id of a session's stream; None for any other, and where the id was cut."""
    name = stream.removeprefix(f"{SESSIONS}/")
    if name == stream or "~" in name:
        return None
    return unquote(name, errors="surrogatepass")


@contextlib.contextmanager
def open_session(
    directory: Path,
    session: str,
    *,
    origin: str,
    gate: Gate | None = None,
    mode: ContentMode = "detached",
    opened: dict[str, Any] | None = None,
    wait: float = 5.0,
) -> Iterator[NamedStream]:
    """A session's stream with its lock held. A new one is made, with its STREAM_OPENED as event 0.

    Args:
        origin: name of the writing host.
        gate: what its events pass before they are written; default: the default rules.
        opened: further keys of the STREAM_OPENED payload of a new one.
        wait: seconds to wait for the lock.

    Raises:
        ValueError: the id is empty.
        RecordingBusy: another process writes it.
        RecordingTampered: its last line is damaged.
        OSError: it can't be made or written.
    """
    name = stream_of(session)
    path = directory / f"{name}.jsonl"
    make_directory(directory)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with NamedStream(path, name, content=mode == "detached", wait=wait, gate=gate, mode=mode) as stream:
        if not stream.tail.size:
            index = Index(directory, origin)
            with index.opening() as opening:
                payload = {**opening_payload(origin, name), **(opened or {})}
                if opening.tip:
                    payload["indexTip"] = opening.tip
                (first,) = stream.append([NewEvent("STREAM_OPENED", payload)], OWN_EVENTS)
                opening.entries.append(("OPENED", {"stream": name, "hash": first.hash}))
            index.settle(0.05, force=True)
        yield stream


def seal_session(directory: Path, stream: NamedStream, *, origin: str) -> None:
    """Write STREAM_SEALED, so that the end is known, and list it in the index. A later writer may still go on.

    Raises:
        OSError: it could not be written.
    """
    (done,) = stream.append([NewEvent("STREAM_SEALED", {"count": stream.tail.size})], OWN_EVENTS)
    entry = {"stream": stream.name, "size": stream.tail.size, "hash": done.hash}
    Index(directory, origin).list_later("SEALED", entry, wait=0.05)

"""Which sessions a recording holds, and how one of them is opened to be read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from otel_agentrec.errors import RecordingNotFound
from otel_agentrec.journal.reader import SESSIONS, Recording
from otel_agentrec.journal.sessions import id_of
from otel_agentrec.journal.store import FileEventStore
from otel_agentrec.session.log import SessionLog
from otel_agentrec.session.policy import CONVERSATION, Policy

__all__ = ["Overview", "open_session", "overview"]

Json = Any
SPOKEN = ("USER_MESSAGE_APPENDED", "AGENT_REPLY_APPENDED")


@dataclass(frozen=True, slots=True)
class Overview:
    """A session at a glance. ``last_ms``: time of its last event, ms since the epoch; ``messages``: user's and agent's."""

    id: str
    events: int
    messages: int
    first_words: str
    last_ms: int
    fork_of: str | None = None
    fork_at: int | None = None

    def to_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "events": self.events,
            "messages": self.messages,
            "firstWords": self.first_words,
            "lastEpochMs": self.last_ms,
            "forkOf": self.fork_of,
            "forkAt": self.fork_at,
        }


def overview(recording: str | os.PathLike[str]) -> list[Overview]:
    """All sessions of a recording directory (or the one of a session's file), the one with the newest event first.

    Raises:
        RecordingNotFound, RecordingUnreadable: there is no recording.
    """
    opened = Recording(recording)
    store = FileEventStore(opened.directory)
    single = opened.single
    streams = [single] if single is not None and single.name.startswith(f"{SESSIONS}/") else opened.sessions()
    found = [_glance(store, stream.name) for stream in streams]
    return sorted(found, key=lambda o: -o.last_ms)


def open_session(recording: str | os.PathLike[str], session_id: str, policy: Policy = CONVERSATION) -> SessionLog:
    """The log of a session that is there.

    Raises:
        RecordingNotFound: there is no recording, or no such session in it.
    """
    opened = Recording(recording)
    log = SessionLog.open(FileEventStore(opened.directory), session_id, policy=policy)
    if log.store.head(log.stream) is None:
        known = [id_of(stream.name) or stream.name for stream in opened.sessions()]
        have = ", ".join(known[:5]) + (" …" if len(known) > 5 else "") if known else "it has none"
        raise RecordingNotFound(f"{opened.directory} has no session {session_id!r}", f"sessions there: {have}")
    return log


def _glance(store: FileEventStore, stream: str) -> Overview:
    id, events, messages, words, last = id_of(stream) or stream.removeprefix(f"{SESSIONS}/"), 0, 0, "", 0
    fork: dict[str, Json] = {}
    for event in store.read(stream):
        events, last = events + 1, event.ts
        id = event.session or id
        if event.type == "STREAM_OPENED" and isinstance(event.payload.get("forkOf"), dict):
            fork = event.payload["forkOf"]
        if event.type in SPOKEN:
            messages += 1
            words = words or _words(event.payload.get("content"))
    parent = fork.get("stream")
    return Overview(
        id, events, messages, words, last, id_of(parent) or parent if isinstance(parent, str) else None, fork.get("at")
    )


def _words(content: Json) -> str:
    if isinstance(content, list):
        content = " ".join(str(p.get("content")) for p in content if isinstance(p, dict) and p.get("content"))
    return content if isinstance(content, str) else ""

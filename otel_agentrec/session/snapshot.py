"""A session as one value, to be kept by a session store (ai4j, ``AgentSessionSnapshot``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from otel_agentrec.errors import RecordingUnreadable

__all__ = ["AgentSessionSnapshot", "from_bytes", "to_bytes"]

Json = Any


@dataclass(frozen=True, slots=True)
class AgentSessionSnapshot:
    """What a session was at some moment.

    Args:
        memory: the messages of the model's context, for whoever looks at it; restoring computes them anew.
        events: the whole log with its hashes, ``[{event, hash, prevHash}]``, all content inside. Restoring checks them.
        compactions: ``[{from, to, summary}]``.
        version: number of events; it only grows, so that a store can tell the newer of two snapshots.
    """

    session_id: str
    memory: Sequence[Json] = ()
    events: Sequence[Mapping[str, Json]] = ()
    compactions: Sequence[Mapping[str, Json]] = ()
    version: int = 0

    def to_json(self) -> dict[str, Json]:
        return {
            "sessionId": self.session_id,
            "memory": list(self.memory),
            "events": list(self.events),
            "compactions": list(self.compactions),
            "version": self.version,
        }

    @classmethod
    def from_json(cls, data: Json) -> AgentSessionSnapshot:
        """The inverse of :meth:`to_json`.

        Raises:
            RecordingUnreadable: it is no snapshot.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("sessionId"), str):
            raise RecordingUnreadable("this is no snapshot of a session: it has no sessionId")
        lists = {key: data.get(key) or [] for key in ("memory", "events", "compactions")}
        for key, value in lists.items():
            if not isinstance(value, list):
                raise RecordingUnreadable(f"this is no snapshot of a session: its {key} are no list")
        version = data.get("version")
        return cls(
            data["sessionId"],
            lists["memory"],
            lists["events"],
            lists["compactions"],
            version if type(version) is int else len(lists["events"]),
        )


def to_bytes(snapshot: AgentSessionSnapshot) -> bytes:
    """A snapshot as stores keep it: JSON in UTF-8, lone surrogates as they are."""
    data = json.dumps(snapshot.to_json(), ensure_ascii=False, separators=(",", ":"))
    return data.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> AgentSessionSnapshot:
    """The inverse of :func:`to_bytes`.

    Raises:
        RecordingUnreadable: it is no snapshot.
    """
    try:
        value = json.loads(data.decode("utf-8", "surrogatepass"))
    except (AttributeError, ValueError, RecursionError) as e:
        raise RecordingUnreadable(f"this is no snapshot of a session: {e}") from None
    return AgentSessionSnapshot.from_json(value)

"""Saved projections: the state of a policy at some event, so that opening a long session reads only what came later.

A saved projection is a cache. Whatever does not fit (another policy or version, other upcasters, another history, a
damaged file) is passed over, and the log is read from its start.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from otel_agentrec.journal.canonical import canonical_any, denormalise
from otel_agentrec.journal.events import UPCASTERS
from otel_agentrec.journal.store import EventStore
from otel_agentrec.session.policy import Policy, State

__all__ = ["Saved", "load", "save"]


class Saved(NamedTuple):
    """``state`` after event ``seq``, whose line has ``hash``."""

    state: State
    seq: int
    hash: str


def save(store: EventStore, stream: str, policy: Policy, saved: Saved) -> None:
    """Keep a state in place of the one kept before for this policy."""
    body: dict[str, Any] = {**_of(policy), "seq": saved.seq, "hash": saved.hash, "state": saved.state}
    data = canonical_any(body)
    store.save(stream, policy.name, sha256(data).hexdigest().encode() + b"\n" + data)


def load(store: EventStore, stream: str, policy: Policy, until: int | None = None) -> Saved | None:
    """The state that was kept for a policy, if it is one of this log, and not of an event after ``until``."""
    data = store.saved(stream, policy.name)
    if data is None:
        return None
    digest, _, body = data.partition(b"\n")
    if sha256(body).hexdigest().encode() != digest:
        return None
    try:
        kept = orjson.loads(body)
        saved = Saved(denormalise(kept["state"]), kept["seq"], kept["hash"])
    except (ValueError, KeyError, TypeError):
        return None
    if any(kept.get(key) != value for key, value in _of(policy).items()):
        return None
    if until is not None and saved.seq > until:
        return None
    event = next(store.read(stream, saved.seq), None)
    return saved if event is not None and (event.seq, event.hash) == (saved.seq, saved.hash) else None


def _of(policy: Policy) -> dict[str, Any]:
    return {"policy": policy.name, "version": policy.version, "upcasters": sorted(UPCASTERS)}

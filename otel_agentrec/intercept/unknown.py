"""An effect whose outcome nobody knows, and how it is settled."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from otel_agentrec.errors import UnknownOutcomeError

__all__ = ["Again", "Outcome", "UnknownEffect", "unknown_outcome"]

Json = Any


@dataclass(frozen=True, slots=True)
class UnknownEffect:
    """What is known of it. ``started_ms``: wall clock, ms since the epoch. ``why``: what cut it off, or what else is in the
    way (a result that was not kept)."""

    effect_id: str
    name: str
    arguments: Json = None
    started_ms: int = 0
    call_id: str | None = None
    idempotency_key: str | None = None
    why: str | None = None

    def to_json(self) -> dict[str, Json]:
        told = {
            "effectId": self.effect_id,
            "name": self.name,
            "arguments": self.arguments,
            "startedAtEpochMs": self.started_ms,
            "callId": self.call_id,
            "idempotencyKey": self.idempotency_key,
            "why": self.why,
        }
        return {key: value for key, value in told.items() if value is not None}


class Again(Enum):
    """An effect is begun once more: with the key that it had (``KEY``), or because it did not happen (``NOT_DONE``)."""

    KEY = "key"
    NOT_DONE = "not_done"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a ``reconcile`` function found out: ``Outcome.done(result)``, ``Outcome.not_done()``, or None: it can't tell."""

    is_done: bool
    result: Any = None

    @classmethod
    def done(cls, result: Any = None) -> Outcome:
        """It happened, and gave this result."""
        return cls(True, result)

    @classmethod
    def not_done(cls) -> Outcome:
        """It did not happen: it may run."""
        return cls(False)


def unknown_outcome(effects: Sequence[UnknownEffect], recording: str, redact: Any = str) -> UnknownOutcomeError:
    """The error that names these effects, all together; ``effects`` on it holds them.

    Args:
        recording: path for the command that settles them.
        redact: takes the secrets out of a text.
    """
    lines = [_line(effect, redact) for effect in effects]
    what = lines[0] if len(lines) == 1 else f"{len(lines)} effects have an unknown outcome: " + "; ".join(lines)
    first = effects[0].effect_id
    command = f"otel-agentrec resolve {shlex.quote(recording)} {first} --done OUTPUT | --not-done"
    error = UnknownOutcomeError(what, f"find out what happened, then: {command}")
    error.effects = tuple(effects)
    return error


def _line(effect: UnknownEffect, redact: Any) -> str:
    try:
        given = json.dumps(effect.arguments, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        given = "…"
    given = given if len(given) <= 200 else given[:199] + "…"
    at = datetime.fromtimestamp(effect.started_ms / 1000).isoformat(" ", "seconds")
    told = f"{effect.name}({redact(given)}) was begun at {at} and nobody knows whether it happened (effect {effect.effect_id})"
    return f"{told}: {effect.why}" if effect.why else told

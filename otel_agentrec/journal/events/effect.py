"""The effect ledger: what was begun, what came of it, and who settled what nobody knows (docs/resume.md)."""

from __future__ import annotations

from otel_agentrec.journal.events.base import Json, Payload, event

__all__ = ["EffectDone", "EffectFailed", "EffectResolved", "EffectStarted"]


@event("EFFECT_STARTED", content={"arguments": "one"})
class EffectStarted(Payload):
    """A tool is about to run: on disk before its first instruction.

    ``root``: id of the run's root; ``lane``: path of agents in it. ``key``: ``tool:<digest>``, see nodes/keys.
    ``effect``: true (has effects), false (only reads) or ``"container"`` (an agent as a tool). ``span_id``: the span that
    was current. ``hook``: which adapter saw it (``openai-agents``, ``decorator`` …).
    """

    effect_id: str
    name: str
    root: str | None = None
    lane: str | None = None
    key: str | None = None
    call_id: str | None = None
    arguments: Json = None
    effect: bool | str = True
    idempotency_key: str | None = None
    span_id: str | None = None
    hook: str | None = None


@event("EFFECT_DONE", content={"output": "one"})
class EffectDone(Payload):
    """The tool returned. ``output``: its result as ``codec`` wrote it (absent: plain JSON)."""

    effect_id: str
    output: Json = None
    codec: str | None = None


@event("EFFECT_FAILED", content={"error": "one"})
class EffectFailed(Payload):
    """The tool raised. ``error``: ``{type, message, …}`` as ``codec`` wrote it."""

    effect_id: str
    error: Json = None
    codec: str | None = None


@event("EFFECT_RESOLVED", content={"output": "one", "reason": "one"})
class EffectResolved(Payload):
    """Somebody settled an effect whose outcome was unknown. ``outcome``: ``done`` or ``not_done``; ``codec`` as in EFFECT_DONE."""

    effect_id: str
    outcome: str
    output: Json = None
    by: str | None = None
    reason: Json = None
    codec: str | None = None

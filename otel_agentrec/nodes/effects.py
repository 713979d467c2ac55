"""The effect ledger as it is read: what came of every effect, over all streams of a recording.

The events of one effect, in the order of their times, lead from state to state; the first word wins:

==================  ================================================================================================
EFFECT_STARTED      -> unknown (again, when an effect that is unknown or was settled as not done is begun once more)
EFFECT_DONE         unknown -> done
EFFECT_FAILED       unknown -> failed
EFFECT_RESOLVED     unknown -> done, or not begun; done with a result that can't be handed out -> done with this one
==================  ================================================================================================

A tool call that has only a span is an effect too: its end is done or failed, its lack unknown. Where EFFECT events of a call
exist, its span settles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.normal import denormalise
from otel_agentrec.journal.reader import Recording, Resolver
from otel_agentrec.nodes.lineage import Lineages
from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.records import NodeIoRecord, NodeType

__all__ = [
    "DONE",
    "FAILED",
    "LEDGER",
    "NOT_BEGUN",
    "RUNNING",
    "UNKNOWN",
    "Effect",
    "EffectEvents",
    "fold_effects",
    "read_effects",
]

Json = Any
DONE, FAILED, UNKNOWN, NOT_BEGUN, RUNNING = "done", "failed", "unknown", "not_begun", "running"
_UNFIT = {"not-kept": "not kept", "driven": "a stream that was driven by send() or throw()"}
"""Codecs of results that nobody can hand out."""
LEDGER = frozenset({"EFFECT_STARTED", "EFFECT_DONE", "EFFECT_FAILED", "EFFECT_RESOLVED", "RUN_RESUMED"})
"""Types of events that the ledger is made of."""


@dataclass(slots=True)
class Effect:
    """One effect. Times are ms since the epoch.

    ``state``: ``done``, ``failed``, ``unknown``, ``not_begun`` (settled so), or ``running`` (begun by a process that lives).
    ``effect``: True, False (only reads), ``"container"``, or None (known only by its span, whose record's id is ``id``).
    ``lost``: what is missing in ``output`` or ``error``, so that it can't be handed out: ``redacted``, ``cut``, ``erased`` …;
    ``arguments_lost`` likewise.
    """

    id: str
    name: str
    root: str
    run: str | None = None
    lane: str = ""
    key: str | None = None
    call_id: str | None = None
    arguments: Json = None
    arguments_lost: str | None = None
    effect: bool | str | None = True
    idempotency_key: str | None = None
    hook: str | None = None
    started_ms: int = 0
    stream: str = ""
    seq: int = -1
    span: tuple[str, str] | None = None
    """(trace id, span id)"""
    state: str = UNKNOWN
    output: Json = None
    codec: str | None = None
    error: Json = None
    lost: str | None = None
    resolved: dict[str, Json] | None = None
    """``{outcome, by, reason, at}`` of whoever settled it."""
    latest_ms: int = 0
    """No event of it is later: what goes on with it must not be told to have happened before."""

    @property
    def needs_settling(self) -> bool:
        """Whether a run that comes to it must stop: nobody knows its outcome, or its result can't be handed out."""
        return self.effect not in (False, "container") and (
            self.state == UNKNOWN or (self.state in (DONE, FAILED) and self.lost is not None)
        )

    def to_json(self) -> dict[str, Json]:
        """Camel case; absent keys are left out."""
        told = {
            "effectId": self.id,
            "name": self.name,
            "state": self.state,
            "root": self.root,
            "run": self.run,
            "lane": self.lane or None,
            "callId": self.call_id,
            "arguments": self.arguments,
            "effect": self.effect,
            "startedAtEpochMs": self.started_ms,
            "idempotencyKey": self.idempotency_key,
            "hook": self.hook,
            "output": self.output if self.state == DONE else None,
            "error": self.error if self.state == FAILED else None,
            "lost": self.lost,
            "resolved": self.resolved,
        }
        return {key: value for key, value in told.items() if value is not None}


class EffectEvents:
    """The EFFECT_* and RUN_RESUMED events of a recording; content may still be references.

    Those of one stream are added in the order of their seq; those of different streams are ordered by their times.
    """

    def __init__(self) -> None:
        self._latest: dict[str, int] = {}
        self._timed: list[tuple[int, str, int, Event]] = []

    @classmethod
    def of(cls, events: Iterable[Event]) -> EffectEvents:
        found = cls()
        for event in events:
            if event.type in LEDGER:
                found.add(event)
        return found

    def add(self, e: Event) -> None:
        self._latest[e.stream] = max(e.ts, self._latest.get(e.stream, 0))  # a clock that is set back changes no order
        self._timed.append((self._latest[e.stream], e.stream, e.seq, e))

    @property
    def events(self) -> list[Event]:
        """The EFFECT_* events in the order of their times."""
        return [e for e in self._in_order() if e.type != "RUN_RESUMED"]

    @property
    def lineages(self) -> Lineages:
        return Lineages.of(self._in_order())

    def _in_order(self) -> list[Event]:
        return [e for *_, e in sorted(self._timed, key=lambda one: one[:3])]


def read_effects(
    recording: Recording, records: Iterable[NodeIoRecord] = (), *, root: str | None = None
) -> Iterator[Effect]:
    """The effects of a recording, in the order in which they began.

    Args:
        records: its node records, for tool calls that have only a span.
        root: only effects of the run with this root.
    """
    streams = {stream.name: stream for stream in recording.streams()}
    found = EffectEvents.of(e for stream in streams.values() for e in stream.events())
    live = {name: stream.is_live() for name, stream in streams.items()}
    resolvers: dict[str, Resolver] = {}

    def payload(event: Event) -> dict[str, Json]:
        stream = streams[event.stream]
        return resolvers.setdefault(event.stream, Resolver(stream)).resolve(event)

    try:
        effects = fold_effects(found.events, found.lineages, payload, lambda name: live.get(name, False))
    finally:
        for resolver in resolvers.values():
            resolver.close()
    lineages = found.lineages
    begun = [event for event in found.events if event.type == "EFFECT_STARTED"]  # an effect may be begun more than once
    spans = {str(event.trace.get("spanId")) for event in begun if event.trace}
    calls = {(effect.root, effect.call_id, effect.name) for effect in effects if effect.call_id}
    names = {effect.id: effect.name for effect in effects}
    hooked = {(event.stream, names.get(str(event.payload.get("effectId")))) for event in begun}
    known_hooks = {(effect.root, effect.name) for effect in effects}
    for record in records:
        if record.node_type is not NodeType.TOOL or record.answered_from is not None:
            continue
        of_span = _of_record(record, lineages)
        members = {record.span_id, *record.merged_span_ids}  # a tracer by callbacks makes its spans in another trace
        known = not spans.isdisjoint(members) or (of_span.root, of_span.call_id, of_span.name) in calls
        is_resumed = record.run_id in lineages.root_of and (of_span.root, of_span.name) in known_hooks
        if (is_resumed or (of_span.stream, of_span.name) in hooked) and (
            of_span.state != DONE or record.outputs is None
        ):
            continue  # its span was opened, and may have ended when the run was stopped: had it begun, its intent would be on disk
        if not known:
            effects.append(of_span)
    _resolve_spans(effects, found.events)
    effects.sort(key=lambda effect: (effect.started_ms, effect.stream, effect.seq, effect.id))
    return (effect for effect in effects if root is None or effect.root == root)


def fold_effects(
    events: Iterable[Event],
    lineages: Lineages,
    payload: Callable[[Event], dict[str, Json]],
    is_live: Callable[[str], bool],
) -> list[Effect]:
    """The effects that these events tell of.

    Args:
        events: EFFECT_* in the order of their times.
        payload: of an event, with its content.
    """
    effects: dict[str, Effect] = {}
    at: dict[str, str] = {}
    latest = 0
    for event in events:
        latest = max(latest, event.ts)
        ident = event.payload.get("effectId")
        if not isinstance(ident, str):
            continue
        if event.type == "EFFECT_STARTED":
            known = effects.get(ident)
            if known is None:
                effects[ident] = _begun(ident, event, payload(event), lineages)
            elif known.state in (UNKNOWN, NOT_BEGUN):
                known.state, known.resolved = UNKNOWN, None
            at[ident] = event.stream
        elif ident in effects:
            _settle(effects[ident], event, payload)
        if ident in effects:
            effects[ident].latest_ms = latest
    for ident, effect in effects.items():
        if effect.state == UNKNOWN and is_live(at[ident]):
            effect.state = RUNNING
    return list(effects.values())


def _begun(ident: str, event: Event, told: dict[str, Json], lineages: Lineages) -> Effect:
    trace = event.trace or {}
    run = event.run or _text(trace.get("traceId"))
    root = _text(told.get("root")) or run or event.stream
    effect = told.get("effect")
    return Effect(
        id=ident,
        name=str(told.get("name") or ""),
        root=lineages.root(root),
        run=run,
        lane=_text(told.get("lane")) or "",
        key=_text(told.get("key")),
        call_id=_text(told.get("callId")),
        arguments=denormalise(told.get("arguments")),
        arguments_lost=lost_in(told.get("arguments")),
        effect=effect if effect in (True, False, "container") else True,
        idempotency_key=_text(told.get("idempotencyKey")),
        hook=_text(told.get("hook")),
        started_ms=event.ts,
        stream=event.stream,
        seq=event.seq,
        span=(str(trace["traceId"]), str(trace["spanId"])) if "traceId" in trace and "spanId" in trace else None,
    )


def _settle(effect: Effect, event: Event, payload: Callable[[Event], dict[str, Json]]) -> None:
    """Take what came of it, unless something came before."""
    if event.type == "EFFECT_RESOLVED":
        fills = effect.state in (DONE, FAILED) and effect.lost is not None and event.payload.get("outcome") == "done"
        if effect.state == UNKNOWN or fills:
            _resolve(effect, event, payload(event))
    elif effect.state == UNKNOWN:
        told = payload(event)
        which = "output" if event.type == "EFFECT_DONE" else "error"
        effect.state = DONE if which == "output" else FAILED
        effect.codec = _text(told.get("codec"))
        effect.lost = lost_in(told.get(which)) or _UNFIT.get(effect.codec or "")
        setattr(effect, which, denormalise(told.get(which)))


def _resolve(effect: Effect, event: Event, told: dict[str, Json]) -> None:
    done = told.get("outcome") == "done"
    effect.state = DONE if done else NOT_BEGUN
    effect.output, effect.codec, effect.error = denormalise(told.get("output")), _text(told.get("codec")), None
    effect.lost = lost_in(told.get("output"))
    settled = {"outcome": told.get("outcome"), "by": told.get("by"), "reason": told.get("reason"), "at": event.ts}
    effect.resolved = {key: value for key, value in settled.items() if value is not None}


def _of_record(record: NodeIoRecord, lineages: Lineages) -> Effect:
    inputs = record.inputs if isinstance(record.inputs, dict) else {}
    state = {"ok": DONE, "error": FAILED}.get(record.status or "ok", UNKNOWN)
    run = record.run_id or record.trace_id or ""
    return Effect(
        id=record.record_id,
        name=record.tool_name or str(inputs.get("name") or ""),
        root=lineages.root(run),
        run=run,
        call_id=record.tool_call_id,
        arguments=inputs.get("arguments"),
        arguments_lost=lost_in(inputs.get("arguments")),
        effect=None,
        started_ms=record.started_at_epoch_ms or 0,
        stream=record.journal.stream if record.journal is not None else "",
        span=(record.trace_id, record.span_id) if record.trace_id and record.span_id else None,
        state=state,
        output=record.outputs,
        error=record.error,
        lost=lost_in(record.outputs if state == DONE else record.error),
    )


def _resolve_spans(effects: list[Effect], events: list[Event]) -> None:
    """EFFECT_RESOLVED of calls that have only a span name the record."""
    by_id = {effect.id: effect for effect in effects if effect.effect is None}
    for event in events:
        effect = by_id.get(str(event.payload.get("effectId")))
        if effect is not None and event.type == "EFFECT_RESOLVED" and effect.needs_settling:
            _resolve(effect, event, event.payload)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None

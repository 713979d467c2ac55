"""The typed events of a recording (format ``agentrec/1``), and the one place where old lines are lifted.

Each type is a frozen dataclass whose fields are the keys of the event's ``payload`` (camelCase on disk). A reader keeps a
type it does not know as :class:`Generic`; ``ignorable`` says whether a projection may pass over a type it can't use.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from otel_agentrec.journal.facts import CONTENT as FACT_CONTENT
from otel_agentrec.records import camel

__all__ = ["FORMAT", "TYPES", "Event", "Generic", "Payload", "content_of", "keys_of", "payload_of", "upcast"]

Json = Any
FORMAT = "agentrec/1"

FACTS = {f"facts.{key}": how for key, how in FACT_CONTENT.items()}


@dataclass(frozen=True)
class Payload:
    """Base of all payloads. ``content`` names the dotted paths that hold content: ``"one"`` value or a ``"list"``."""

    event_type: ClassVar[str] = ""
    ignorable: ClassVar[bool] = False
    content: ClassVar[dict[str, str]] = {}

    def to_json(self) -> dict[str, Json]:
        """The payload as it is sealed: camelCase keys, absent (None) ones left out."""
        return {key: v for name, key in keys_of(type(self)) if (v := getattr(self, name)) is not None}


@dataclass(frozen=True)
class Generic(Payload):
    """An event of a type this version does not know, kept as it is."""

    event_type: ClassVar[str] = "GENERIC"
    ignorable: ClassVar[bool] = True
    name: str = ""
    data: dict[str, Json] | None = None


TYPES: dict[str, type[Payload]] = {}
P = TypeVar("P", bound=Payload)


def event(
    type_: str, *, ignorable: bool = False, content: dict[str, str] | None = None
) -> Callable[[type[P]], type[P]]:
    """Register a payload class under its event type."""

    def register(cls: type[P]) -> type[P]:
        made = dataclass(frozen=True)(cls)
        made.event_type, made.ignorable, made.content = type_, ignorable, content or {}
        TYPES[type_] = made
        return made

    return register


# --- stream -----------------------------------------------------------------------------------------------------------


@event("STREAM_OPENED")
class StreamOpened(Payload):
    """The first line of every stream. ``nonce``: 32 hex; ``index_tip``: ``{size, hash}`` of the index, or absent."""

    origin: str
    nonce: str
    host: str | None = None
    pid: int | None = None
    boot_id: str | None = None
    sdk: dict[str, Json] | None = None
    sinks: list[str] | None = None
    config_digest: str | None = None
    index_tip: dict[str, Json] | None = None
    prev_stream: dict[str, Json] | None = None
    parent_stream: str | None = None
    fork_of: dict[str, Json] | None = None
    restored_from: dict[str, Json] | None = None
    late: bool | None = None


@event("PROVIDER_SEEN", ignorable=True)
class ProviderSeen(Payload):
    resource: dict[str, Json]
    sampler: str | None = None
    limits: dict[str, Json] | None = None


@event("DROPPED")
class Dropped(Payload):
    """``count`` things that should have been recorded were not."""

    count: int
    reason: str


@event("COVERAGE", ignorable=True)
class Coverage(Payload):
    points: list[dict[str, Json]]


@event("RECOVERED")
class Recovered(Payload):
    """A torn tail of a named stream was cut off under its lock."""

    bytes: int
    cells: int


@event("STREAM_SEALED")
class StreamSealed(Payload):
    """The last line of a stream that was closed; ``count`` = number of events before this one.

    ``counters``: what the process counted since it last told (``swallowed`` exceptions, ``late`` events …), zeros left out.
    """

    count: int
    counters: dict[str, int] | None = None


# --- run --------------------------------------------------------------------------------------------------------------


@event("RUN_STARTED", content=FACTS)
class RunStarted(Payload):
    """An agent span with no agent span above it began."""

    name: str
    scope: str | None = None
    started_at: str | None = None
    facts: dict[str, Json] | None = None


@event("RUN_ENDED", content=FACTS)
class RunEnded(Payload):
    name: str
    scope: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    facts: dict[str, Json] | None = None
    header: int | None = None
    provider: int | None = None


@event("RUN_RESUMED")
class RunResumed(Payload):
    root: str
    from_: dict[str, Json] | None = None


@event("HANDOFF_STARTED", content=FACTS)
class HandoffStarted(RunStarted):
    """An agent span inside another one began."""


@event("HANDOFF_ENDED", content=FACTS)
class HandoffEnded(RunEnded):
    pass


@event("STEP_STARTED", ignorable=True, content=FACTS)
class StepStarted(Payload):
    kind: str
    name: str
    scope: str | None = None
    started_at: str | None = None
    facts: dict[str, Json] | None = None


@event("STEP_ENDED", ignorable=True, content=FACTS)
class StepEnded(Payload):
    kind: str
    name: str
    scope: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    facts: dict[str, Json] | None = None
    header: int | None = None
    provider: int | None = None


@event("REQUEST_HEADER", content={"instructions": "list", "tools": "list"})
class RequestHeader(Payload):
    """What stays the same from call to call; later MODEL events point at it by its seq."""

    instructions: Any = None
    tools: Any = None
    parameters: dict[str, Json] | None = None


@event("FINAL_OUTPUT", content={"output": "one"})
class FinalOutput(Payload):
    output: Json = None


@event("ERROR", content={"message": "one"})
class ErrorEvent(Payload):
    error_type: str
    message: Json = None


# --- node -------------------------------------------------------------------------------------------------------------


@event("NODE_STARTED", content=FACTS)
class NodeStarted(Payload):
    """A model or tool span began. ``type`` is MODEL, TOOL, or None while its span does not tell."""

    type: str | None
    name: str
    scope: str | None = None
    started_at: str | None = None
    facts: dict[str, Json] | None = None

    def to_json(self) -> dict[str, Json]:
        return {"type": None, **super().to_json()}


@event("NODE_RECORDED", content=FACTS)
class NodeRecorded(Payload):
    """A model or tool span ended. Times are decimal strings of nanoseconds since the epoch.

    ``header``: seq of the REQUEST_HEADER in the same stream; ``provider``: seq of the PROVIDER_SEEN; ``via``: span ids of
    foreign CLIENT spans seen below this one.
    """

    type: str
    name: str
    scope: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    facts: dict[str, Json] | None = None
    header: int | None = None
    provider: int | None = None
    via: list[str] | None = None


@event("NODE_AMENDED", content=FACTS)
class NodeAmended(Payload):
    """Facts of a node that its own span could not tell. ``header``: as in NODE_RECORDED."""

    record_id: str | None = None
    span_id: str | None = None
    facts: dict[str, Json] | None = None
    header: int | None = None
    forked_from: dict[str, Json] | None = None


@event("NODE_ANSWERED")
class NodeAnswered(Payload):
    node: str
    from_: dict[str, Json] | None = None


@event("NODE_INTERRUPTED", content={f"record.{k}": v for k, v in FACTS.items()})
class NodeInterrupted(Payload):
    """A started node that did not end (``reason``: shutdown, abandoned, evicted, fork ...); a later NODE_RECORDED wins.

    ``record`` has the shape of a NODE_RECORDED payload: what was known by then.
    """

    reason: str
    record: dict[str, Json] | None = None


@event("MODEL_RETRY", ignorable=True)
class ModelRetry(Payload):
    attempt: int | None = None
    error_type: str | None = None
    status_code: int | None = None


@event("LINKS", ignorable=True)
class Links(Payload):
    """Parents of foreign spans (not journalled themselves): ``{traceId: {spanId: parentSpanId}}``."""

    links: dict[str, dict[str, str]]


@event("LOG_RECORDED", ignorable=True, content={"body": "one", "attributes": "one", **FACTS})
class LogRecorded(Payload):
    """A log record that no open span could take.

    ``facts``: what it tells of some model call, in place of a ``body`` that says the same; readers find the call.
    """

    name: str
    scope: str | None = None
    observed_at: str | None = None
    facts: dict[str, Json] | None = None
    header: int | None = None
    body: Json = None
    attributes: Json = None


@event("EVALUATED", ignorable=True, content={"explanation": "one", "attributes": "one"})
class Evaluated(Payload):
    """A judgement of a record, an agent or a step, by the id of its record.

    ``observed_at``: when it was judged, where telemetry tells of it; ``attributes``: what telemetry says besides.
    """

    record_id: str
    name: str
    score: Json = None
    label: str | None = None
    explanation: Json = None
    observed_at: str | None = None
    attributes: Json = None


# --- index only -------------------------------------------------------------------------------------------------------


@event("OPENED")
class Opened(Payload):
    """A stream was opened; ``hash`` of its first line."""

    stream: str
    hash: str


@event("SEALED")
class Sealed(Payload):
    """A stream was closed with ``size`` events, the last one with ``hash``."""

    stream: str
    size: int
    hash: str


@event("PRUNED")
class Pruned(Payload):
    stream: str
    size: int
    hash: str
    root: str | None = None


@event("ERASED")
class Erased(Payload):
    stream: str
    cells: Json
    reason: str | None = None


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a stream as it was read: the envelope, the payload as a dict, and its place in the chain.

    ``payload`` may hold references (``$c``, ``$list``): the reader resolves them. ``trace`` is
    ``{traceId, spanId, parentSpanId, path}``; ``mono`` is nanoseconds of the monotonic clock.
    """

    id: str
    stream: str
    seq: int
    ts: int
    type: str
    payload: dict[str, Json]
    mono: int | None = None
    run: str | None = None
    session: str | None = None
    turn: str | None = None
    step: int | None = None
    trace: dict[str, Json] | None = None
    v: str = FORMAT
    hash: str = ""
    prev_hash: str = ""

    @classmethod
    def from_json(cls, e: dict[str, Json], *, hash: str = "", prev_hash: str = "") -> Event:
        """The event of a parsed line, lifted to the current version. Total: keys that are missing or no use read as empty."""
        e = upcast(e)
        mono, seq, ts, payload, trace = e.get("mono"), e.get("seq"), e.get("ts"), e.get("payload"), e.get("trace")
        return cls(
            id=str(e.get("id") or ""),
            stream=str(e.get("stream") or ""),
            seq=seq if type(seq) is int else -1,
            ts=ts if type(ts) is int else 0,
            type=str(e.get("type") or ""),
            payload=payload if isinstance(payload, dict) else {},
            mono=int(mono) if isinstance(mono, str) and mono.isdecimal() and len(mono) < 40 else None,
            run=e.get("run"),
            session=e.get("session"),
            turn=e.get("turn"),
            step=e.get("step"),
            trace=trace if isinstance(trace, dict) else None,
            v=str(e.get("v") or ""),
            hash=hash,
            prev_hash=prev_hash,
        )

    def typed(self) -> Payload:
        """The payload as its dataclass; :class:`Generic` when the type or its keys are unknown."""
        return payload_of(self.type, self.payload)


Upcaster = Callable[[dict[str, Json]], dict[str, Json]]
UPCASTERS: dict[str, Upcaster] = {}
"""Format version -> function that lifts an event of that version to the next one."""


def upcast(e: dict[str, Json]) -> dict[str, Json]:
    """Lift an event to the current version, one version at a time. The only place where old forms are known."""
    for _ in range(len(UPCASTERS)):
        lift = UPCASTERS.get(str(e.get("v")))
        if lift is None:
            break
        e = lift(e)
    return e


def payload_of(type_: str, payload: dict[str, Json]) -> Payload:
    """The typed payload of an event; unknown keys are ignored, an unknown type or a missing key gives Generic."""
    cls = TYPES.get(type_)
    if cls is None:
        return Generic(name=type_, data=payload)
    try:
        return cls(**{name: payload[key] for name, key in keys_of(cls) if key in payload})
    except TypeError:
        return Generic(name=type_, data=payload)


def content_of(type_: str) -> dict[str, str]:
    """Dotted payload paths that hold content for an event type -> ``"one"`` or ``"list"``."""
    cls = TYPES.get(type_)
    return cls.content if cls else {}


_KEY_CACHE: dict[type[Payload], list[tuple[str, str]]] = {}


def keys_of(cls: type[Payload]) -> list[tuple[str, str]]:
    """(field name, payload key) pairs; a trailing underscore only keeps a name off Python's keywords."""
    if cls not in _KEY_CACHE:
        _KEY_CACHE[cls] = [(f.name, camel(f.name.rstrip("_"))) for f in dataclasses.fields(cls)]
    return _KEY_CACHE[cls]

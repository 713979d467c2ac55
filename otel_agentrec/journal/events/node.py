"""Events of model calls and tool calls, and what was heard of them later."""

from __future__ import annotations

from otel_agentrec.journal.events.base import FACTS, Json, Payload, event


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


@event("NODE_RECORDED", content={"given.content": "one", **FACTS})
class NodeRecorded(Payload):
    """A model or tool span ended. Times are decimal strings of nanoseconds since the epoch.

    ``header``: seq of the REQUEST_HEADER in the same stream; ``provider``: seq of the PROVIDER_SEEN; ``via``: span ids of
    foreign CLIENT spans seen below this one. ``given``: fields of a record that came as a record, not as a span; they stand
    as they were given, and ``given.content`` holds those of its content that ``facts`` do not tell just so.
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
    given: dict[str, Json] | None = None


@event("NODE_AMENDED", content=FACTS)
class NodeAmended(Payload):
    """Facts of a node that its own span could not tell. ``header``: as in NODE_RECORDED.

    ``wire_ids``: the WIRE_RECORDED events that are its attempts; ``rung``: how sure that is.
    """

    record_id: str | None = None
    span_id: str | None = None
    facts: dict[str, Json] | None = None
    header: int | None = None
    wire_ids: list[str] | None = None
    rung: str | None = None
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

"""What Langfuse makes of OTLP spans: the rules of its ingestion that a sender has to fit, as of Langfuse 4.16 (August 2026).

A Langfuse server needs five services, so none is run here: these are its rules, read from its source, over the bytes that
left for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

Json = Any

MAX_BODY_BYTES, MAX_SPAN_BYTES = 16_000_000, 9_500_000
MAX_ENVIRONMENT = 40
_OPERATIONS = {
    **dict.fromkeys(("chat", "completion", "text_completion", "generate_content", "generate"), "GENERATION"),
    "embeddings": "EMBEDDING",
    **dict.fromkeys(("invoke_agent", "create_agent"), "AGENT"),
    "execute_tool": "TOOL",
}
_INFERENCE_KINDS = {"LLM": "GENERATION", "EMBEDDING": "EMBEDDING", "AGENT": "AGENT", "TOOL": "TOOL", "CHAIN": "CHAIN"}
_MODELS = ("langfuse.observation.model.name", "gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_EVENT_FAMILIES = (
    "gen_ai.client.inference.operation.details",
    *(f"gen_ai.{role}.message" for role in ("system", "user", "assistant", "tool")),
    "gen_ai.choice",
    "gen_ai.content.prompt",
    "gen_ai.content.completion",
)
_PAIRS: tuple[tuple[str, str], ...] = (
    ("langfuse.observation.input", "langfuse.observation.output"),
    ("prompt", "completion"),
    ("mlflow.spanInputs", "mlflow.spanOutputs"),
    ("traceloop.entity.input", "traceloop.entity.output"),
    ("input.value", "output.value"),
    ("input", "output"),
    ("tool_arguments", "tool_response"),
    ("gen_ai.prompt", "gen_ai.completion"),
    ("llm.input_messages", "llm.output_messages"),
    ("gen_ai.input.messages", "gen_ai.output.messages"),
    ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
)
"""The families of attributes that may hold input and output. The first that has either side gives both."""
_CACHED = ("cache_read", "cache_creation", "cache_write")


class Refused(Exception):
    """One such span, and the whole request is answered with 400."""


@dataclass(frozen=True)
class Observation:
    """``usage``: input (without what was cached), output and others; ``metadata``: what can be filtered by."""

    id: str
    trace_id: str
    parent_id: str | None
    type: str
    name: str
    input: Json
    output: Json
    model: str | None
    parameters: Mapping[str, Json]
    usage: Mapping[str, int]
    session_id: str | None
    user_id: str | None
    level: str
    status_message: str
    metadata: Mapping[str, Json]
    tool_definitions: Sequence[Json]
    warnings: Sequence[str] = field(default_factory=list)


@dataclass
class Trace:
    """As Langfuse lists it: name, input and output are those of the span without a parent."""

    id: str
    name: str | None = None
    input: Json = None
    output: Json = None
    session_id: str | None = None
    user_id: str | None = None
    observations: list[Observation] = field(default_factory=list)
    creations: int = 0
    """How often the trace is written: each span with a session or user of its own costs one more."""


def traces(requests: Iterable[ExportTraceServiceRequest]) -> dict[str, Trace]:
    """Trace id -> trace.

    Raises:
        Refused: a request that is answered with 400.
    """
    found: dict[str, Trace] = {}
    for span in _spans(requests):
        one = observation(span)
        trace = found.setdefault(one.trace_id, Trace(one.trace_id))
        trace.observations.append(one)
        attributes = plain(span.attributes)
        if one.parent_id is None:
            trace.name = attributes.get("langfuse.trace.name", one.name)
            trace.input = attributes.get("langfuse.trace.input", one.input)
            trace.output = attributes.get("langfuse.trace.output", one.output)
        if one.parent_id is None or attributes.keys() & {"session.id", "user.id", "langfuse.session.id"}:
            trace.creations += 1
        trace.session_id = trace.session_id or one.session_id
        trace.user_id = trace.user_id or one.user_id
    return found


def observation(span: Span) -> Observation:
    """What one span becomes."""
    if len(span.trace_id) != 16 or len(span.span_id) != 8 or not span.start_time_unix_nano:
        raise Refused(f"{span.name}: no trace id, span id or start")
    told = plain(span.attributes)
    given, gave = _both_sides(span, told)
    kind = _type_of(told)
    is_agent = told.get("gen_ai.operation.name") in ("invoke_agent", "agent_step")
    failed = span.status.code == Status.STATUS_CODE_ERROR
    return Observation(
        id=span.span_id.hex(),
        trace_id=span.trace_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        type=kind,
        name=str(told.get("gen_ai.tool.name") or span.name),
        input=given,
        output=gave,
        model=None if is_agent else next((str(told[key]) for key in _MODELS if key in told), None),
        parameters={} if is_agent else _parameters(told),
        usage={} if is_agent else _usage(told),
        session_id=_first(told, "langfuse.session.id", "session.id", "gen_ai.conversation.id"),
        user_id=_first(told, "langfuse.user.id", "user.id"),
        level=str(told.get("langfuse.observation.level") or ("ERROR" if failed else "DEFAULT")),
        status_message=span.status.message,
        metadata={
            key.split("metadata.", 1)[1]: value
            for key, value in told.items()
            if key.startswith(("langfuse.observation.metadata.", "langfuse.trace.metadata."))
        },
        tool_definitions=_parsed(told.get("gen_ai.tool.definitions")) or [],
        warnings=["the span is over 9.5 MB"] if span.ByteSize() > MAX_SPAN_BYTES else [],
    )


def environment(resource: Mapping[str, Json]) -> str:
    """The environment that the resource of a request names; Langfuse takes only such names."""
    name = str(resource.get("deployment.environment.name", "default"))
    name = re.sub(r"[^a-z0-9-_]", "-", re.sub(r"^langfuse", "", name.lower()))
    return name[:MAX_ENVIRONMENT]


def plain(attributes: Iterable[KeyValue]) -> dict[str, Json]:
    """Attributes by name."""
    return {one.key: _value(one.value) for one in attributes}


def _value(value: AnyValue) -> Json:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return plain(value.kvlist_value.values)
    return getattr(value, kind) if kind else None


def _spans(requests: Iterable[ExportTraceServiceRequest]) -> Iterator[Span]:
    for request in requests:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                yield from scope.spans


def _type_of(told: Mapping[str, Json]) -> str:
    if given := told.get("langfuse.observation.type"):
        return str(given).upper()
    if kind := _INFERENCE_KINDS.get(str(told.get("openinference.span.kind"))):
        return kind
    if kind := _OPERATIONS.get(str(told.get("gen_ai.operation.name"))):
        return kind
    if "gen_ai.tool.name" in told or "gen_ai.tool.call.id" in told:
        return "TOOL"
    return "GENERATION" if any(key in told for key in _MODELS) else "SPAN"


def _both_sides(span: Span, told: Mapping[str, Json]) -> tuple[Json, Json]:
    for event in span.events:
        if event.name in _EVENT_FAMILIES:
            raise NotImplementedError(f"an event {event.name}: nothing we send has one")
    for one, other in _PAIRS:
        sides = _side(told, one), _side(told, other)
        if sides != (None, None):
            given, gave = (_parsed(side) for side in sides)
            return (_with_system(given, told), gave) if one == "gen_ai.input.messages" else (given, gave)
    return None, None


def _side(told: Mapping[str, Json], name: str) -> Json:
    """An attribute, or those that begin with its name and go on with an index."""
    if name in told:
        return told[name]
    rows = {key: value for key, value in told.items() if re.match(rf"{re.escape(name)}\.\d+\.", key)}
    return rows or None


def _with_system(messages: Json, told: Mapping[str, Json]) -> Json:
    system = _parsed(told.get("gen_ai.system_instructions"))
    if not system or not isinstance(messages, list):
        return messages
    if any(isinstance(one, Mapping) and one.get("role") == "system" for one in messages):
        return messages
    return [{"role": "system", "content": system}, *messages]


def _parameters(told: Mapping[str, Json]) -> dict[str, Json]:
    if "langfuse.observation.model.parameters" in told:
        return dict(_parsed(told["langfuse.observation.model.parameters"]))
    prefix = "gen_ai.request."
    return {k[len(prefix) :]: v for k, v in told.items() if k.startswith(prefix) and k != "gen_ai.request.model"}


def _usage(told: Mapping[str, Json]) -> dict[str, int]:
    """What was read from a cache or written to it is part of the input in OTel's conventions, and none of it here."""
    if "langfuse.observation.usage_details" in told:
        return dict(_parsed(told["langfuse.observation.usage_details"]))
    prefix = "gen_ai.usage."
    counts = {k[len(prefix) :]: v for k, v in told.items() if k.startswith(prefix) and type(v) is int}
    known = {"input_tokens": "input", "output_tokens": "output"}
    usage = {known.get(key, key): value for key, value in counts.items()}
    if "input" in usage:
        usage["input"] = max(0, usage["input"] - sum(v for k, v in counts.items() if k.startswith(_CACHED)))
    return usage


def _first(told: Mapping[str, Json], *names: str) -> str | None:
    return next((str(told[name]) for name in names if told.get(name)), None)


def _parsed(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value

"""Where in its run a call stands that is about to be made: told by the spans that are open around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import trace

from otel_agentrec.capture.opening import Key, OpenSpan
from otel_agentrec.capture.program import is_served, stands_alone
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.lanes import Around, Lane, lane_path

__all__ = ["OCCUPIED", "CallPlace", "place_of_call"]

OCCUPIED: ContextVar[frozenset[Key]] = ContextVar("otel_agentrec_tool_spans", default=frozenset())
"""TOOL spans whose call is known already: a tool called inside it is another call."""


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call stands.

    ``run``: id of the run, as readers of the recording will find it; ``lane`` in it (its ``root`` is this run); ``agent``,
    ``session``: of the outermost agent; ``call_id``: of the tool's own span; ``tool``: that span, if one is open;
    ``where``: the place for events.
    """

    run: str
    lane: Lane
    agent: str | None = None
    session: str | None = None
    call_id: str | None = None
    tool: Key | None = None
    key: Key | None = None
    where: Envelope = field(default_factory=Envelope)
    top: OpenSpan | None = None
    """The outermost agent's span."""
    is_given: bool = False
    """The run has an id of its own, which the spans do not tell."""
    is_served: bool = False
    """It is made for a request or a message that this process serves."""


def place_of_call(recorder: Recorder, name: str | None = None, call_id: str | None = None) -> CallPlace:
    """Where a call of this thread or task stands.

    Args:
        name: of the tool; None for a call of a model.
        call_id: the model's id of the tool call, where it is known.
    """
    recorder.edge.settle()
    context = trace.get_current_span().get_span_context()
    key: Key | None = (context.trace_id, context.span_id) if context.is_valid else None
    entry = recorder.edge.open_spans.nearest(key)
    if entry is None and key is None:
        entry = _only_agent(recorder)
    chain = list(_chain(recorder, entry))
    tool = _tool_span(recorder, chain, name, call_id) if name is not None else None
    if tool is not None and tool not in chain:
        chain = list(_chain(recorder, tool))
    around = [one for one in chain if one is not tool]
    agents = [one for one in around if one.kind == Kind.AGENT]
    outermost = agents[-1] if agents else None
    told = [one.place for one in chain if one.place is not None]
    given = next((one.run for one in told if one.run), None) or recorder.settings.run_id
    seen = chain[0].key if chain else key
    program = recorder.edge.program
    alone = seen is None or (bool(chain) and stands_alone(chain[0]))
    if program is not None and alone and given in (None, program.id):
        program.begin()
        given = program.id
    else:
        program = None
    run = given or (f"{seen[0]:032x}" if seen is not None else recorder.edge.process_run)
    session = next((one.session for one in told if one.session), None)
    path = lane_path(
        Around(one.kind or "", one.place.name if one.place else None, one.place.call_id if one.place else None)
        for one in around
    )
    at = tool or (chain[0] if chain else None)
    where = Envelope(
        run=given or (run if seen is None else None),
        session=session,
        trace=_trace(at) if at is not None else _ids(key),
    )
    return CallPlace(
        run=run,
        lane=Lane(run, path),
        agent=program.name if program is not None else _agent(outermost),
        session=session,
        call_id=call_id or (tool.place.call_id if tool is not None and tool.place is not None else None),
        tool=tool.key if tool is not None else None,
        key=at.key if at is not None else key,
        where=where,
        top=outermost,
        is_given=seen is None or program is not None,
        is_served=bool(chain) and is_served(chain[-1]),
    )


def _chain(recorder: Recorder, entry: OpenSpan | None) -> Iterator[OpenSpan]:
    """The span and those above it, nearest first; a parent and its child of another process or none are not connected."""
    if entry is None:
        return
    for one in (entry, *entry.ancestors()):
        recorder.edge.reveal(one)
        yield one


def _agent(outermost: OpenSpan | None) -> str | None:
    """What the agent is called: as it told, else as its span is named, which is what a recording says of it later."""
    if outermost is None:
        return None
    return (outermost.place.name if outermost.place is not None else None) or outermost.name


def _only_agent(recorder: Recorder) -> OpenSpan | None:
    """A thread that was not given its caller's context: the agent that is meant, when only one is at work."""
    agents = [one for one in recorder.edge.open_spans if one.kind == Kind.AGENT and one.forked_from is None]
    return agents[0] if len(agents) == 1 else None


def _tool_span(recorder: Recorder, chain: list[OpenSpan], name: str, call_id: str | None) -> OpenSpan | None:
    """The open TOOL span of this very call: around it with its name or call id, or anywhere in its trace with the call id."""
    occupied = OCCUPIED.get()
    for one in chain:
        if one.kind in (Kind.AGENT, Kind.MODEL):
            break
        if one.kind == Kind.TOOL:
            if one.is_open and one.key not in occupied and _is_of(one, name, call_id):
                return one
            break
    if call_id and chain:
        for one in recorder.edge.open_spans:
            same_trace = one.key[0] == chain[0].key[0] and one.key not in occupied
            named = one.place is not None and one.place.call_id == call_id
            if one.kind == Kind.TOOL and one.is_open and same_trace and named:
                return one
    return None


def _is_of(span: OpenSpan, name: str, call_id: str | None) -> bool:
    told = span.place
    if told is None:
        return True
    if call_id and told.call_id:
        return told.call_id == call_id
    return told.name in (None, name)


def _trace(entry: OpenSpan) -> dict[str, Any]:
    trace_id, span_id = entry.key
    path = entry.path()
    return {"traceId": f"{trace_id:032x}", "spanId": f"{span_id:016x}", **({"path": path} if path else {})}


def _ids(key: Key | None) -> dict[str, Any] | None:
    return {"traceId": f"{key[0]:032x}", "spanId": f"{key[1]:016x}"} if key is not None else None

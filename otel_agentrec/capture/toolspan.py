"""A span of our own around a tool call that no instrumentation sees, so that any program gets its TOOL records."""

from __future__ import annotations

from contextvars import Token
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags

from otel_agentrec._version import __version__
from otel_agentrec.capture import handed
from otel_agentrec.capture.emit_block import SCOPE, facts_of_error
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.placing import OCCUPIED, CallPlace
from otel_agentrec.capture.recorders import gate_of_process

__all__ = ["ToolSpan"]

Json = Any


class ToolSpan:
    """Around one call of a tool: the span that is open for it already, or ``execute_tool <name>`` of our own.

    Nothing here raises an Exception. ``key``: (trace id, span id), None where there is no SDK.
    """

    __slots__ = ("_attached", "_facts", "_occupied", "_span", "key")

    def __init__(self, place: CallPlace, name: str, arguments: Json, *, hook: str | None = None) -> None:
        self.key = place.tool
        self._span: trace.Span | None = None
        self._attached: Token[Any] | None = None
        self._facts: dict[str, Any] = {}
        if place.tool is None:
            PROCESS.run("a tool's span", self._open, place, name, arguments, hook)
        self._occupied = OCCUPIED.set(OCCUPIED.get() | {self.key}) if self.key is not None else None

    @property
    def trace(self) -> dict[str, str] | None:
        """``{traceId, spanId}`` of the span."""
        return {"traceId": f"{self.key[0]:032x}", "spanId": f"{self.key[1]:016x}"} if self.key is not None else None

    def returned(self, result: Json) -> None:
        """The call gave ``result``."""
        self._facts["result"] = result
        PROCESS.run("a tool's span", self._close)

    def raised(self, error_type: str, message: str) -> None:
        """The call raised, or was cut off."""
        self._facts.update(status="error", error_type=error_type, error_message=message)
        PROCESS.run("a tool's span", self._close)

    def cut_off(self, error: BaseException) -> None:
        facts = facts_of_error(error)
        self._facts.update(facts)
        PROCESS.run("a tool's span", self._close)

    def _open(self, place: CallPlace, name: str, arguments: Json, hook: str | None) -> None:
        facts = {"tool_name": name, "tool_call_id": place.call_id, "arguments": arguments}
        if place.is_given:
            facts["run_id"] = place.run
        self._facts = facts
        around = otel_context.get_current()
        if not trace.get_current_span(around).get_span_context().is_valid and place.key is not None:
            above = SpanContext(place.key[0], place.key[1], is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
            around = trace.set_span_in_context(NonRecordingSpan(above), around)
        said = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": place.call_id,
            "gen_ai.tool.type": "function",
            "agentrec.hook": hook,
        }
        tracer = trace.get_tracer(SCOPE, __version__)
        with handed.starting(facts):
            span = tracer.start_span(
                f"execute_tool {name}", around, attributes={key: v for key, v in said.items() if v is not None}
            )
        context = span.get_span_context()
        if context.is_valid and span.is_recording():
            self._span, self.key = span, (context.trace_id, context.span_id)
            self._attached = otel_context.attach(trace.set_span_in_context(span, around))

    def _close(self) -> None:
        span, self._span = self._span, None
        occupied, self._occupied = self._occupied, None
        if occupied is not None:
            OCCUPIED.set(OCCUPIED.get() - {self.key})
        if span is None:
            return
        if self.key is not None:
            handed.hand_over(self.key, self._facts)
        if self._facts.get("status") == "error":
            span.set_attribute("error.type", self._facts.get("error_type") or "_OTHER")
            message = gate_of_process().redactor.text(str(self._facts.get("error_message") or ""))
            span.set_status(Status(StatusCode.ERROR, message or None))
        # a generator may end in another context than it began in: there is nothing to take back then
        if self._attached is not None and trace.get_current_span() is span:
            otel_context.detach(self._attached)
        span.end()

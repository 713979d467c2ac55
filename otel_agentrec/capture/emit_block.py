"""A span that is the current one while a block of a hand-written agent runs."""

from __future__ import annotations

import json
import os
import secrets
import time
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from otel_agentrec._version import __version__
from otel_agentrec.capture import handed
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.recorders import gate_of_process
from otel_agentrec.capture.spans import SpanView

if TYPE_CHECKING:
    from typing_extensions import Self

    from otel_agentrec.capture.emit import AgentRun

__all__ = ["Block", "Guarded", "facts_of_error", "on_span"]

SCOPE = "otel_agentrec"


class Guarded:
    """A ``with`` or ``async with`` block. What goes wrong where it begins and ends is counted and never raised."""

    def __enter__(self) -> Self:
        PROCESS.run("agent_run", self._begin)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        PROCESS.run("agent_run", self._finish, error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, at)

    def _begin(self) -> None:
        raise NotImplementedError

    def _finish(self, error: BaseException | None) -> None:
        raise NotImplementedError


class Block(Guarded):
    """A span that is the current one while its block runs."""

    _span: Span
    _kind = ""
    _operation = ""
    _run: AgentRun

    def __init__(self) -> None:
        self._facts: dict[str, Any] = {}
        self._attached: Token[Any] | None = None
        self._span = trace.INVALID_SPAN
        self._view = SpanView("", "", None, "")
        self.trace_id = self.span_id = ""

    def _open(self, name: str, kind: SpanKind, attributes: dict[str, Any], above: AgentRun | None) -> None:
        """Start the span below the run ``above``, and make it the current one."""
        tracer = trace.get_tracer(SCOPE, __version__, self._run.tracer_provider)
        around = otel_context.get_current()
        if above is not None and above._span.get_span_context().is_valid:
            here = trace.get_current_span(around).get_span_context()
            if here.trace_id != above._span.get_span_context().trace_id:  # a thread that did not get the context
                around = trace.set_span_in_context(above._span, around)
        said = {key: value for key, value in attributes.items() if value is not None}
        with handed.starting(self._facts):
            self._span = tracer.start_span(name, context=around, kind=kind, attributes=said)
        context = self._span.get_span_context()
        if context.is_valid:
            self.trace_id, self.span_id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
        else:  # no SDK: listeners get ids all the same
            self.trace_id = above.trace_id if above is not None else secrets.token_hex(16)
            self.span_id = secrets.token_hex(8)
        self._hand_over()
        self._attached = otel_context.attach(trace.set_span_in_context(self._span, around))
        if self._run._listeners.wants_records:
            self._view = SpanView(
                self.trace_id,
                self.span_id,
                above.span_id if above is not None else None,
                name,
                kind.value + 1,
                SCOPE,
                start_ns=time.time_ns(),
            )
            self._run._listeners.started(self._view, self._kind, self._told_facts(), self._path(), above is None)

    def _path(self) -> list[str]:
        """Span ids of the runs around this, nearest first."""
        above = self._run._above if self._run is self else self._run
        path = []
        while above is not None:
            path.append(above.span_id)
            above = above._above
        return path

    def _told_facts(self) -> dict[str, Any]:
        """The facts with what stands on the span itself."""
        return {**self._facts, "operation": self._operation, "session_id": self._run.session_id, **self._placed()}

    def _placed(self) -> dict[str, Any]:
        run_id, turn_id = self._run._given
        return {"run_id": run_id, "turn_id": turn_id}

    def _hand_over(self) -> None:
        context = self._span.get_span_context()
        if self._span.is_recording():
            handed.hand_over((context.trace_id, context.span_id), self._facts)

    def _close(self, error: BaseException | None) -> None:
        if error is not None and "status" not in self._facts:
            self._facts.update(facts_of_error(error))
        if self._facts.get("status") == "error":
            self._span.set_attribute("error.type", self._facts.get("error_type") or "_OTHER")
            message = gate_of_process().redactor.text(str(self._facts.get("error_message") or ""))
            self._span.set_status(Status(StatusCode.ERROR, message or None))
        self._hand_over()
        if self._attached is not None:
            otel_context.detach(self._attached)
        self._span.end()
        if self._run._listeners.wants_records:
            view = self._view._replace(end_ns=time.time_ns())
            self._run._listeners.ended(
                view, self._kind, self._told_facts(), self._path(), self._run is self and self._run._above is None
            )


def facts_of_error(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except Exception:
        message = ""
    if isinstance(error, GeneratorExit):  # whoever read the stream stopped reading
        return {"status": "partial", "error_type": name, "error_message": message}
    return {"status": "error", "error_type": name, "error_message": message}


def on_span(key: str, value: Any) -> dict[str, str]:
    """The attribute with content, if OTel's content switch lets it onto spans: it leaves the process there, without secrets."""
    switch = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
    if value is None or switch not in ("span_only", "span_and_event", "true", "1"):
        return {}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return {key: gate_of_process().redactor.text(text)}

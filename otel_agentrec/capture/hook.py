"""The completion hook of OTel's GenAI instrumentations: what was said, structured, whatever their content switch says.

An instrumentation calls it when an operation is done, before its span ends, and also for spans that are not sampled, which
no processor ever sees. Facts of a span that is about to end become part of its own record; of one that has ended they amend
it. A model call of a trace that is not sampled is recorded here and now, by what the hook is told and what stands in the
event that the instrumentation is about to emit; without that event its model and tokens are unknown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from opentelemetry import context, trace

from otel_agentrec.capture import dialects
from otel_agentrec.capture.completions import Completion, fill
from otel_agentrec.capture.dialects.genai import NAME as GENAI
from otel_agentrec.capture.dialects.messages import calls_of, definition, finish_reasons_of, message, part
from otel_agentrec.capture.guard import PROCESS
from otel_agentrec.capture.payloads import plain_copy
from otel_agentrec.capture.recorders import open_recorders
from otel_agentrec.capture.spans import SpanView, from_sdk_log
from otel_agentrec.journal.facts import Facts, Kind

__all__ = ["complete"]

_INFERENCE = "opentelemetry.genai.client.inference.context"
"""Key under which opentelemetry-util-genai marks the context of a model call, and of nothing else."""


def complete(
    *,
    inputs: Any = None,
    outputs: Any = None,
    system_instruction: Any = None,
    tool_definitions: Any = None,
    span: Any = None,
    log_record: Any = None,
    **_: Any,
) -> None:
    """Feed all recorders of this process that want content. Never raises."""
    PROCESS.run(
        "the completion hook", _complete, inputs, outputs, system_instruction, tool_definitions, span, log_record
    )


def _complete(inputs: Any, outputs: Any, instructions: Any, tools: Any, span: Any, log_record: Any) -> None:
    recorders = [recorder for recorder in open_recorders() if recorder.settings.content != "off"]
    if not recorders:
        return
    facts = _facts(inputs, outputs, instructions, tools)
    if not facts:
        return
    span = trace.get_current_span() if span is None else span
    where = span.get_span_context()
    is_recording = span.is_recording()
    view = SpanView(
        f"{where.trace_id:032x}" if where.is_valid else "",
        f"{where.span_id:016x}" if where.is_valid else "",
        None,
        "",
        end_ns=time.time_ns(),
        attributes=from_sdk_log(log_record).attributes if log_record is not None else {},
    )
    unseen = None if is_recording else _unseen(view, span, facts)
    completion = Completion((where.trace_id, where.span_id), facts, is_recording, view, unseen)
    for recorder in recorders:
        recorder.completed(completion)


def _facts(inputs: Any, outputs: Any, instructions: Any, tools: Any) -> dict[str, Any]:
    """Facts by name of :class:`Facts` fields; what was not told or is empty is left out."""
    raw = _listed(outputs)
    output = [message(m) for m in raw]
    told: dict[str, Any] = {
        "messages": [message(m) for m in _listed(inputs)],
        "output_messages": output,
        "calls": calls_of(output),
        "finish_reasons": finish_reasons_of(raw),
        "system_instructions": [part(p) for p in _listed(instructions)],
        "tools": [definition(t) for t in _listed(tools)],
    }
    return {name: value for name, value in told.items() if value}


def _listed(value: Any) -> list[Any]:
    """A copy in plain data, as a list."""
    plain = plain_copy(value) if value else []
    return plain if isinstance(plain, list) else [plain]


def _unseen(view: SpanView, span: Any, facts: Mapping[str, Any]) -> tuple[str, Facts] | None:
    """The kind and all facts of an operation whose span tells nothing."""
    reading = dialects.read(view)
    if reading is None and _is_inference(span):
        reading = (Kind.MODEL, Facts(dialect=GENAI))
    if reading is None or reading[0] != Kind.MODEL:
        return None
    fill(reading[1], facts)
    if reading[1].status is None and not reading[1].output_messages:
        reading[1].status = "interrupted"  # no output is known, and nothing tells why
    return reading


def _is_inference(span: Any) -> bool:
    here = trace.get_current_span().get_span_context()
    return context.get_value(_INFERENCE) is not None and here == span.get_span_context()

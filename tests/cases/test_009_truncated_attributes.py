"""Attributes that an SDK's limits cut or dropped: kept as the text they are, flagged, never an error.

(That a truncated node is neither replayed nor a cache entry is the replay and resume rooms' half.)
"""

from __future__ import annotations

from pathlib import Path

from opentelemetry.sdk.trace import SpanLimits, TracerProvider

from otel_agentrec import AgentRecSpanProcessor, read_nodes
from tests.cases.case import expected, ingested


def test_cut_text_is_kept_and_flagged(tmp_path: Path) -> None:
    want = expected("009")
    case = ingested("009", tmp_path)
    cut, dropped = want["model"]
    record = case.record(cut["span_id"])
    assert record.flags == cut["flags"]
    assert record.inputs["messages"] == cut["inputs_raw"]
    assert (record.input_tokens, record.output_tokens, record.output_text) == (210, 30, "ok")

    record = case.record(dropped["span_id"])
    assert dropped["flags"][0] in record.flags
    assert (record.model_id, record.input_tokens, record.output_tokens) == (None, None, None)

    tool = case.record(want["tool"][0]["span_id"])
    assert set(want["tool"][0]["flags"]) <= set(tool.flags)
    assert tool.inputs["arguments"] == want["tool"][0]["inputs_raw"]
    assert tool.outputs is None
    assert case.verified.is_valid


def test_what_names_the_step_is_taken_before_the_sdk_drops_it(tmp_path: Path) -> None:
    """The attribute count limit drops the oldest key first, which is the one that says what the span is."""
    provider = TracerProvider(span_limits=SpanLimits(max_attribute_length=64, max_attributes=8), shutdown_on_exit=False)
    provider.add_span_processor(AgentRecSpanProcessor(tmp_path / "rec"))
    asked = '[{"role":"user","parts":[{"type":"text","content":"%s"}]}]' % ("x" * 200)
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "demo-large", "gen_ai.input.messages": asked}
    with provider.get_tracer("demo").start_as_current_span("chat demo-large", attributes=attributes) as span:
        for n in range(10):
            span.set_attribute(f"gen_ai.tool.{n}.name", f"tool{n}")
    provider.shutdown()
    (record,) = read_nodes(tmp_path / "rec")
    assert record.node_type.value == "MODEL" and record.status == "ok"
    assert record.model_id == "demo-large" and record.operation == "chat"
    assert {"attributes_dropped", "input_truncated"} <= set(record.flags)
    assert record.inputs["messages"] == asked[:64]

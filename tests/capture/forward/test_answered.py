"""A call that was answered from a recording costs nothing, where people look at what a run cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agentrec import AgentModelResult, AgentPrompt, ResumableModelClient, ResumeCache, agent_run, configure


class Model:
    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        return AgentModelResult("42", {"usage": {"input_tokens": 7, "output_tokens": 3}})

    create_stream: Any = None


def test_its_span_says_where_the_answer_is_from_and_counts_no_tokens(tmp_path: Path, otel_globals: None) -> None:
    kept = InMemorySpanExporter()
    batches = BatchSpanProcessor(kept)
    client = ResumableModelClient(Model(), ResumeCache())
    asked = AgentPrompt("m", [{"role": "user", "content": "6 * 7?"}])
    with configure(tmp_path / "rec", forward=[batches]), agent_run("sums") as run:
        for _ in range(2):
            with run.step() as step, step.model_call(asked) as call:
                call.response(client.create(asked))
    batches.force_flush()
    told = [dict(span.attributes or {}) for span in kept.get_finished_spans()]
    models = [one for one in told if one.get("gen_ai.operation.name") == "chat"]
    assert [
        (one.get("agentrec.answered_from"), one["gen_ai.usage.input_tokens"], one["gen_ai.usage.output_tokens"])
        for one in models
    ] == [(None, 7, 3), ("cache", 0, 0)]
    assert "agentrec.hash" in models[1]

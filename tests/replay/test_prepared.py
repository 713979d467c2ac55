"""What is decided before a program is replayed."""

from __future__ import annotations

from pathlib import Path

from otel_agentrec.replay.order import Order
from otel_agentrec.replay.running import prepared
from tests.capture.wire.making import AGENT, Wired, answer, attributes, body_of, said


def test_all_runs_of_the_recorded_process_are_meant(tmp_path: Path) -> None:
    """A program may run its agent twice, with the same request."""
    live = Wired(tmp_path / "rec")
    for n in (1, 2):
        with (
            live.tracer.start_as_current_span("invoke_agent", attributes=AGENT),
            live.tracer.start_as_current_span("chat m", attributes=attributes("Hi?")),
        ):
            live.call(body_of("Hi?"), answer(said("Hello.", ident=f"r{n}")))
    live.recorder.shutdown()
    order, run = prepared(Order(str(tmp_path / "rec"), ""))
    assert len(run.calls) == 2
    assert order.runs == run.runs
    assert len(order.runs) == 2

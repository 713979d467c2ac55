"""What survives what, in each mode: a child ends 40 tool spans and then its process, in one of the ways that processes end.

The table of docs/durability.md is made of these expectations.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec import read_nodes, verify

ROOT = Path(__file__).parents[2]
SPANS = 40
CHILD = """
import os, signal, sys, time
from opentelemetry.sdk.trace import TracerProvider
from otel_agentrec import AgentRecSpanProcessor
from otel_agentrec.capture import deferred

deferred.LINGER = 60.0  # the thread has not come to it yet: the worst moment
path, mode, end = sys.argv[1:]
provider = TracerProvider()
provider.add_span_processor(AgentRecSpanProcessor(path, durability=mode))
tracer = provider.get_tracer("demo")
for n in range({spans}):
    attributes = {{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "gen_ai.tool.call.id": f"c{{n}}"}}
    tracer.start_span("execute_tool t", attributes=attributes).end()
if end == "an exception":
    raise SystemExit("boom")
if end == "sys.exit":
    sys.exit(3)
if end == "force_flush, then kill -9":
    provider.force_flush()
    os.kill(os.getpid(), signal.SIGKILL)
if end == "os._exit":
    os._exit(0)
if end == "SIGTERM without a handler":
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(30)
if end == "kill -9":
    os.kill(os.getpid(), signal.SIGKILL)
"""
ENDS = [
    "the end of the program",
    "an exception",
    "sys.exit",
    "force_flush, then kill -9",
    "os._exit",
    "SIGTERM without a handler",
    "kill -9",
]
SUDDEN = ENDS[4:]
MODES = ["deferred", "written", "fsync"]


def survives(mode: str, end: str) -> bool:
    return mode != "deferred" or end not in SUDDEN


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mode", MODES)
def test_what_survives(tmp_path: Path, mode: str, end: str) -> None:
    recording = tmp_path / "rec"
    child = [sys.executable, "-c", CHILD.format(spans=SPANS), str(recording), mode, end]
    subprocess.run(child, cwd=ROOT, timeout=60, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    found = [r.tool_call_id for r in read_nodes(recording) if r.status == "ok"] if recording.exists() else []
    assert found == ([f"c{n}" for n in range(SPANS)] if survives(mode, end) else [])
    if recording.exists():
        assert verify(recording).exit_code == (0 if end in ENDS[:3] else 3)


def test_the_table_in_the_docs_is_what_was_tested() -> None:
    rows = [
        f"| {end} | " + " | ".join("all" if survives(m, end) else "lost: what waits" for m in MODES) + " |"
        for end in ENDS
    ]
    rows.append("| power cut, kernel crash | lost: what is not on disk yet | lost: what is not on disk yet | all |")
    page = (ROOT / "docs" / "durability.md").read_text()
    assert "| the process ends by | " + " | ".join(f"`{m}`" for m in MODES) + " |" in page
    assert "\n".join(rows) in page

"""An agent is killed while a tool runs: the trace holds the model's request for the call, and nothing of the call itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from otel_agentrec import read_nodes, verify
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold

from .case import expected, ingested

ROOT = Path(__file__).parent.parent.parent


def test_the_file_alone_tells_which_call_has_no_outcome(tmp_path: Path) -> None:
    case, right = ingested("002", tmp_path), expected("002")
    assert [r.node_type for r in case.records].count("MODEL") == right["records"]["model"]
    assert [r.node_type for r in case.records].count("TOOL") == right["records"]["tool"]
    (run,) = case.runs
    (want,) = right["unpaired_calls"]
    assert run.unpaired == [
        {
            "callId": want["call_id"],
            "toolName": want["tool_name"],
            "requestedBy": want["requested_by"],
            "status": want["status"],
        }
    ]


def test_the_chain_is_valid_although_the_run_is_incomplete(tmp_path: Path) -> None:
    case, right = ingested("002", tmp_path), expected("002")
    assert case.verified.is_valid
    assert not case.runs[0].complete
    assert all(set(right["flags"]) <= set(r.flags) for r in case.records)


KILLED = """
import os, signal, sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import set_span_in_context
from otel_agentrec import AgentRecSpanProcessor

provider = TracerProvider(sampler=ALWAYS_ON)
provider.add_span_processor(AgentRecSpanProcessor(sys.argv[1]))
tracer = provider.get_tracer("demo")

def tool(name, call_id, **more):
    told = {"operation.name": "execute_tool", "tool.name": name, "tool.call.id": call_id, **more}
    attributes = {"gen_ai." + key: value for key, value in told.items()}
    return tracer.start_span("execute_tool " + name, set_span_in_context(root), attributes=attributes)

root = tracer.start_span("invoke_agent helper", attributes={"gen_ai.operation.name": "invoke_agent"})
tool("read_file", "call_1", **{"tool.call.result": "buy milk"}).end()
tool("send_email", "call_2", **{"tool.call.arguments": '{"to":"bo@example.test"}'})
os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""


def test_after_a_kill_the_recording_names_the_call_that_had_begun(tmp_path: Path) -> None:
    out = tmp_path / "rec"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out)], cwd=ROOT, capture_output=True, timeout=60)
    assert killed.returncode < 0, killed.stderr.decode()
    first, second = sorted(read_nodes(out), key=lambda r: r.tool_call_id or "")
    assert (first.tool_call_id, first.outputs, first.status) == ("call_1", "buy milk", "ok")
    assert (second.tool_call_id, second.outputs, second.status) == ("call_2", None, "interrupted")
    assert second.inputs["arguments"] == {"to": "bo@example.test"}
    assert verify(out).is_valid
    (run,) = fold(Recording(out)).runs
    assert (run.complete, run.status) == (False, "interrupted")

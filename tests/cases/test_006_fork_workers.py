"""Recording is set up before the fork (preloading servers, task queues that fork): parent and children record.

What goes wrong elsewhere: locks held across the fork, items sent twice, a "last hash" that every child goes on from.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec import read_events, read_nodes, verify

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")

PROGRAM = """
import os, sys
from opentelemetry.sdk.trace import TracerProvider
from otel_agentrec import AgentRecSpanProcessor
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(AgentRecSpanProcessor(sys.argv[1]))
tracer = provider.get_tracer("demo")

def tool(call_id):
    return tracer.start_span("execute_tool t", attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "gen_ai.tool.call.id": call_id})

def work(tag, n):
    for i in range(n):
        tool(f"{tag}-{i}").end()

%s
for _ in range(2):
    os.wait()
provider.shutdown()
"""

WORKERS = """
work("before", 2)
for k in range(2):
    if os.fork() == 0:
        work(f"child{k}", 3)
        provider.force_flush()
        provider.shutdown()
        os._exit(0)
work("after", 2)
"""

ACROSS = """
with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
    open_across = tool("open")
    for k in range(2):
        if os.fork() == 0:
            work(f"child{k}", 1)
            open_across.end()
            provider.shutdown()
            os._exit(0)
    open_across.end()
"""


def recorded(tmp_path: Path, program: str) -> Path:
    path = tmp_path / "rec"
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM % program, str(path)], check=True, timeout=60)
    return path


def test_each_process_writes_a_stream_of_its_own_and_nothing_is_missing_or_twice(tmp_path: Path) -> None:
    path = recorded(tmp_path, WORKERS)
    wanted = [f"{tag}-{i}" for tag, n in (("before", 2), ("child0", 3), ("child1", 3), ("after", 2)) for i in range(n)]
    assert sorted(str(node.tool_call_id) for node in read_nodes(path)) == sorted(wanted)
    opened = [event for event in read_events(path) if event.type == "STREAM_OPENED"]
    assert len({event.payload["pid"] for event in opened}) == len(opened) == 3
    (parent,) = [event for event in opened if "parentStream" not in event.payload]
    assert {event.payload["parentStream"] for event in opened if event is not parent} == {parent.stream}
    assert verify(path).is_valid


def test_a_span_that_is_open_across_the_fork_is_recorded_once(tmp_path: Path) -> None:
    path = recorded(tmp_path, ACROSS)
    assert [str(node.tool_call_id) for node in read_nodes(path)].count("open") == 1
    amended = [event for event in read_events(path) if event.type == "NODE_AMENDED"]
    (parent,) = [e for e in read_events(path) if e.type == "STREAM_OPENED" and "parentStream" not in e.payload]
    told = [event.payload["forkedFrom"] for event in amended]
    assert told == [{"pid": parent.payload["pid"], "stream": parent.stream}] * 2
    children = [e for e in read_events(path) if e.type == "NODE_RECORDED" and e.stream != parent.stream]
    (run,) = [e for e in read_events(path) if e.type == "RUN_STARTED"]
    assert all(e.trace and e.trace["path"] == [run.trace["spanId"]] for e in children if run.trace)
    assert verify(path).is_valid

"""A full disk, a path that can't be written, a path that can be written only later: the agent must not notice.

Seen by users of small volumes and read-only containers: a write error kills the run, or the writer for good, or leaves half
a line behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_agentrec import AgentRecSpanProcessor, read_events, read_nodes, verify


class Agent:
    def __init__(self, path: Path) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.processor = AgentRecSpanProcessor(path)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("demo")

    def call(self, call_id: str) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": '{"x":1}',
        }
        self.tracer.start_span("execute_tool t", attributes=attributes).end()

    def stop(self) -> dict[str, int]:
        self.provider.force_flush()
        self.provider.shutdown()
        return self.processor.recorder.stats()


CANNOT_BE_WRITTEN = {
    "a device that is always full": "/dev/full",
    "below a plain file": "plain/sub/rec",
    "a plain file": "plain",
    "a name that no file can have": "x" * 300,
}


@pytest.mark.parametrize("kind", CANNOT_BE_WRITTEN)
def test_the_agent_does_not_notice_and_the_loss_is_counted_and_told_once(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain").touch()
    agent = Agent(tmp_path / CANNOT_BE_WRITTEN[kind])
    for n in range(3):
        agent.call(f"c{n}")
    stats = agent.stop()
    assert stats["dropped"] >= 6, "each start and each end"
    assert (stats["records"], stats["swallowed"]) == (0, 0)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_path_that_heals_gets_the_next_record_and_the_number_of_lost_ones(tmp_path: Path) -> None:
    path = tmp_path / "rec"
    path.touch()  # a plain file stands where the directory should be …
    agent = Agent(path)
    agent.call("lost")
    path.unlink()  # … and goes
    agent.call("kept")
    agent.stop()
    assert [node.tool_call_id for node in read_nodes(path)] == ["kept"]
    (gap,) = [event for event in read_events(path) if event.type == "DROPPED"]
    assert gap.payload["count"] >= 2
    assert verify(path).is_valid


FULL = """
import json, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.cases.test_018_storage_errors import Agent
agent = Agent(Path(sys.argv[1]))
agent.call("before")
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
size = max(f.stat().st_size for f in Path(sys.argv[1]).glob("2*[0-9a-f].jsonl"))
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[3]), hard))  # no file may grow beyond this
for n in range(5):
    agent.call(f"lost{n}")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
agent.call("after")
print(json.dumps(agent.stop()))
"""


@pytest.mark.skipif(os.name == "nt", reason="file size limits are a Unix matter")
@pytest.mark.parametrize("room", [0, 1, 100, 700])
def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_no_half_line(tmp_path: Path, room: int) -> None:
    root = str(Path(__file__).parent.parent.parent)
    child = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "rec"), root, str(room)], capture_output=True, text=True, timeout=60
    )
    assert child.returncode == 0, child.stderr
    stats = json.loads(child.stdout)
    assert stats["dropped"] >= 8
    assert stats["swallowed"] == 0
    assert len(child.stderr.splitlines()) == 1
    gaps = [event for event in read_events(tmp_path / "rec") if event.type == "DROPPED"]
    assert sum(gap.payload["count"] for gap in gaps) == stats["dropped"]
    ids = [node.tool_call_id for node in read_nodes(tmp_path / "rec")]
    assert (ids[0], ids[-1]) == ("before", "after")
    assert verify(tmp_path / "rec").is_valid


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    agent = Agent(tmp_path / "rec")
    agent.call("lost")
    assert agent.stop()["dropped"] >= 2

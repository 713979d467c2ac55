"""An example run as it stands, and what it recorded compared with the script of its model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from otel_agentrec.audit.verify import verify
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.records import NodeIoRecord, NodeType

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments
import run_all
import scene

__all__ = ["TIMEOUT", "assert_recorded", "run_all", "run_example"]

TIMEOUT = environments.SETUP_SECONDS + 2 * run_all.SECONDS
"""Seconds for one test; the first one installs packages."""


def run_example(name: str, recording: Path) -> str:
    """What the example printed."""
    words = run_all.command(name, recording)
    done = subprocess.run(
        words, env=environments.environment(), capture_output=True, text=True, timeout=TIMEOUT - run_all.SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def texts(record: NodeIoRecord, role: str) -> list[str]:
    """The texts of the messages of a role that a model was given."""
    messages = [m for m in record.inputs["messages"] if m["role"] == role]
    return [part["content"] for m in messages for part in m["parts"] if part["type"] == "text"]


def parsed(value: object) -> object:
    return json.loads(value) if isinstance(value, str) and value[:1] in "{[" else value


def said(result: object) -> object:
    """The text of a result, which may be in blocks."""
    return "".join(block["text"] for block in result) if isinstance(result, list) else result


def assert_recorded(recording: Path, out: str, *, whole: bool = True) -> NodeIoRecord:
    """Two model calls and two tool calls stand there, each as the script has it, and nothing was changed.

    Args:
        recording: what the example recorded.
        out: what it printed.
        whole: the telemetry of a later model call has all messages that were sent, not only the new ones.

    Returns:
        The last model call.
    """
    assert scene.ANSWER in out
    assert "INTACT" in out
    records = list(read_nodes(recording))
    models = [r for r in records if r.node_type is NodeType.MODEL]
    tools = {r.tool_name: r for r in records if r.node_type is NodeType.TOOL}
    assert (len(records), len(models), len(tools)) == (4, 2, 2)
    assert {r.status for r in records} == {"ok"}
    assert len({r.run_id for r in records}) == len({r.turn_id for r in records}) == 1

    first, last = models
    wanted = [(call.id, call.name, call.arguments) for call in scene.CALLS]
    assert texts(first, "user") == [scene.QUESTION]
    assert texts(last, "user") == ([scene.QUESTION] if whole else [])
    assert [(c["id"], c["name"], parsed(c["arguments"])) for c in first.tool_calls or ()] == wanted
    assert (last.output_text, last.tool_calls or []) == (scene.ANSWER, [])
    assert [(r.step, r.input_tokens, r.output_tokens) for r in models] == [
        (step, turn.usage.input, turn.usage.output) for step, turn in enumerate(scene.SCRIPT, 1) if turn.usage
    ]

    results = []
    for call_id, name, arguments in wanted:
        tool, result = tools[name], scene.TOOLS[name](**arguments)
        assert (tool.step, tool.tool_call_id) == (1, call_id)
        assert parsed(tool.inputs["arguments"]) == arguments
        assert tool.outputs == result
        results.append((call_id, result))
    parts = [part for message in last.inputs["messages"] for part in message["parts"]]
    assert [(p["id"], said(p["response"])) for p in parts if p["type"] == "tool_call_response"] == results
    assert verify(recording).exit_code == 0
    return last

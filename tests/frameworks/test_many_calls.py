"""200 calls of LangChain side by side, traced by callbacks: no span is current, and each call finds its own record or none."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.nodes.read import read_nodes
from otel_agentrec.nodes.wire import read_wire

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

HERE = Path(__file__).parent
COUNT, SECONDS = 200, 300

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + SECONDS)]


@pytest.mark.parametrize(
    ("packages", "rung"),
    [(None, "response_id"), ("langchain-openllmetry", "header")],
    ids=["OpenInference", "OpenLLMetry"],
)
def test_nothing_is_attributed_wrongly(tmp_path: Path, packages: str | None, rung: str) -> None:
    """Half of the calls ask the same and get the same text: only the id of the answer tells them apart."""
    python = (
        environments.python()
        if packages is None
        else environments.python_with(HERE / "requirements" / f"{packages}.txt")
    )
    with ScriptedServer([Turn("Hello.", delay=0.02, times=0)], seed="many") as server:
        words = ["run", "--out", str(tmp_path / "rec"), "--", str(python)]
        done = subprocess.run(
            [sys.executable, "-m", "otel_agentrec", *words, "-m", "tests.frameworks.tool_agents.many_calls",
             server.base_url, str(COUNT)],
            env=environments.environment(OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="openai"),
            cwd=HERE.parents[1],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    got = json.loads(done.stdout.splitlines()[-1])
    records, wires = list(read_nodes(tmp_path / "rec")), list(read_wire(tmp_path / "rec"))
    assert (len(records), len(wires), len(got)) == (COUNT, COUNT, COUNT)
    owned = [wire_id for record in records for wire_id in record.wire_ids]
    assert len(owned) == len(set(owned)) == COUNT
    assert {wire.rung for wire in wires} == {rung}
    for record in records:
        (number,) = set(re.findall(r'number": (\d+)', json.dumps(record.attributes).replace('\\"', '"')))
        assert record.outputs["id"] == got[number]

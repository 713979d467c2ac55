"""What docs/viewers.md says of Jaeger: a run is found by what its steps are and by its place in the recording, and one saved
trace is enough to check the recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from otel_agentrec import verify
from otel_agentrec.demo import stage
from otel_agentrec.journal.stamps import stamp_of
from tests.servers.feeding import export, stamps
from tests.servers.jaeger import Jaeger
from tests.servers.program import get

pytestmark = pytest.mark.servers

Json = Any


def found(jaeger: Jaeger, service: str, **tags: str) -> list[str]:
    """Ids of the traces that its pages list for these tags."""
    asked = json.dumps({key.replace("__", "."): value for key, value in tags.items()})
    answer = json.loads(get(f"{jaeger.query_url}/api/traces?service={quote(service)}&tags={quote(asked)}"))
    return [str(trace["traceID"]) for trace in answer["data"]]


def test_a_run_in_jaeger(jaeger: Jaeger, demo: Path, tmp_path: Path) -> None:
    count = export(demo, jaeger.otlp_url, "--again")
    (service,) = jaeger.services()
    spans = jaeger.wait_for(service, count)
    (root,) = [span for span in spans if not span.get("parentSpanId")]
    told = {span["name"]: span["attributes"] for span in spans}

    assert {one["gen_ai.operation.name"] for one in told.values()} == {"invoke_agent", "chat", "execute_tool"}
    assert stage.QUESTION in root["attributes"]["input.value"]
    assert (root["attributes"]["output.value"], root["attributes"]["session.id"]) == (stage.ANSWER, "demo")
    assert json.loads(told["execute_tool last_train"]["output.value"])["departs"] == "21:42"
    assert told["chat gpt-5-mini"]["gen_ai.usage.input_tokens"] > 0
    assert {stamp_of(span["attributes"]) for span in spans} == stamps(demo)

    trace, seq = root["traceId"], str(root["attributes"]["agentrec.seq"])
    assert found(jaeger, service, gen_ai__tool__name="weather") == [trace]
    assert found(jaeger, service, agentrec__seq=seq) == [trace]
    assert found(jaeger, service, agentrec__seq="1000") == []

    (tmp_path / "jaeger.json").write_bytes(get(f"{jaeger.query_url}/api/v3/traces/{trace}"))
    against = verify(demo, against=tmp_path / "jaeger.json")
    assert against.exit_code == 0 and against.against is not None
    assert against.against["nodes"] == against.against["witnessed"] == 4

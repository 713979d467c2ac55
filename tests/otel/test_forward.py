"""A real agent's spans on their way out, switched on from outside, by one line, or both: to a receiver on loopback."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import read_nodes, verify
from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.wire import read_wire
from otel_agentrec.records import record_id_of_span
from tests.capture.forward.sinks import HttpSink, attributes
from tests.capture.forward.test_events import check as check_events
from tests.capture.forward.test_forward import lines
from tests.capture.shell import INSTRUMENT, ROOT, Shell, as_installed

APP = ROOT / "tests" / "capture" / "ways_app.py"
OWN_PROVIDER = """
import os, runpy, sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from otel_agentrec import AgentRecSpanProcessor, AgentRecSpanExporter, configure

exporter = OTLPSpanExporter()
if os.environ["HOW"] == "configure":
    configure(os.environ["REC"], forward=[BatchSpanProcessor(AgentRecSpanExporter(exporter))])
else:
    provider = TracerProvider()
    late = os.environ["HOW"] == "late"
    if late:
        trace.set_tracer_provider(provider)
    provider.add_span_processor(AgentRecSpanProcessor(os.environ["REC"], forward=[BatchSpanProcessor(exporter)]))
    if not late:
        trace.set_tracer_provider(provider)
sys.argv = [APP, "whole"]
runpy.run_path(APP, run_name="__main__")
"""


@pytest.fixture
def model() -> Iterator[str]:
    turns = [
        Turn(
            tool_calls=[Call("look_up", {"what": "sky"}, "call-1"), Call("look_up", {"what": "train"}, "call-2")],
            when=When(last="Plan", step=1),
        ),
        Turn("Go early.", when=When(any="Plan")),
        Turn("Good day.", times=0),
    ]
    with ScriptedServer(turns) as server:
        yield server.base_url


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    sink = HttpSink()
    yield sink
    sink.close()


@pytest.fixture
def shell(tmp_path: Path, model: str, sink: HttpSink) -> Shell:
    shell = Shell(tmp_path, model)
    shell.env["PYTHONPATH"] = f"{ROOT}:{as_installed(tmp_path / 'site')}"
    shell.env["REC"] = str(shell.rec)
    shell.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = sink.url
    shell.env.update(dict.fromkeys(("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "none"))
    shell.write("own.py", OWN_PROVIDER.replace("APP", repr(str(APP))))
    return shell


def check(shell: Shell, sink: HttpSink, done: Any) -> None:
    """All spans of the agent came once, with stamps, messages, tools and tokens."""
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    spans = {f"{s.span_id.hex()}": s for s in sink.spans if s.name != "agentrec.checkpoint"}
    assert len(spans) == len([s for s in sink.spans if s.name != "agentrec.checkpoint"]), "each once"
    held = lines(shell.rec)
    records = [r for r in read_nodes(shell.rec) if r.span_id in spans]
    assert [r.node_type.value for r in records] == ["MODEL", "TOOL", "TOOL", "MODEL"]
    for record in records:
        told = attributes(spans[record.span_id or ""])
        assert (
            told["agentrec.record_id"]
            == record.record_id
            == record_id_of_span(record.trace_id or "", record.span_id or "")
        )
        line = held[told["agentrec.stream"], told["agentrec.seq"]]
        assert (line["hash"], line["prevHash"]) == (told["agentrec.hash"], told["agentrec.prev_hash"])
        if record.node_type.value == "MODEL":
            assert told["gen_ai.usage.input_tokens"] == record.input_tokens
            assert len(json.loads(told["gen_ai.input.messages"])) == len(record.inputs["messages"])
            assert "look_up" in told["gen_ai.tool.definitions"]
        else:
            assert json.loads(told["input.value"]) == record.inputs["arguments"]
            assert json.loads(told["output.value"]) == record.outputs
    agent = next(attributes(s) for s in spans.values() if s.name.startswith("invoke_agent"))
    assert agent["agentrec.seq"] and len(agent["agentrec.hash"]) == 64
    assert verify(shell.rec).exit_code == 0


@pytest.mark.parametrize("launcher", ["run", "opentelemetry-instrument"])
def test_an_exporter_by_name_and_events_by_a_variable(shell: Shell, sink: HttpSink, launcher: str) -> None:
    shell.env.update(OTEL_TRACES_EXPORTER="agentrec_otlp", OTEL_AGENTREC_EVENTS="otlp")
    if launcher == "run":
        done = shell.run(sys.executable, str(APP), "whole")
    else:
        shell.env["OTEL_AGENTREC_PATH"] = str(shell.rec)
        done = shell.plain(*INSTRUMENT, sys.executable, str(APP), "whole")
    check(shell, sink, done)
    check_events(sink, shell.rec)
    assert [one.api for one in read_wire(Recording(shell.rec))] == ["openai.chat"] * 3, "ours are nobody's calls"


@pytest.mark.parametrize("how", ["configure", "early", "late"])
@pytest.mark.parametrize("launcher", ["", "run"])
def test_a_program_that_forwards_itself(shell: Shell, sink: HttpSink, how: str, launcher: str) -> None:
    shell.env.update(HOW=how, OTEL_AGENTREC_WIRE="true", WAYS_IN_CODE="instrument" if not launcher else "")
    shell.env["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    argv = [sys.executable, str(shell.path / "own.py")]
    done = shell.run(*argv) if launcher else shell.plain(*argv)
    check(shell, sink, done)
    assert "changes nothing" not in done.stderr, "it forwards"
    checkpoint = sink.named("agentrec.checkpoint")[-1]
    held = lines(shell.rec)
    assert held[checkpoint["agentrec.stream"], checkpoint["agentrec.size"] - 1]["hash"] == checkpoint["agentrec.hash"]
    assert checkpoint["agentrec.size"] > max(one.get("agentrec.seq", 0) for one in map(attributes, sink.spans))

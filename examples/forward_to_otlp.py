"""A recorded agent whose spans go on to a backend with their stamps: the one that ``OTEL_EXPORTER_OTLP_ENDPOINT`` names, else
``otel-agentrec serve``, started here. It is away at first: what is lost then is counted, and ``export`` sends it afterwards."""

import os
import re
import subprocess
import sys

import scene
from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import otel_agentrec
from otel_agentrec.cli.app import run as otel_agentrec_command

RECEIVED = scene.recording().with_name("received")
SERVE = [sys.executable, "-m", "otel_agentrec", "serve", "--port", "0", "--no-grpc", "--out", str(RECEIVED)]
NOBODY = "http://127.0.0.1:9"


def run_agent(endpoint: str) -> dict[str, int]:
    """Record the agent, and send its spans on. Gives what was counted."""
    exporter = otel_agentrec.AgentRecSpanExporter(OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=1))
    forward = [BatchSpanProcessor(exporter)]
    with otel_agentrec.configure(scene.recording(), forward=forward) as recorder:
        OpenAIInstrumentor().instrument()
        with otel_agentrec.agent_run("trip planner"):
            scene.chat(OpenAI(), lambda name, arguments, _: scene.TOOLS[name](**arguments))
        forward[0].force_flush()
    return recorder.stats()


with scene.model():
    counted = run_agent(os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", NOBODY))
print(
    f"{counted['nodes']} calls recorded; spans sent: {counted.get('spans_sent', 0)}, lost: {counted.get('spans_lost', 0)}"
)

if "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ:
    with subprocess.Popen(SERVE, stderr=subprocess.PIPE, text=True) as receiver:
        try:
            address = re.search(r"http://\S+:\d+", receiver.stderr.readline())[0]
            otel_agentrec_command(["export", str(scene.recording()), "--otlp", address])
            otel_agentrec_command(["export", str(scene.recording()), "--otlp", address])
        finally:
            receiver.terminate()
    otel_agentrec_command(["show", str(RECEIVED)])

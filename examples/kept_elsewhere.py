"""A recording that was written anew is whole in itself; what another system kept of it tells: ``verify --against``.

The spans go on to an exporter. Here it is one that writes a file, as a Collector's file exporter does, so that nothing else
need run; in earnest it sends to a machine that the recording's holder can't write to.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import scene
from openai import OpenAI
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

import otel_agentrec
from otel_agentrec.cli.app import run as otel_agentrec_command
from otel_agentrec.journal.chain import GENESIS, seal, split

EVIDENCE = scene.recording().with_name("evidence.pb")


class Collector(SpanExporter):
    """Keeps each batch as the Collector's file exporter does with ``format: proto``: its length, then the message."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        message = encode_spans(spans).SerializeToString()
        with EVIDENCE.open("ab") as file:
            file.write(len(message).to_bytes(4, "big") + message)
        return SpanExportResult.SUCCESS


def write_anew(recording: Path, words: dict[bytes, bytes]) -> None:
    """What somebody can do who holds the recording: say another thing, and seal every line again, those of the index last."""
    for path in sorted(recording.glob("*.jsonl")):
        if path.name.endswith(".content.jsonl"):
            continue
        prev, lines = GENESIS, []
        for line in path.read_bytes().splitlines():
            event, old, _ = split(line) or sys.exit("no line of a recording")
            for was, now in words.items():
                event = event.replace(was, now)
            sealed, prev = seal(prev, event)
            lines.append(sealed)
            words = {**words, old.encode(): prev.encode()}
        path.write_bytes(b"".join(lines))


if scene.recording().exists():
    sys.exit(
        f"{scene.recording()} is there: name a directory that is not, for what is rewritten here is to be this run alone"
    )
EVIDENCE.unlink(missing_ok=True)
forward = [SimpleSpanProcessor(Collector())]
with otel_agentrec.configure(scene.recording(), forward=forward, sessions=False), scene.model():
    OpenAIInstrumentor().instrument()
    with otel_agentrec.agent_run("trip planner"):
        scene.chat(OpenAI(), lambda name, arguments, _: scene.TOOLS[name](**arguments))

verify = ["verify", str(scene.recording())]
assert otel_agentrec_command([*verify, "--against", str(EVIDENCE)]) == 0

write_anew(scene.recording(), {b'"inputTokens":140': b'"inputTokens":14'})
print("\nwritten anew:")
assert otel_agentrec_command(verify) == 0
print("\nwritten anew, against what was kept:")
sys.exit(0 if otel_agentrec_command([*verify, "--against", str(EVIDENCE)]) == 4 else 1)

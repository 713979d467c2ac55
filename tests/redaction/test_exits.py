"""Every way out of the product, with a secret of every kind in every place that telemetry has: none is found behind it.

A new exit or a new place belongs into the tables here.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import re
import urllib.parse
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agentrec import InMemoryIoCaptureSink, JsonlIoCaptureSink, ingest, read_events, read_nodes, verify
from otel_agentrec.capture.configure import show_log
from otel_agentrec.capture.emit import agent_run
from otel_agentrec.capture.guard import log
from otel_agentrec.capture.otlp_json import decode
from otel_agentrec.capture.processors import AgentRecLogProcessor, AgentRecSpanProcessor
from otel_agentrec.capture.received import Receiver
from otel_agentrec.cli.app import run as command_line
from otel_agentrec.journal.append import append_events
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.store import FileEventStore
from otel_agentrec.redaction.marker import MARKER
from otel_agentrec.settings import Settings
from tests.redaction.secrets import DIGITS, KEPT, SHAPED

CONTENT = "detached", "inline"
STEM = "hunter"
BODIES = [secret[len(KEPT.get(kind, "")) :].split("@")[0] for kind, secret in SHAPED.items()]
SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Planted:
    """Hands out secrets, each another one; all that only their names tell begin alike."""

    def __init__(self) -> None:
        self._handed = 0

    def plain(self) -> str:
        """A secret that only its name tells."""
        self._handed += 1
        return f"{STEM}{self._handed:03d}-é{DIGITS[:9]}"

    def shaped(self) -> dict[str, str]:
        """Kind -> a text with a secret of that shape."""
        return dict(SHAPED)

    def text(self) -> str:
        """Text as tools and people write it, with secrets of many kinds."""
        p = self.plain
        return "\n".join(
            [
                f"Authorization: Bearer {p()}",
                f"Cookie: sid={p()}; theme=dark",
                f"GET https://user:{urllib.parse.quote(p())}@api.example.test/v1?key={urllib.parse.quote(p())}&q=1",
                f"export API_KEY={p()}",
                f'{{"password": {json.dumps(p())}, "nested": {json.dumps(json.dumps({"token": p()}))}}}',
                f"KeyError: {{'client_secret': '{p()}'}}",
                f"mysql --password {p()} -u me",
                *self.shaped().values(),
            ]
        )

    def value(self) -> Any:
        """A structured value with secrets under names, in pairs, in JSON text, in header lists and in keys."""
        p = self.plain
        return {
            "city": "Oslo",
            "headers": [["Accept", "*/*"], ["X-Api-Key", p()]],
            "pairs": [{"name": "Set-Cookie", "value": p()}],
            "auth": {"Authorization": f"Basic {p()}", "note": "keep me"},
            "nested": json.dumps({"refresh_token": p(), "deep": json.dumps({"pwd": p()})}),
            "argv": ["curl", "--token", p()],
            self.shaped()["openai"]: 1,
            "text": self.text(),
            "password": 4_711_000_815,
        }

    def found_in(self, data: bytes) -> list[str]:
        """Where a secret can be read from some bytes: as it is, escaped, encoded or compressed."""
        texts = [data]
        texts += [zlib.decompress(data[i:], 31) for i in _places(data, b"\x1f\x8b\x08")]
        flat = b"\n".join(texts)
        flat += b"\n" + re.sub(rb"\\+u00e9", "é".encode(), flat)  # JSON in JSON
        return [flat[max(0, at - 60) : at + 60].decode("utf-8", "replace") for at in map(flat.find, FORMS) if at >= 0]


def _places(data: bytes, magic: bytes) -> Iterator[int]:
    for found in re.finditer(re.escape(magic), data):
        try:
            zlib.decompress(data[found.start() :], 31)
        except zlib.error:
            continue
        yield found.start()


def _forms(secret: str) -> list[bytes]:
    raw = secret.encode()
    encoded = []
    for shift in range(3):
        body = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        encoded.append(body[(0, 2, 3)[shift] : len(body) - 1])
    utf16 = base64.b64encode(secret.encode("utf-16-be")).rstrip(b"=")[:-2]
    return [
        raw,
        json.dumps(secret)[1:-1].encode(),
        urllib.parse.quote(secret, safe="").encode(),
        raw.hex().encode(),
        utf16,
        *encoded,
        *(e.replace(b"+", b"-").replace(b"/", b"_") for e in encoded),
    ]


FORMS = list(dict.fromkeys(form for secret in (STEM, *BODIES) for form in _forms(secret)))


def test_the_search_sees_through_what_it_is_meant_to() -> None:
    planted = Planted()
    secret = planted.plain()
    for hidden in (
        secret.encode(),
        json.dumps({"a": json.dumps({"b": json.dumps(secret)})}).encode(),
        urllib.parse.quote(secret).encode(),
        *(base64.b64encode(b"x" * shift + secret.encode() + b"yy") for shift in range(3)),
        b"head" + gzip.compress(b"..." + secret.encode()) + b"tail",
        base64.b64encode(f"{secret}yy".encode("utf-16-be")),
    ):
        assert planted.found_in(hidden), hidden
    assert planted.found_in(b"nothing") == []


# --- places -----------------------------------------------------------------------------------------------------------


def message(role: str, *parts: Any) -> str:
    return json.dumps([{"role": role, "parts": list(parts)}])


def emit(tracer: trace.Tracer, logger: Any, p: Planted) -> None:
    """Spans of an agent with secrets in every place that a span, its events, links and logs have."""
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": p.shaped()["github"],
        "gen_ai.agent.id": p.text(),
    }
    session = {"gen_ai.conversation.id": f"session {p.shaped()['openai']}", "user.id": p.shaped()["jwt"]}
    with tracer.start_as_current_span(
        f"invoke_agent {p.shaped()['anthropic']}", attributes={**agent, **session}
    ) as span:
        span.set_attribute("agentrec.run.id", p.shaped()["slack"])
        elsewhere = trace.SpanContext(1, 2, True)
        link = trace.Link(elsewhere, {"client_secret": p.plain(), "text": p.text()})
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": p.shaped()["google"],
            "gen_ai.provider.name": "openai",
            "gen_ai.request.seed": 7,
            "gen_ai.request.extra_headers": json.dumps({"Authorization": p.plain()}),
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": p.text()}]),
            "gen_ai.tool.definitions": json.dumps(
                [
                    {
                        "type": "function",
                        "name": "t",
                        "parameters": {"properties": {"api_key": {"type": "string", "default": p.plain()}}},
                    }
                ]
            ),
            "gen_ai.input.messages": message(
                "user",
                {"type": "text", "content": p.text()},
                {"type": "tool_call", "id": p.shaped()["npm"], "name": "t", "arguments": p.value()},
                {"type": "tool_call_response", "id": "c1", "response": json.dumps(p.value())},
                {"type": "blob", "mime_type": "text/plain", "content": base64.b64encode(p.text().encode()).decode()},
            ),
            "gen_ai.output.messages": message(
                "assistant",
                {"type": "reasoning", "content": p.text()},
                {"type": "tool_call", "id": "c1", "name": "t", "arguments": json.dumps(p.value())},
            ),
            "gen_ai.response.id": p.shaped()["gitlab"],
            "http.request.header.authorization": [f"Bearer {p.plain()}"],
            "http.request.header.x-api-key": (p.plain(),),
            "url.full": f"https://u:{p.plain()}@api.example.test/v1?key={p.plain()}&q=1",
            "custom": json.dumps(p.value()),
            "db.statement": p.text(),
            "raw": p.text().encode(),
            "surrogate": "\ud800 password=" + p.plain(),
        }
        with tracer.start_as_current_span(f"chat {p.text()}", attributes=chat, links=[link]) as span:
            span.add_event("http.request", {"http.request.header.cookie": [p.plain()], "body": json.dumps(p.value())})
            logger.emit(
                LogRecord(
                    event_name="gen_ai.client.inference.operation.details",
                    attributes={
                        "gen_ai.tool.definitions": json.dumps([{"name": "t", "token": p.plain()}]),
                        "x": p.text(),
                    },
                )
            )
        tool = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": f"t {p.shaped()['stripe']}",
            "gen_ai.tool.call.id": p.shaped()["sendgrid"],
            "gen_ai.tool.call.arguments": json.dumps(p.value()),
            "gen_ai.tool.call.result": p.text(),
            "gen_ai.tool.description": p.text(),
        }
        with (
            pytest.raises(RuntimeError),
            tracer.start_as_current_span("execute_tool t", attributes=tool) as span,
        ):
            span.set_attribute("error.type", p.shaped()["hugging face"])
            raise RuntimeError(p.text())
        cut = json.dumps({"city": "Oslo", "password": p.plain()})[:-5]
        with tracer.start_as_current_span("execute_tool cut", attributes={**tool, "gen_ai.tool.call.arguments": cut}):
            pass
        with tracer.start_as_current_span(
            "retrieval", attributes={"gen_ai.operation.name": "retrieval", "q": p.text()}
        ):
            pass
        open_span = tracer.start_span(
            "chat m", attributes={**chat, "gen_ai.input.messages": message("user", p.value())}
        )
    logger.emit(
        LogRecord(
            event_name="gen_ai.evaluation.result",
            body=p.value(),
            attributes={"gen_ai.evaluation.explanation": p.text()},
        )
    )
    open_span.__class__  # noqa: B018 - kept open until the recorder is shut down


def resource(p: Planted) -> Resource:
    return Resource(
        {
            "service.name": "agent-demo",
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Basic {p.plain()},x-other=1",
            "api_key": p.plain(),
            "process.command_args": ["agent", "--token", p.plain()],
            "process.command_line": p.text(),
        }
    )


class ThrowingSink:
    """A sink whose exception quotes what it was not even given."""

    def __init__(self, text: str) -> None:
        self.text = text

    def capture(self, record: object) -> None:
        raise ValueError(self.text.splitlines()[0])

    def close(self) -> None:
        raise OSError(f"password={self.text.splitlines()[0].split()[-1]}")


class Recorded:
    """A recording with secrets planted everywhere, and what else came out while it was made."""

    def __init__(self, where: Path, content: str) -> None:
        self.planted = p = Planted()
        self.path, self.store = where / "rec", where / "store"
        self.memory = InMemoryIoCaptureSink()
        self.jsonl = where / "sink.jsonl"
        self.spans = InMemorySpanExporter()
        sinks = [self.memory, JsonlIoCaptureSink(self.jsonl), ThrowingSink(p.text())]
        provider = TracerProvider(resource=resource(p), shutdown_on_exit=False)
        processor = AgentRecSpanProcessor(self.path, sinks=sinks, content=content)
        provider.add_span_processor(processor)
        logs = LoggerProvider(resource=resource(p), shutdown_on_exit=False)
        logs.add_log_record_processor(AgentRecLogProcessor(processor))
        emit(provider.get_tracer("demo"), logs.get_logger("demo"), p)
        self.agent_sink = InMemoryIoCaptureSink()
        told = TracerProvider(resource=resource(p), shutdown_on_exit=False)
        told.add_span_processor(AgentRecSpanProcessor(recorder=processor.recorder))
        told.add_span_processor(SimpleSpanProcessor(self.spans))
        self.heard: list[Any] = []
        with agent_run(
            "a", listeners=[self.agent_sink, self.heard.append], input=p.text(), tracer_provider=told
        ) as run:
            with run.step() as step:
                with step.model_call(p.text(), model="m") as call:
                    call.retry(RuntimeError(p.text()))
                    call.reasoning(p.text())
                    call.response(p.value())
                with pytest.raises(KeyError), step.tool_call("t", p.value(), call_id="c1"):
                    raise KeyError(p.text())
                with step.tool_call("t", json.dumps(p.value()), call_id="c2") as call:
                    call.result(p.value())
            run.final_output(p.text())
        self.stats = processor.recorder.stats()
        log.debug("trouble: %s", p.text(), exc_info=RuntimeError(p.text()))
        processor.recorder.shutdown()
        append_events(
            self.path,
            [NewEvent("EVALUATED", {"recordId": "r", "name": "n", "explanation": p.text()})],
            origin="o",
            by="t",
        )
        FileEventStore(self.store).append(
            "s1", [NewEvent("USER_MESSAGE_APPENDED", {"message": p.value(), "text": p.text()})]
        )


@pytest.fixture(scope="module", params=CONTENT)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "SPAN_ONLY")
        yield Recorded(tmp_path_factory.mktemp("exits"), request.param)


def on_disk(path: Path) -> bytes:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    assert files
    return b"\n".join(file.name.encode() + b"\n" + file.read_bytes() for file in files)


# --- exits ------------------------------------------------------------------------------------------------------------


def in_process(recorded: Recorded) -> dict[str, Any]:
    """Exits that hand out objects."""
    return {
        "sink in memory": [record.to_json() for record in recorded.memory.records()],
        "sink of an agent_run": [record.to_json() for record in recorded.agent_sink.records()],
        "read_nodes": [record.to_json() for record in read_nodes(recorded.path)],
        "read_events": [[event.payload, event.run, event.session, event.turn] for event in read_events(recorded.path)],
        "verify": verify(recorded.path).to_json(),
        "stats": recorded.stats,
        "spans of agent_run": [json.loads(span.to_json()) for span in recorded.spans.get_finished_spans()],
    }


EXITS = (
    "sink in memory", "sink of an agent_run", "read_nodes", "read_events", "verify", "stats", "spans of agent_run",
)  # fmt: skip
NOTHING_SEEN = ("verify", "stats")


@pytest.mark.parametrize("exit", EXITS)
def test_no_object_that_is_handed_out_holds_a_secret(recorded: Recorded, exit: str) -> None:
    given = in_process(recorded)
    assert set(given) == set(EXITS)
    data = json.dumps(given[exit], default=str, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if exit == "spans of agent_run":  # the resource is the program's own, not ours to change
        for span in given[exit]:
            span.pop("resource")
        data = json.dumps(given[exit]).encode()
    assert recorded.planted.found_in(data) == []
    if exit not in NOTHING_SEEN:
        assert MARKER.search(data.decode("utf-8", "surrogatepass"))


def test_no_byte_on_disk_holds_a_secret(recorded: Recorded) -> None:
    data = on_disk(recorded.path) + on_disk(recorded.store) + on_disk(recorded.jsonl)
    assert recorded.planted.found_in(data) == []
    assert {file.suffix for file in recorded.path.rglob("*") if file.is_file()} == {".jsonl", ".key", ""}
    for stays in (b"Oslo", b"keep me", b"q=1", b"api.example.test", b"theme"):
        assert (stays in data) == (stays != b"theme")


def test_what_was_recorded_is_whole(recorded: Recorded) -> None:
    """Redaction takes secrets out of records, it loses none; and the chain holds."""
    assert verify(recorded.path).is_valid
    records = list(read_nodes(recorded.path))
    assert len([r for r in records if r.node_type.value == "MODEL"]) == 3
    assert len([r for r in records if r.node_type.value == "TOOL"]) >= 4
    types = {event.type for event in read_events(recorded.path)}
    assert {
        "PROVIDER_SEEN",
        "RUN_ENDED",
        "NODE_RECORDED",
        "NODE_INTERRUPTED",
        "STEP_ENDED",
        "REQUEST_HEADER",
        "LOG_RECORDED",
        "EVALUATED",
    } <= types
    assert recorded.stats["redacted.password"] > 10
    assert "redacted.withheld" not in recorded.stats


def test_a_listener_hears_what_the_program_itself_holds(recorded: Recorded) -> None:
    assert recorded.planted.found_in(json.dumps(recorded.heard, default=str).encode())


@pytest.mark.parametrize(
    "words",
    [
        ["nodes", "{rec}", "--json"],
        ["nodes", "{rec}"],
        ["runs", "{rec}", "--json"],
        ["runs", "{rec}"],
        ["show", "{rec}", "{run}"],
        ["show", "{rec}", "{run}", "--json"],
        ["stats", "{rec}"],
        ["stats", "{rec}", "--json"],
        ["verify", "{rec}", "--json"],
    ],
    ids=" ".join,
)
def test_no_command_prints_a_secret(recorded: Recorded, words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    run = next(r.run_id for r in read_nodes(recorded.path) if r.tool_name)
    command_line([word.format(rec=recorded.path, run=run) for word in words])
    out, err = capfd.readouterr()
    assert out
    assert recorded.planted.found_in((out + err).encode("utf-8", "surrogatepass")) == []


@pytest.mark.usefixtures("own_log")
def test_nothing_that_is_said_on_stderr_holds_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SWITCH, "SPAN_ONLY")
    show_log("debug")
    recorded = Recorded(tmp_path, "detached")
    _, err = capfd.readouterr()
    assert "otel-agentrec: ValueError in a sink" in err
    assert "trouble:" in err
    assert MARKER.search(err)
    assert recorded.planted.found_in(err.encode()) == []


@pytest.fixture
def own_log() -> Iterator[None]:
    handlers, level = list(log.handlers), log.level
    yield
    log.handlers[:] = handlers
    log.setLevel(level or logging.NOTSET)


def test_ingest_lets_no_secret_through_either(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    planted = Planted()
    spans = InMemorySpanExporter()
    provider = TracerProvider(resource=resource(planted), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    emit(provider.get_tracer("demo"), LoggerProvider(shutdown_on_exit=False).get_logger("demo"), planted)
    source = tmp_path / "traces.jsonl"
    finished = [s for s in spans.get_finished_spans() if "surrogate" not in (s.attributes or {})]
    source.write_bytes(encode_spans(finished).SerializeToString())
    report = ingest(source, tmp_path / "rec")
    assert report.tools == 2
    assert planted.found_in(on_disk(tmp_path / "rec")) == []
    lines = [
        json.dumps({"resourceSpans": [{"password": planted.plain(), "scopeSpans": planted.text()}]}),
        planted.text(),
    ]
    source.write_text("\n".join([lines[0], *lines[1].splitlines()]))
    command_line(["ingest", str(source), "--out", str(tmp_path / "rec2"), "--json"])
    out, err = capfd.readouterr()
    assert planted.found_in((out + err).encode()) == []


def test_what_is_received_passes_the_gate_too(tmp_path: Path) -> None:
    planted = Planted()
    spans = InMemorySpanExporter()
    provider = TracerProvider(resource=resource(planted), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    emit(provider.get_tracer("demo"), LoggerProvider(shutdown_on_exit=False).get_logger("demo"), planted)
    finished = [s for s in spans.get_finished_spans() if "surrogate" not in (s.attributes or {})]
    receiver = Receiver(tmp_path / "rec", Settings.load())
    receiver.take(decode(json.loads(json_format.MessageToJson(encode_spans(finished)))))
    receiver.close()
    assert [r.node_type.value for r in read_nodes(tmp_path / "rec")].count("TOOL") == 2
    assert planted.found_in(on_disk(tmp_path / "rec")) == []


@pytest.mark.parametrize("durability", ["written", "fsync", "deferred"])
def test_no_mode_of_writing_goes_around_the_gate(tmp_path: Path, durability: str) -> None:
    planted = Planted()
    provider = TracerProvider(resource=resource(planted), shutdown_on_exit=False)
    processor = AgentRecSpanProcessor(tmp_path / "rec", durability=durability, segment_bytes=20_000)
    provider.add_span_processor(processor)
    logger = LoggerProvider(shutdown_on_exit=False).get_logger("demo")
    for _ in range(2):
        emit(provider.get_tracer("demo"), logger, planted)
    processor.recorder.shutdown()
    assert planted.found_in(on_disk(tmp_path / "rec")) == []
    assert len(list((tmp_path / "rec").glob("*.jsonl"))) > 3, "several segments"


def test_a_rule_that_fails_lets_nothing_through(tmp_path: Path) -> None:
    def fails(value: Any) -> Any:
        raise RuntimeError(str(value))

    planted = Planted()
    provider = TracerProvider(shutdown_on_exit=False)
    sink = InMemoryIoCaptureSink()
    processor = AgentRecSpanProcessor(tmp_path / "rec", redact=fails, sinks=[sink])
    provider.add_span_processor(processor)
    emit(provider.get_tracer("demo"), LoggerProvider(shutdown_on_exit=False).get_logger("demo"), planted)
    processor.recorder.shutdown()
    assert planted.found_in(on_disk(tmp_path / "rec")) == []
    assert b"Oslo" not in on_disk(tmp_path / "rec"), "not even what is no secret"
    assert verify(tmp_path / "rec").is_valid
    records = list(read_nodes(tmp_path / "rec"))
    assert [r.node_type.value for r in records].count("MODEL") == 2
    assert processor.recorder.stats()["redacted.withheld"] > 10
    assert len(sink.records()) == len(records)


def test_off_is_off(tmp_path: Path) -> None:
    planted = Planted()
    provider = TracerProvider(shutdown_on_exit=False)
    processor = AgentRecSpanProcessor(tmp_path / "rec", redact="off")
    provider.add_span_processor(processor)
    emit(provider.get_tracer("demo"), LoggerProvider(shutdown_on_exit=False).get_logger("demo"), planted)
    processor.recorder.shutdown()
    assert len(planted.found_in(on_disk(tmp_path / "rec"))) > len(SHAPED)

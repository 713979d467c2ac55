"""Each file of collector-config/ in a real Collector: it is valid, starts as it stands, and delivers what it says."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otel_agentrec.cli.app import run
from otel_agentrec.journal.stamps import stamp_of
from tests.capture.forward.sinks import HttpSink
from tests.servers import built
from tests.servers.collector import Collector, components, validate
from tests.servers.conftest import CARD, MAIL
from tests.servers.feeding import event_texts, events_in, export, spans_in, stamps, wait_for
from tests.servers.jaeger import Jaeger
from tests.servers.kafka import PARTITIONS, Kafka, Message

pytestmark = pytest.mark.servers

NOT_OF_A_COLLECTOR = {"builder.yaml", "compose.yaml", "jaeger-server.yaml"}
CONFIGS = sorted(path.name for path in built.CONFIGS.glob("*.yaml") if path.name not in NOT_OF_A_COLLECTOR)
SERVICE = "unknown_service:python"
"""The demo's agent has no ``service.name``, so the SDK gives it this one."""
EVIDENCE = Path("evidence") / "otlp.jsonl"

Start = Callable[..., Collector]


@pytest.mark.parametrize("name", CONFIGS)
def test_it_is_valid(name: str) -> None:
    assert validate(built.CONFIGS / name) == ""


@pytest.mark.parametrize(
    ("name", "right", "wrong", "said"),
    [
        ("jaeger.yaml", "otlp_http/jaeger: #", "otlp_htp/jaeger: #", "otlp_htp"),
        ("evidence-file.yaml", "append: true", "apend: true", "apend"),
        ("redaction.yaml", "processors: [memory_limiter, redaction/viewers]", "processors: [redaction]", '"redaction"'),
        ("gateway-agent.yaml", "routing_key: traceID", "routing_key: traceid", "traceid"),
        ("kafka.yaml", "required_acks: all", "required_acks: every", "required_acks"),
    ],
)
def test_a_typo_is_found(name: str, right: str, wrong: str, said: str, tmp_path: Path) -> None:
    text = (built.CONFIGS / name).read_text("utf-8")
    assert text.count(right) == 1
    (tmp_path / name).write_text(text.replace(right, wrong), encoding="utf-8")
    assert said in validate(tmp_path / name)


def test_the_builder_names_exactly_what_the_files_use() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    for name in CONFIGS:
        section = ""
        for line in (built.CONFIGS / name).read_text("utf-8").splitlines():
            if found := re.fullmatch(r"(\w+):", line):
                section = found[1]
            elif (found := re.match(r"  (\w+)(?:/\w+)?:", line)) and section != "service":
                used[section].add(found[1])
    assert components() == used


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_jaeger_gets_all_spans_with_all_that_they_say(
    protocol: str, demo: Path, collector: Start, jaeger: Jaeger
) -> None:
    one = collector("jaeger.yaml", JAEGER_OTLP=jaeger.otlp_url)
    sent = export(demo, one.http_url if protocol == "http" else one.grpc_url, "--again")
    spans = jaeger.wait_for(SERVICE, sent)

    assert len(spans) == sent == 5
    assert {stamp_of(span["attributes"]) for span in spans} == stamps(demo)
    by_operation = defaultdict(list)
    for span in spans:
        by_operation[span["attributes"]["gen_ai.operation.name"]].append(span["attributes"])
    assert {name: len(found) for name, found in by_operation.items()} == {
        "invoke_agent": 1,
        "chat": 2,
        "execute_tool": 2,
    }
    assert any("21:42" in chat["gen_ai.output.messages"] for chat in by_operation["chat"])
    assert all("near Oslo" in chat["gen_ai.input.messages"] for chat in by_operation["chat"])
    assert all(
        chat["gen_ai.usage.input_tokens"] > 0 < chat["gen_ai.usage.output_tokens"] for chat in by_operation["chat"]
    )
    assert all("last_train" in chat["gen_ai.tool.definitions"] for chat in by_operation["chat"])
    tools = {tool["gen_ai.tool.name"]: tool for tool in by_operation["execute_tool"]}
    assert "21:42" in tools["last_train"]["gen_ai.tool.call.result"] == tools["last_train"]["output.value"]
    assert "Finse" in tools["weather"]["gen_ai.tool.call.arguments"] == tools["weather"]["input.value"]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_evidence_file_has_each_span_and_event_once_and_goes_on_after_a_restart(
    protocol: str, demo: Path, many: Path, collector: Start
) -> None:
    one = collector("evidence-file.yaml")
    file = one.directory / EVIDENCE
    sent = export(demo, one.http_url if protocol == "http" else one.grpc_url, "--again")
    export(demo, one.http_url, "--again", "--events")
    one.stop()
    first = file.read_bytes()
    assert len(spans_in(file)) == sent

    one.start()
    sent += export(many, one.http_url if protocol == "http" else one.grpc_url, "--again")
    one.stop()
    assert file.read_bytes().startswith(first)
    spans = spans_in(file)
    assert len(spans) == len({(span["traceId"], span["spanId"]) for span in spans}) == sent
    assert {stamp_of(span["attributes"]) for span in spans} == stamps(demo) | stamps(many)
    texts = event_texts(demo)
    assert {place: text for place, text in events_in(file).items() if place in texts} == texts


def test_what_was_kept_is_verified_and_a_changed_byte_or_another_recording_contradicts_it(
    demo: Path, many: Path, collector: Start, jaeger: Jaeger, tmp_path: Path
) -> None:
    one = collector("redaction.yaml", JAEGER_OTLP=jaeger.otlp_url)
    sent = export(demo, one.http_url, "--again")
    export(demo, one.http_url, "--again", "--events")
    jaeger.wait_for(SERVICE, sent)
    one.stop()
    file, answer = one.directory / EVIDENCE, tmp_path / "jaeger.json"
    answer.write_bytes(jaeger.answer(SERVICE))

    assert run(["verify", str(file)]) == 0
    for kept in (file, answer):
        assert run(["verify", str(demo), "--against", str(kept)]) == 0
        assert run(["verify", str(many), "--against", str(kept)]) == 4
    data = file.read_bytes()
    at = data.index(b"NODE_RECORDED")
    (tmp_path / "changed.jsonl").write_bytes(data[:at] + b"M" + data[at + 1 :])
    assert run(["verify", str(tmp_path / "changed.jsonl")]) == 1


def test_what_was_taken_before_a_kill_is_in_the_evidence_file(demo: Path, collector: Start) -> None:
    one = collector("evidence-file.yaml")
    sent = export(demo, one.http_url, "--again")
    file = one.directory / EVIDENCE
    assert len(wait_for(lambda: spans_in(file), lambda found: len(found) >= sent, 15)) == sent  # flush_interval: 1s
    one.kill()
    one.start()
    assert len(spans_in(file)) == sent


def test_the_redacted_leg_has_no_personal_data_and_the_evidence_all_of_it(
    demo: Path, collector: Start, jaeger: Jaeger
) -> None:
    one = collector("redaction.yaml", JAEGER_OTLP=jaeger.otlp_url)
    sent = export(demo, one.http_url, "--again")
    seen = jaeger.wait_for(SERVICE, sent)
    one.stop()
    kept = spans_in(one.directory / EVIDENCE)
    for secret in (CARD, MAIL):
        assert secret in str(kept) and secret not in jaeger.answer(SERVICE).decode()
    assert any("****" in span["attributes"].get("gen_ai.input.messages", "") for span in seen)
    assert (
        {stamp_of(span["attributes"]) for span in seen}
        == {stamp_of(span["attributes"]) for span in kept}
        == stamps(demo)
    )


def test_langfuse_gets_what_its_api_asks_for(demo: Path, collector: Start, hosted: HttpSink) -> None:
    secret = b64encode(b"pk-lf-1:sk-lf-1").decode()
    one = collector("langfuse.yaml", LANGFUSE_HOST=hosted.url, LANGFUSE_AUTH=secret)
    sent = export(demo, one.http_url, "--again")
    assert len(hosted.wait_for(sent)) == sent
    for request in hosted.came:
        assert request.path == "/api/public/otel/v1/traces"
        assert request.headers["authorization"] == f"Basic {secret}"
        assert request.headers["x-langfuse-ingestion-version"] == "4"
        assert request.headers["content-type"] == "application/x-protobuf"
    names = {attribute.key for span in hosted.spans for attribute in span.attributes}
    assert {"gen_ai.input.messages", "langfuse.observation.metadata.agentrec_hash"} <= names


def test_what_langfuse_refuses_is_counted(demo: Path, collector: Start, hosted: HttpSink) -> None:
    one = collector("langfuse.yaml", LANGFUSE_HOST=hosted.url)

    def count(name: str) -> float:
        return one.metric(f"otelcol_exporter_{name}_spans", exporter="otlp_http/langfuse")

    sent = export(demo, one.http_url, "--again")
    assert wait_for(lambda: count("sent"), lambda number: number >= sent) == sent
    hosted.status = 400
    export(demo, one.http_url, "--again")
    assert wait_for(lambda: count("send_failed"), lambda number: number >= sent) == sent
    assert count("sent") == sent


def test_what_langfuse_did_not_take_waits_through_a_restart(demo: Path, collector: Start, hosted: HttpSink) -> None:
    hosted.status = 503
    one = collector("langfuse.yaml", LANGFUSE_HOST=hosted.url)
    sent = export(demo, one.http_url, "--again")
    hosted.wait_for(sent)
    one.kill()
    hosted.came.clear()
    hosted.status = 200
    one.start()
    found = {span.span_id for span in hosted.wait_for(sent)}
    assert len(found) == sent


def test_all_in_one_serves_each_as_it_should(demo: Path, collector: Start, jaeger: Jaeger, hosted: HttpSink) -> None:
    one = collector("all-in-one.yaml", JAEGER_OTLP=jaeger.otlp_url, LANGFUSE_HOST=hosted.url)
    sent = export(demo, one.grpc_url, "--again")
    export(demo, one.http_url, "--again", "--events")
    assert len(jaeger.wait_for(SERVICE, sent)) == len(hosted.wait_for(sent)) == sent
    one.stop()
    file = one.directory / EVIDENCE
    assert {stamp_of(span["attributes"]) for span in spans_in(file)} == stamps(demo)
    assert event_texts(demo).items() <= events_in(file).items()
    for secret in (CARD, MAIL):
        assert secret in file.read_text("utf-8")
        assert secret not in jaeger.answer(SERVICE).decode()
        assert all(secret.encode() not in request.body for request in hosted.came)


def test_the_largest_span_gets_through_to_jaeger_and_the_evidence(
    large: Path, collector: Start, jaeger: Jaeger
) -> None:
    one = collector("redaction.yaml", JAEGER_OTLP=jaeger.otlp_url)
    export(large, one.grpc_url, "--again")
    (shown,) = jaeger.wait_for("large", 1)
    assert len(shown["attributes"]["output.value"]) == 8_000_000
    one.stop()
    assert {stamp_of(span["attributes"]) for span in spans_in(one.directory / EVIDENCE)} == stamps(large)


def test_the_largest_span_gets_through_to_langfuse(large: Path, collector: Start, hosted: HttpSink) -> None:
    one = collector("langfuse.yaml", LANGFUSE_HOST=hosted.url)
    export(large, one.http_url, "--again")
    (sent,) = hosted.wait_for(1)
    assert sent.ByteSize() > 16_000_000


def test_each_trace_goes_to_one_gateway_and_viewers_get_the_sample(
    many: Path, demo: Path, large: Path, collector: Start, jaeger: Jaeger
) -> None:
    sampled = {"JAEGER_OTLP": jaeger.otlp_url, "SAMPLING_WAIT": "1s", "SAMPLING_PERCENT": "0"}
    gateways = [collector("gateway.yaml", f"gateway-{number}", **sampled) for number in (1, 2)]
    agent = collector("gateway-agent.yaml", "agent", GATEWAYS=str([f"127.0.0.1:{one.grpc_port}" for one in gateways]))
    sent = sum(export(one, agent.grpc_url, "--again") for one in (many, demo, large))
    export(demo, agent.http_url, "--again", "--events")
    files = [one.directory / EVIDENCE for one in gateways]
    kept = wait_for(lambda: [spans_in(file) for file in files], lambda found: sum(map(len, found)) >= sent)
    events = wait_for(lambda: [events_in(file) for file in files], lambda found: any(found))

    traces = [{span["traceId"] for span in spans} for spans in kept]
    assert all(traces) and not traces[0] & traces[1]
    found = {stamp_of(span["attributes"]) for spans in kept for span in spans}
    assert (sum(map(len, kept)), found) == (sent, stamps(many) | stamps(demo) | stamps(large))
    assert {place: text for one in events for place, text in one.items()} == event_texts(demo)
    assert sum(map(bool, events)) == 1

    failed = {span["traceId"] for spans in kept for span in spans if span.get("status", {}).get("code") == 2}
    wanted = {span["spanId"] for spans in kept for span in spans if span["traceId"] in failed}
    shown = wait_for(
        lambda: [span for name in jaeger.services() for span in jaeger.spans(name)],
        lambda seen: len(seen) >= len(wanted),
    )
    assert 0 < len(wanted) < sent
    assert {span["spanId"] for span in shown} == wanted


def test_kafka_gets_each_signal_in_its_topic_and_each_trace_in_one_partition(
    many: Path, demo: Path, large: Path, collector: Start, kafka: Kafka
) -> None:
    one = collector("kafka.yaml", KAFKA_BROKERS=f"[{kafka.broker}]")  # while the broker is away
    sent = sum(export(recording, one.http_url, "--again") for recording in (many, demo, large))
    export(demo, one.http_url, "--again", "--events")
    kafka.start()

    def received() -> list[tuple[Message, Span]]:
        return [
            (message, span)
            for message in kafka.messages("otlp_spans", 1)
            for resource in ExportTraceServiceRequest.FromString(message.value).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def texts() -> set[str]:
        return {
            record.body.string_value
            for message in kafka.messages("otlp_logs", 1)
            for resource in ExportLogsServiceRequest.FromString(message.value).resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        }

    found = wait_for(received, lambda spans: len(spans) >= sent, 120)
    assert len(found) == len({span.span_id for _, span in found}) == sent
    partitions = defaultdict(set)
    for message, span in found:
        assert message.key == span.trace_id.hex().encode()
        partitions[message.key].add(message.partition)
    assert all(len(places) == 1 for places in partitions.values())
    assert 1 < len({message.partition for message, _ in found}) <= PARTITIONS
    hashes = {
        value.value.string_value for _, span in found for value in span.attributes if value.key == "agentrec.hash"
    }
    assert hashes == {stamp.hash for stamp in stamps(many) | stamps(demo) | stamps(large)}
    wanted = set(event_texts(demo).values())
    assert wait_for(texts, wanted.issubset) == wanted

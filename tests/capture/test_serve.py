"""The OTLP receiver behind real sockets: real exporters in, a recording out; one sender never sees another's error."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from otel_agentrec import read_events, read_nodes, verify
from otel_agentrec.capture.received import Receiver
from otel_agentrec.capture.serving import Access, Servers
from otel_agentrec.errors import AgentRecError
from otel_agentrec.settings import Settings

uvicorn = pytest.importorskip("uvicorn")
ROOT = Path(__file__).parents[2]
SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "name": "execute_tool t",
    "startTimeUnixNano": "1767225600000000000",
    "endTimeUnixNano": "1767225600010000000",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.call.id", "value": {"stringValue": "c1"}},
    ],
}


def body(*spans: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}).encode()


class Served:
    def __init__(self, out: Path, **access: Any) -> None:
        self.out = out
        self.receiver = Receiver(out, Settings.load())
        self.servers = Servers(self.receiver, "127.0.0.1", 0, 0, Access(**access))

    def post(self, data: bytes, path: str = "/v1/traces", **headers: str) -> tuple[int, Any, dict[str, str]]:
        says = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        request = urllib.request.Request(f"http://127.0.0.1:{self.servers.port}{path}", data, says)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, _json(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, _json(error.read()), dict(error.headers)

    def nodes(self) -> list[Any]:
        self.servers.stop()
        return list(read_nodes(self.out))


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path / "rec")
    yield made
    made.servers.stop()


def exporter(served: Served, kind: str, **more: Any) -> SpanExporter:
    if kind == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc(endpoint=f"127.0.0.1:{served.servers.grpc_port}", insecure=True, timeout=5, **more)
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    how = Compression.Gzip if kind == "gzip" else Compression.NoCompression
    return Http(endpoint=f"http://127.0.0.1:{served.servers.port}/v1/traces", compression=how, timeout=5, **more)


@pytest.mark.parametrize("kind", ["http", "gzip", "grpc"])
def test_real_exporters_are_recorded(served: Served, kind: str) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter(served, kind)))
    tracer = provider.get_tracer("demo")
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.conversation.id": "c"}
    with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for n in range(3):
            with tracer.start_as_current_span("chat m", attributes={**chat, "gen_ai.response.id": f"r{n}"}):
                pass
    provider.shutdown()
    found = served.nodes()
    assert [r.response_id for r in found] == ["r0", "r1", "r2"]
    assert len({r.run_id for r in found}) == 1 and found[0].session_id == "c"
    assert verify(served.out).exit_code == 0


def test_json_and_gzip_and_chunks(served: Served) -> None:
    assert served.post(body(SPAN))[:2] == (200, {})
    second = {**SPAN, "spanId": "b7ad6b7169203332"}
    assert served.post(gzip.compress(body(second)), content_encoding="gzip")[:2] == (200, {})
    assert len(served.nodes()) == 2


def test_who_connects_before_the_server_has_come_up_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[socket.socket] = []
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: held.extend(sockets))
    served = Served(tmp_path / "rec")
    try:
        socket.create_connection(("127.0.0.1", served.servers.port), timeout=5).close()
    finally:
        served.servers.stop()
        for one in held:
            one.close()


def test_retries_of_http_children_and_logs_that_come_first(served: Served) -> None:
    model = {
        **SPAN,
        "name": "chat m",
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
    }
    attempts = [
        {
            **SPAN,
            "spanId": f"000000000000000{n}",
            "parentSpanId": SPAN["spanId"],
            "name": "POST",
            "kind": 3,
            "attributes": [
                {"key": "http.request.method", "value": {"stringValue": "POST"}},
                {"key": "http.response.status_code", "value": {"intValue": str(status)}},
            ],
        }
        for n, status in ((1, 429), (2, 200))
    ]
    said = {
        "traceId": SPAN["traceId"],
        "spanId": SPAN["spanId"],
        "eventName": "gen_ai.choice",
        "observedTimeUnixNano": "1767225600005000000",
        "body": {
            "kvlistValue": {
                "values": [
                    {"key": "index", "value": {"intValue": "0"}},
                    {"key": "finish_reason", "value": {"stringValue": "stop"}},
                    {
                        "key": "message",
                        "value": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "hello"}}]}},
                    },
                ]
            }
        },
    }
    logs = {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "s"}, "logRecords": [said]}]}]}
    assert served.post(json.dumps(logs).encode(), "/v1/logs")[0] == 200
    assert served.post(body(*attempts))[0] == 200
    assert served.post(body(model))[0] == 200
    (record,) = served.nodes()
    assert record.retry_count == 1
    assert record.output_text == "hello"


def test_a_log_whose_span_never_comes_is_recorded_as_it_is(served: Served) -> None:
    said = {
        "traceId": SPAN["traceId"],
        "spanId": SPAN["spanId"],
        "eventName": "gen_ai.choice",
        "body": {"stringValue": "x"},
    }
    logs = {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "s"}, "logRecords": [said]}]}]}
    assert served.post(json.dumps(logs).encode(), "/v1/logs")[0] == 200
    served.servers.stop()
    assert [e.type for e in read_events(served.out) if e.type == "LOG_RECORDED"] == ["LOG_RECORDED"]


@pytest.mark.parametrize(
    ("data", "headers", "status", "says"),
    [
        (b"{", {}, 400, "no JSON"),
        (b"\xff\xfe{", {}, 400, "not UTF-8"),
        (b"[]", {}, 400, "no OTLP"),
        (b"{}", {"content_type": "text/plain"}, 415, "text/plain"),
        (b"{}", {"content_encoding": "gzip"}, 400, "not gzip"),
        (b"{}", {"content_encoding": "br"}, 400, "br"),
        (b"\xff" * 50, {"content_type": "application/x-protobuf"}, 400, None),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(
    served: Served, data: bytes, headers: dict[str, str], status: int, says: str | None
) -> None:
    got, answer, _ = served.post(data, **headers)
    assert got == status
    assert says is None or says in answer["message"]
    assert served.post(body(SPAN))[0] == 200, "the next one is not affected"


def test_one_bad_span_is_a_partial_success(served: Served) -> None:
    bad = {**SPAN, "traceId": "zz"}
    status, answer, _ = served.post(body(SPAN, bad))
    assert status == 200
    assert answer["partialSuccess"]["rejectedSpans"] == "1" and answer["partialSuccess"]["errorMessage"]
    assert len(served.nodes()) == 1


def test_metrics_are_taken_and_other_paths_are_not(served: Served) -> None:
    assert served.post(b'{"resourceMetrics":[]}', "/v1/metrics")[0] == 200
    assert served.post(b"{}", "/v2/traces")[0] == 404
    with urllib.request.urlopen(f"http://127.0.0.1:{served.servers.port}/healthz", timeout=5) as answer:
        assert json.load(answer)["status"] == "ok"


@pytest.mark.parametrize("packed", [False, True])
def test_a_large_body_is_refused_before_it_is_held(tmp_path: Path, packed: bool) -> None:
    served = Served(tmp_path / "rec", max_body=100_000)
    large = body({**SPAN, "name": "x" * 200_000})
    headers = {"content_encoding": "gzip"} if packed else {}
    status, answer, _ = served.post(gzip.compress(large) if packed else large, **headers)
    assert status == 413 and "100000" in answer["message"]
    assert served.post(body(SPAN))[0] == 200
    served.servers.stop()


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    served = Served(tmp_path / "rec", token="s3cret")
    assert served.post(body(SPAN))[0] == 401
    assert served.post(body(SPAN), authorization="Bearer wrong")[0] == 401
    assert served.post(body(SPAN), authorization="Bearer s3cret")[0] == 200
    provider = TracerProvider()
    for header in ("Bearer wrong", "Bearer s3cret"):
        provider.add_span_processor(SimpleSpanProcessor(exporter(served, "grpc", headers={"authorization": header})))
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "by grpc"}
    provider.get_tracer("demo").start_span("execute_tool t", attributes=attributes).end()
    provider.shutdown()
    assert [r.tool_call_id for r in served.nodes()] == ["c1", "by grpc"]


def test_when_it_cannot_be_written_the_sender_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(tmp_path / "rec")
    assert served.post(body(SPAN))[0] == 200

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("otel_agentrec.journal.named.os.write", full)
    status, answer, headers = served.post(body({**SPAN, "spanId": "00000000000000aa"}))
    monkeypatch.undo()
    assert status == 503 and headers["retry-after"] == "1" and "again" in answer["message"]
    assert served.post(body({**SPAN, "spanId": "00000000000000aa"}))[0] == 200
    assert len(served.nodes()) == 2


def test_many_senders_at_once_each_get_their_own_answer(served: Served) -> None:
    def send(n: int) -> int:
        if n % 5 == 0:
            return served.post(b"{broken")[0]
        return served.post(body({**SPAN, "spanId": f"{n:016x}", "traceId": f"{n:032x}"}))[0]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(1, 101)))
    assert [a for n, a in enumerate(answers, 1) if n % 5 == 0] == [400] * 20
    assert [a for n, a in enumerate(answers, 1) if n % 5] == [200] * 80
    assert len(served.nodes()) == 80
    assert verify(served.out).exit_code == 0


def test_too_many_at_once_are_asked_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agentrec.capture.serving.MAX_WAITING", 2)
    served = Served(tmp_path / "rec")
    held, entered = threading.Event(), threading.Semaphore(0)
    take = served.receiver.take

    def slow_take(batch: Any) -> Any:
        entered.release()
        held.wait(10)
        return take(batch)

    monkeypatch.setattr(served.receiver, "take", slow_take)
    with ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(served.post, body({**SPAN, "spanId": f"{n:016x}"})) for n in (1, 2)]
        assert entered.acquire(timeout=10) and entered.acquire(timeout=10)
        status, _, headers = served.post(body(SPAN))
        held.set()
        assert (status, headers["retry-after"]) == (503, "1")
        assert [s.result()[0] for s in slow] == [200, 200]
    served.servers.stop()


def test_too_many_at_once_over_grpc_are_asked_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UNAVAILABLE: what every exporter sends again. It does not so with RESOURCE_EXHAUSTED, which gRPC says by itself."""
    import grpc
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    monkeypatch.setattr("otel_agentrec.capture.serving.MAX_WAITING", 5)
    served = Served(tmp_path / "rec")
    held, entered = threading.Event(), threading.Semaphore(0)
    take = served.receiver.take

    def slow_take(batch: Any) -> Any:
        entered.release()
        held.wait(10)
        return take(batch)

    monkeypatch.setattr(served.receiver, "take", slow_take)
    path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    with grpc.insecure_channel(f"127.0.0.1:{served.servers.grpc_port}") as channel:
        export = channel.unary_unary(path, request_serializer=ExportTraceServiceRequest.SerializeToString)
        first = [export.future(ExportTraceServiceRequest(), timeout=20) for _ in range(4)]
        for _ in first:
            assert entered.acquire(timeout=10)
        more = [export.future(ExportTraceServiceRequest(), timeout=20) for _ in range(12)]
        deadline = time.monotonic() + 10
        while served.servers._pool.waiting < 16 and time.monotonic() < deadline:
            time.sleep(0.01)
        held.set()
        codes = [call.code() for call in (*first, *more)]
    served.servers.stop()
    assert codes[:4] == [grpc.StatusCode.OK] * 4
    assert set(codes[4:]) == {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}


def test_an_address_that_is_taken_is_named(served: Served, tmp_path: Path) -> None:
    receiver = Receiver(tmp_path / "other", Settings.load())
    for port, grpc_port in ((served.servers.port, None), (None, served.servers.grpc_port)):
        with pytest.raises(AgentRecError, match="can't be listened on"):
            Servers(receiver, "127.0.0.1", port, grpc_port, Access())


def start(*words: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "otel_agentrec", "serve", "--port", "0", "--grpc-port", "0", *words]
    child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert child.stderr
    return child, child.stderr.readline()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_closes_the_recording_when_it_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    child, line = start("--out", str(tmp_path / "rec"))
    port = int(line.split("127.0.0.1:")[1].split()[0])
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/traces", body(SPAN), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
    child.send_signal(number)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 0 and "1 spans" in err
    assert verify(tmp_path / "rec").exit_code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--host", "0.0.0.0"], "no token"),
        (["--token-file", "/nowhere"], "can't be read"),
        (["--tls-cert", "x.pem"], "its key"),
        (["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], "TLS"),
    ],
)
def test_the_command_refuses_what_is_not_safe_or_not_there(tmp_path: Path, words: list[str], says: str) -> None:
    child, line = start("--out", str(tmp_path / "rec"), *words)
    rest = child.communicate(timeout=30)[1]
    assert child.returncode == 2
    assert says in line + rest and "Traceback" not in line + rest


def test_results_are_success_for_the_sdk(served: Served) -> None:
    provider = TracerProvider()
    span = provider.get_tracer("demo").start_span(
        "execute_tool t", attributes={"gen_ai.operation.name": "execute_tool"}
    )
    span.end()
    for kind in ("http", "gzip", "grpc"):
        assert exporter(served, kind).export([span]) is SpanExportResult.SUCCESS
    assert len(served.nodes()) == 1, "one span sent three times is one record"

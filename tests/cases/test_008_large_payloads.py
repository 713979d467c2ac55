"""Large tool results and an image of ten million characters: kept whole, beside the small ones, in cells of their own. Over gRPC no request is larger than
receivers take, and none of the small ones is lost."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec import ingest, read_nodes, verify
from otel_agentrec.cli.app import run
from tests.capture.forward.sinks import GrpcSink
from tests.cases.case import expected


def block(seed: str, size: int) -> bytes:
    """Bytes that look random and are the same each time."""
    count = -(-size // 32)
    return b"".join(hashlib.sha256(f"{seed}-{k}".encode()).digest() for k in range(count))[:size]


def span(n: int, name: str, attributes: dict[str, str]) -> dict[str, Any]:
    start = 1767225600_000_000_000 + n * 1_000_000
    return {
        "traceId": "08" * 16,
        "spanId": f"{n + 1:016x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 1_000_000),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        "status": {},
    }


def tool(n: int, name: str, call_id: str, result: str) -> dict[str, Any]:
    says = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return span(n, f"execute_tool {name}", {**says, "gen_ai.tool.call.id": call_id, "gen_ai.tool.call.result": result})


def recorded(tmp_path: Path) -> Path:
    want = expected("008")
    image = block("img", want["blob"]["bytes"])
    uri = "data:image/png;base64," + base64.b64encode(image).decode()
    parts = [
        {"type": "text", "content": "before image"},
        {"type": "uri", "uri": uri},
        {"type": "text", "content": "after image"},
    ]
    spans = [tool(n, "big", f"b{n}", block(str(n), 500_000).hex()) for n in range(6)]
    spans += [tool(n, "small", f"s{n}", "ok") for n in range(6, 11)]
    asked = json.dumps([{"role": "user", "parts": parts}], separators=(",", ":"))
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "demo-vision", "gen_ai.input.messages": asked}
    spans.append(span(11, "chat demo-vision", model))
    path = tmp_path / "input.jsonl"
    path.write_text(
        json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "demo"}, "spans": spans}]}]}) + "\n"
    )

    ingest(path, tmp_path / "rec")
    return tmp_path / "rec"


def test_what_is_large_is_kept_whole_and_costs_nobody_else(tmp_path: Path) -> None:
    want = expected("008")
    recorded(tmp_path)
    records = {r.tool_call_id or "model": r for r in read_nodes(tmp_path / "rec")}

    assert len(records) == want["records"]["model"] + want["records"]["tool"]
    assert hashlib.sha256(records["b0"].outputs.encode()).hexdigest() == want["tool_b0_result_sha256"]
    assert [records[f"s{n}"].outputs for n in range(6, 11)] == ["ok"] * 5
    before, picture, after = records["model"].inputs["messages"][0]["parts"]
    assert (before["content"], after["content"]) == ("before image", "after image")
    kept = base64.b64decode(picture["uri"].split(",", 1)[1])
    assert hashlib.sha256(kept).hexdigest() == want["blob"]["sha256"]
    assert verify(tmp_path / "rec").exit_code == 0
    for events in (tmp_path / "rec").glob("2*Z-*.jsonl"):
        if not events.name.endswith(".content.jsonl"):
            assert max(map(len, events.read_bytes().splitlines())) < 10_000, "events hold references, not payloads"


@pytest.mark.slow
def test_over_grpc_all_arrive_and_only_the_one_that_can_not_goes_without_its_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rec, sink = recorded(tmp_path), GrpcSink()
    try:
        assert run(["export", str(rec), "--otlp", sink.url, "--protocol", "grpc", "--json"]) == 0
    finally:
        sink.close()
    said = json.loads(capsys.readouterr().out)
    assert (said["spans"], said["refused"], len(said["reduced"])) == (12, [], 1)
    assert max(request.ByteSize() for request in sink.requests) <= expected("008")["limits"]["grpc_max_bytes"]
    assert sorted(span.name for span in sink.spans).count("execute_tool small") == 5
    (model,) = sink.named("chat demo-vision")
    assert json.loads(model["agentrec.omitted"])["gen_ai.input.messages"]["bytes"] > 9_999_999
    (first,) = [told for told in sink.named("execute_tool big") if told["gen_ai.tool.call.id"] == "b0"]
    result = hashlib.sha256(first["gen_ai.tool.call.result"].encode()).hexdigest()
    assert result == expected("008")["tool_b0_result_sha256"]

"""Large tool results and an image of ten million characters: kept whole, beside the small ones, in cells of their own.

(The size of export requests is the export room's half.)
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from otel_agentrec import ingest, read_nodes, verify
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


def test_what_is_large_is_kept_whole_and_costs_nobody_else(tmp_path: Path) -> None:
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

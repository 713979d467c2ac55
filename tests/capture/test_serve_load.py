"""The receiver under load, stopped in the middle of it: every span that was acknowledged is in the recording."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from otel_agentrec import read_nodes, verify

pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
CLIENTS, BATCH, PER_SECOND, SECONDS, AFTER = 8, 50, 2_000, 60.0, 5.0
"""The load goes on for ``AFTER`` seconds when the receiver has been told to stop."""


def body(client: int, request: int) -> tuple[bytes, list[str]]:
    names = [f"{client}-{request}-{n}" for n in range(BATCH)]
    start = time.time_ns()
    spans = [
        {
            "traceId": f"{client + 1:032x}",
            "spanId": f"{(client << 40) + request * BATCH + n + 1:016x}",
            "name": "execute_tool t",
            "startTimeUnixNano": str(start + n),
            "endTimeUnixNano": str(start + n + 1),
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                {"key": "gen_ai.tool.call.id", "value": {"stringValue": name}},
                {"key": "gen_ai.tool.call.result", "value": {"stringValue": "x" * 200}},
            ],
        }
        for n, name in enumerate(names)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": spans}]}]}).encode(), names


def test_what_was_acknowledged_is_recorded(tmp_path: Path) -> None:
    recording = tmp_path / "rec"
    command = [sys.executable, "-m", "otel_agentrec", "serve", "--port", "0", "--no-grpc", "--out", str(recording)]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert server.stderr
    port = int(server.stderr.readline().split("127.0.0.1:")[1].split(";")[0])
    acknowledged: list[str] = []
    refused: Counter[object] = Counter()
    start = time.monotonic()

    def client(k: int) -> None:
        request = 0
        while time.monotonic() - start < SECONDS + AFTER:
            due = start + request * BATCH * CLIENTS / PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
            data, names = body(k, request)
            request += 1
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                connection.request("POST", "/v1/traces", data, {"content-type": "application/json"})
                status = connection.getresponse().status
                connection.close()
            except (OSError, http.client.HTTPException):  # it has stopped listening
                refused["gone"] += 1
                if server.poll() is not None:
                    return
                continue
            if status == 200:
                acknowledged.extend(names)
            else:
                refused[status] += 1

    threads = [threading.Thread(target=client, args=(k,)) for k in range(CLIENTS)]
    for t in threads:
        t.start()
    time.sleep(SECONDS)
    server.send_signal(signal.SIGTERM)
    for t in threads:
        t.join()
    server.communicate(timeout=60)
    assert server.returncode == 0
    assert set(refused) <= {503, "gone"}
    assert len(acknowledged) >= 0.9 * PER_SECOND * SECONDS, "it did not keep up"
    found = Counter(r.tool_call_id for r in read_nodes(recording))
    assert [name for name in acknowledged if found[name] != 1] == []
    assert verify(recording).exit_code == 0
    print(f"{len(acknowledged) / SECONDS:,.0f} spans a second acknowledged; refused: {dict(refused)}")

"""A program that asks a model over plain httpx, recorded on the wire, and is gone in the middle. Arguments: where, base URL."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import httpx2 as httpx

from otel_agentrec import agent_run, configure


def body(call_id: str, **more: object) -> dict[str, object]:
    calls = [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    messages = [
        {"role": "user", "content": "What is the weather in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": call_id, "content": "rain"},
    ]
    return {"model": "m", "messages": messages, "prompt_cache_key": call_id, **more}


def wait_until_written(path: str, what: bytes, times: int) -> None:
    """Exchanges are written by a thread of the recorder, soon after they ended."""
    deadline = time.monotonic() + 30
    while sum(file.read_bytes().count(what) for file in Path(path).glob("2*.jsonl")) < times:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def main(path: str, url: str) -> None:
    configure(path, wire=True)
    with agent_run("agent"), httpx.Client() as client:
        for n in range(2):
            client.post(f"{url}/chat/completions", json=body("call_1", seed=n)).raise_for_status()
        wait_until_written(path, b'"wireIds"', 2)
        os._exit(9)


if __name__ == "__main__":
    main(*sys.argv[1:])

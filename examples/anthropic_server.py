"""A model on loopback that speaks Anthropic's messages API and says what a script tells it.

Source of the shapes: Anthropic's API reference, "Messages" and "Streaming messages".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from otel_agentrec.demo.script import Turn

Json = Any


@contextmanager
def serving(script: Sequence[Turn]) -> Iterator[str]:
    """Answer one request after the other with the turns of ``script``; gives the address for ``ANTHROPIC_BASE_URL``.

    A turn needs its ``usage``. A request after the last turn gets status 400, which the SDK does not send again.
    """
    turns, lock = iter(script), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on stderr."""

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                turn = next(turns, None)
            if turn is None:
                return self.answer(
                    400, "application/json", b'{"type":"error","error":{"type":"invalid_request_error"}}'
                )
            if not asked.get("stream"):
                return self.answer(200, "application/json", json.dumps(message(turn, asked["model"])).encode())
            return self.answer(200, "text/event-stream", b"".join(map(sse, events(turn, asked["model"]))))

        def answer(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def message(turn: Turn, model: str) -> Json:
    """A whole answer."""
    content: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in turn.tool_calls
    ]
    assert turn.usage is not None
    return {
        "id": f"msg_{turn.usage.input}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if turn.tool_calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": turn.usage.input, "output_tokens": turn.usage.output},
    }


def events(turn: Turn, model: str) -> Iterator[Json]:
    """The same answer as a stream: each block is begun empty and filled word by word."""
    whole = message(turn, model)
    usage = {**whole["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
    for index, block in enumerate(whole["content"]):
        empty = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": word} for word in block["text"].split(" ")]
            for delta in deltas[1:]:
                delta["text"] = " " + delta["text"]
        else:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def sse(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()

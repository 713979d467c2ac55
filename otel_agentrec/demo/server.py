"""A model server that says what a script tells it, on loopback, in the words of many APIs: OpenAI's chat completions,
responses and embeddings, Anthropic's messages, Gemini, Bedrock (Converse and InvokeModel).

For demos and tests: no key, no network, real HTTP, real streaming, real rate limits and failures::

    with ScriptedServer([Turn("Hello.")]) as server:
        client = OpenAI(base_url=server.base_url, api_key="none")
        ...
        assert server.requests[0].body["model"] == "gpt-5"
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from otel_agentrec.demo import responses
from otel_agentrec.demo.apis import Api, api_of, openai_error
from otel_agentrec.demo.script import Asked, Script, Turn, fill

__all__ = ["Received", "ScriptedServer"]

Json = Any

MAX_BODY = 64 << 20
"""Longest request body in bytes; a longer one is refused with 413."""
MAX_KEPT = 1024
"""Number of responses whose items are kept for ``previous_response_id``."""
IDLE_SECONDS = 30.0
"""A connection that says nothing for so long is closed."""


@dataclass(frozen=True)
class Received:
    """One request as it came: ``body`` parsed (None when it is no JSON object), ``at`` in seconds of the monotonic clock.

    ``turn`` is the turn that answered it, None when no turn fitted.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: dict[str, Json] | None
    at: float
    turn: Turn | None = None


class ScriptedServer:
    """A scripted model on ``127.0.0.1``. A context manager; :meth:`start` and :meth:`stop` do the same by hand.

    Args:
        script: turns, or a :class:`Script`. A request that no turn fits gets status 400 (which SDKs don't retry) and a
            message that says what was asked.
        port: 0 takes a free one.
        seed: part of every id that the server makes; None takes a random one. The same seed and the same requests in
            the same order give the same answers byte for byte, but for their time stamps.
    """

    def __init__(self, script: Script | Iterable[Turn | str], port: int = 0, *, seed: str | None = None) -> None:
        self.script = script if isinstance(script, Script) else Script(script)
        self.requests: list[Received] = []
        self.seed = secrets.token_hex(3) if seed is None else seed
        self._port = port
        self._lock = threading.Lock()
        self._answers = 0
        self._items: OrderedDict[str, list[Json]] = OrderedDict()
        self._open: set[socket.socket] = set()
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.stopping = threading.Event()

    @property
    def port(self) -> int:
        if self._http is None:
            raise RuntimeError("the server is not started")
        return int(self._http.server_address[1])

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as ``base_url``."""
        return f"{self.url}/v1"

    @property
    def url(self) -> str:
        """The address without a path: what clients of Anthropic, Google, Mistral and AWS take."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> ScriptedServer:
        owner = self

        class Handler(_Handler):
            server_owner = owner

        self.stopping.clear()
        self._http = _Server(("127.0.0.1", self._port), Handler)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, name="scripted-model", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port and every open connection; streams that are under way are cut."""
        if self._http is None or self._thread is None:
            return
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        with self._lock:
            left = list(self._open)
        for connection in left:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was gone already
        self._thread.join(timeout=5)
        self._http = self._thread = None

    def __enter__(self) -> ScriptedServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- one request ---------------------------------------------------------------------------------------------------

    def take(self, received: Received, api: Api, model: str) -> tuple[Turn | None, Asked, str]:
        """Journal a request and choose its turn: (turn, what was asked, id of the answer). ``model``: named by the path."""
        body = received.body or {}
        with self._lock:
            self._answers += 1
            answer_id = f"{api.prefix}{self.seed}{self._answers:04d}"
            items: list[Json] = []
            if api.name == "responses":
                asked, items = responses.read(body, self._items.get(str(body.get("previous_response_id")), []))
            else:
                asked = api.read(body, model)
            turn = self.script.take(asked)
            self.requests.append(Received(**{**vars(received), "turn": turn}))
            if turn is not None and api.name == "responses":
                self._items[answer_id] = [*items, *responses.body(turn, asked, answer_id, 0)["output"]]
                while len(self._items) > MAX_KEPT:
                    self._items.popitem(last=False)
            if turn is None and api.name == "embeddings":
                turn = Turn()
        return turn, asked, answer_id

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _Cut(Exception):
    """The connection is to be closed in the middle of an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "scripted-model"
    sys_version = ""
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    server_owner: ScriptedServer
    _api: Api | None = None

    def setup(self) -> None:
        super().setup()
        self.server_owner.opened(self.connection)

    def finish(self) -> None:
        self.server_owner.closed(self.connection)
        super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on stderr."""

    def do_GET(self) -> None:
        if self.path.rstrip("/").endswith("/models"):
            self._json(200, {"object": "list", "data": []})
        else:
            self._error(404, f"there is no {self.path}")

    def do_POST(self) -> None:
        self._api = None
        path = self.path.partition("?")[0].rstrip("/")
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_BODY:
            self.close_connection = True
            return self._error(413, f"a request of {length} bytes is too long")
        raw = self.rfile.read(length)
        known = api_of(path, self.headers.get("user-agent") or "")
        if known is None:
            return self._error(404, f"there is no {path}")
        api, model = known
        self._api = api
        received = Received("POST", path, dict(self.headers.items()), raw, _object(raw), time.monotonic())
        if received.body is None:
            return self._error(400, "the request is no JSON object")
        turn, asked, answer_id = self.server_owner.take(received, api, model)
        if turn is None:
            role, text = asked.last
            return self._error(
                400, f"no turn of the script fits: {asked.api}, step {asked.step}, last message {role}: {text[:200]!r}"
            )
        try:
            self._pause(turn.delay)
            if turn.status != 200:
                self._error(turn.status, fill(turn.text, asked) or f"scripted {turn.status}", turn.headers)
            elif api.streams(path, received.body):
                self._stream(api, turn, asked, answer_id, received.body)
            else:
                self._whole(api, turn, asked, answer_id, received.body)
        except (_Cut, OSError):
            self.close_connection = True
        return None

    def _whole(self, api: Api, turn: Turn, asked: Asked, answer_id: str, request: Mapping[str, Json]) -> None:
        rendered = api.whole(turn, asked, answer_id, int(time.time()), request)
        data = json.dumps(rendered, ensure_ascii=False).encode()
        if turn.end == "hang":
            self._hang()
        if turn.end == "garbage":
            data = b'{"choices": [' + b"<html>"
        self._head(turn.status, {"content-type": "application/json", "content-length": str(len(data)), **turn.headers})
        if turn.end == "cut":
            self.wfile.write(data[: len(data) // 2])
            raise _Cut
        self.wfile.write(data)

    def _stream(self, api: Api, turn: Turn, asked: Asked, answer_id: str, request: Mapping[str, Json]) -> None:
        headers = {"content-type": api.content_type, "transfer-encoding": "chunked"}
        self._head(200, {**headers, "cache-control": "no-cache", **turn.headers})
        for at, event in enumerate(api.stream(turn, asked, answer_id, int(time.time()), request)):
            if turn.end != "done" and at >= turn.after:
                break
            if at:
                self._pause(turn.chunk_delay)
            self._chunk(event)
        if turn.end == "hang":
            self._hang()
        if turn.end == "garbage":
            self._chunk(b"data: {not JSON\n\n")
        if turn.end != "done":
            raise _Cut
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _json(self, status: int, value: Json, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})})
        self.wfile.write(data)

    def _error(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        error, own = (self._api.error if self._api is not None else openai_error)(status, message)
        self._json(status, error, {**own, **(headers or {})})

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _pause(self, seconds: float) -> None:
        if seconds > 0 and self.server_owner.stopping.wait(seconds):
            raise _Cut

    def _hang(self) -> None:
        self.server_owner.stopping.wait()
        raise _Cut


def _object(raw: bytes) -> dict[str, Json] | None:
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

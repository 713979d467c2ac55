"""A program that knows nothing of being replayed: it streams, calls tools, and prints every chunk of the wire.

    python program.py [WORD ...]

Words: ``changed`` (another prompt), ``fail`` (it ends with 3), ``swallow`` and ``hard`` (it ends with 0 whatever comes, the second
by ``os._exit``), ``short`` (it stops after the first step), ``sockets`` (it tries to get out, in four ways), ``killed`` (by a signal),
``child`` (a Python process that it starts asks a model too).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import Any

import httpx2 as http
from openai import OpenAI

from tests.replay.agent import ASK, Tools, loop

WORDS = sys.argv[1:]
URL = os.environ["OPENAI_BASE_URL"]


def show(response: http.Response) -> None:
    """Print the bytes of a stream as they come."""
    original: Any = response.stream

    class Shown(http.SyncByteStream):
        def __iter__(self):  # type: ignore[no-untyped-def]
            for chunk in original:
                print("chunk", chunk)
                yield chunk

        def close(self) -> None:
            original.close()

    response.stream = Shown()


def streamed() -> None:
    client = OpenAI(http_client=http.Client(event_hooks={"response": [show]}))
    with client.chat.completions.stream(model="gpt-5-mini", messages=[{"role": "user", "content": "Sing."}]) as stream:
        for event in stream:
            if event.type == "chunk":
                print(event.chunk.choices[:1])


def get_out() -> None:
    """A raw socket, a Python below, a shell below, a name."""
    host, port = URL.split("/")[2].split(":")
    says = f"import socket; socket.create_connection(('{host}', {port}))"
    for command in ([sys.executable, "-c", says], ["bash", "-c", f"exec 3<>/dev/tcp/{host}/{port}"]):
        done = subprocess.run(command, capture_output=True, text=True)
        print("outside" if done.returncode == 0 else "refused", file=sys.stderr)
    for way in (
        lambda: socket.create_connection((host, int(port))),
        lambda: socket.getaddrinfo("api.example.com", 443),
    ):
        try:
            way()
        except BaseException as error:
            print("refused", type(error).__name__, file=sys.stderr)
        else:
            print("outside", file=sys.stderr)


def main() -> None:
    streamed()
    if "short" in WORDS:
        return
    print(loop(OpenAI(), Tools(), ASK.replace("Oslo", "Bergen") if "changed" in WORDS else ASK))
    if "sockets" in WORDS:
        get_out()
    if "child" in WORDS:
        print(subprocess.run([sys.executable, __file__], capture_output=True).returncode, file=sys.stderr)
    if "fail" in WORDS:
        sys.exit(3)
    if "killed" in WORDS:
        os.kill(os.getpid(), signal.SIGKILL)


try:
    main()
except BaseException:
    if "swallow" in WORDS:
        sys.exit(0)
    if "hard" in WORDS:
        os._exit(0)
    raise

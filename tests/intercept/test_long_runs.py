"""Many calls, dropped streams, forks and the end of the interpreter: nothing is left over, nothing hangs."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import httpx2
import pytest

from otel_agentrec.intercept import exchanges
from tests.intercept.wire import CHAT, Handler, Watcher, event_stream, serving

ROOT = Path(__file__).parent.parent.parent


def test_600_retries_and_dropped_streams_leave_nothing(watcher: Watcher) -> None:
    def busy(handler: Handler) -> None:
        handler.whole(b"{}", status=429, retry_after="0")

    gc.collect()
    before = len(exchanges._OPEN)
    with serving([*[busy] * 600, event_stream]) as server, httpx2.Client() as client:
        url = server.url + CHAT
        while client.post(url, json={}).status_code == 429:
            pass
        for _ in range(20):
            client.send(client.build_request("POST", url, json={}), stream=True)
    gc.collect()
    assert len(watcher.seen) == 621
    assert len(exchanges._OPEN) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_does_not_tell_of_its_parents_calls() -> None:
    with serving(event_stream) as server:
        said = child(
            f"""
            import os
            reply = client.send(client.build_request("POST", "{server.url}{CHAT}", json={{}}), stream=True)
            if os.fork() == 0:
                reply.close()
                sweep()
                print("child", [exchange.response.end for exchange in watcher.seen], flush=True)
                os._exit(0)
            os.wait()
            reply.read()
            print("parent", [exchange.response.end for exchange in watcher.seen])
            """
        )
    assert said == ["child []", "parent ['eof']"]


def test_the_interpreter_ends_with_streams_open_and_they_are_told_of() -> None:
    with serving(lambda handler: handler.stream([b"a", b"b"], pause=30)) as server:
        said = child(
            f"""
            import atexit
            for exchange in range(3):
                reply = client.send(client.build_request("POST", "{server.url}{CHAT}", json={{}}), stream=True)
                parts = reply.iter_raw()
                next(parts)
                watcher.keep.append([reply, parts])
            atexit.unregister(sweep)
            atexit.register(lambda: print([exchange.response.end for exchange in watcher.seen]))
            atexit.register(sweep)
            """
        )
    assert said == ["['gone', 'gone', 'gone']"]


def child(program: str) -> list[str]:
    """The lines that a program prints which has a watched ``client``, the ``watcher`` and ``sweep``; it has ten seconds."""
    frame = """
import httpx2
from otel_agentrec.intercept.active import ACTIVE
from otel_agentrec.intercept.exchanges import sweep
from otel_agentrec.intercept.install import install
class Watcher:
    def __init__(self): self.seen, self.keep = [], []
    def started(self, request): pass
    def ended(self, exchange): self.seen.append(exchange)
install()
watcher = ACTIVE.wire = Watcher()
client = httpx2.Client()
"""
    result = subprocess.run(
        [sys.executable, "-c", frame + textwrap.dedent(program)], cwd=ROOT, capture_output=True, text=True, timeout=10
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.splitlines()

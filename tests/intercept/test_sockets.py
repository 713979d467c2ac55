"""The guards that keep a replay off the network. Each case is a process of its own: the guards can't be taken back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.intercept import landlock
from tests.intercept.wire import CHAT, Server, json_reply, serving

ROOT = Path(__file__).parent.parent.parent
needs_landlock = pytest.mark.skipif(landlock.abi() < 4, reason="this kernel has no Landlock rules for TCP")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(json_reply) as running:
        yield running


def child(server: Server, program: str) -> dict[str, Any]:
    """Run a program that knows ``HOST`` and ``PORT`` of the server, ``tried(fn)`` (the class of what it raised) and
    ``say(**what)``; gives what it said and, as ``report``, what the guard says at the end."""
    port = server.host.rpartition(":")[2]
    frame = f"""
import json, socket, sys
from otel_agentrec.intercept.sockets import allow_sockets, forbid_sockets, report
HOST, PORT, said = "127.0.0.1", {port}, {{}}
def tried(fn):
    try:
        fn()
    except BaseException as error:
        return type(error).__name__
def connect():
    socket.create_connection((HOST, PORT), timeout=5).close()
say = said.update
"""
    code = frame + textwrap.dedent(program) + "\nprint(json.dumps({**said, 'report': report()}))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def test_the_audit_hook_refuses_python_sockets(server: Server) -> None:
    said = child(
        server,
        """
        import asyncio
        say(guard=forbid_sockets(landlock=False))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        say(
            connect=tried(connect),
            asyncio=tried(lambda: asyncio.run(asyncio.open_connection(HOST, PORT))),
            name=tried(lambda: socket.getaddrinfo("model.invalid", 443)),
            udp=tried(lambda: udp.sendto(b"x", (HOST, PORT))),
            address=tried(lambda: socket.getaddrinfo("127.0.0.1", 443)),
            pair=tried(lambda: [end.close() for end in socket.socketpair()]),
        )
        allow_sockets()
        say(off=tried(connect))
        """,
    )
    assert said["guard"]["audit_hook"]
    assert said["guard"]["landlock"] == "not asked for"
    assert [said[what] for what in ("connect", "asyncio", "name", "udp")] == ["ReplayDivergence"] * 4
    assert [said[what] for what in ("address", "pair", "off")] == [None] * 3
    assert said["report"]["refused"] == [server.host, server.host, "model.invalid", server.host]


def test_allowed_hosts_and_ports_pass(server: Server) -> None:
    said = child(
        server,
        """
        say(guard=forbid_sockets([("localhost", PORT)]))
        say(
            connect=tried(connect),
            by_name=tried(lambda: socket.create_connection(("localhost", PORT)).close()),
            other=tried(lambda: socket.create_connection((HOST, 9)).close()),
        )
        """,
    )
    assert (said["connect"], said["by_name"], said["other"]) == (None, None, "ReplayDivergence")
    assert said["report"]["allowed"] == [f"localhost:{server.host.rpartition(':')[2]}"]


def test_an_exporter_meets_an_ordinary_failure(server: Server) -> None:
    said = child(
        server,
        """
        from opentelemetry import context
        forbid_sockets(landlock=False)
        context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))
        say(export=tried(connect))
        """,
    )
    assert said["export"] == "ConnectionRefusedError"


@needs_landlock
def test_landlock_holds_below_python_and_for_other_programs(server: Server) -> None:
    connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close()"
    said = child(
        server,
        f"""
        import subprocess
        program = [sys.executable, "-c", {connect!r}, str(PORT)]
        say(before=subprocess.run(program, capture_output=True).returncode)
        say(guard=forbid_sockets())
        allow_sockets()
        done = subprocess.run(program, capture_output=True, text=True)
        say(connect=tried(connect), program=done.returncode, why=done.stderr.split()[-1] and done.stderr)
        """,
    )
    assert said["guard"]["landlock"] == "active"
    assert said["before"] == 0
    assert said["connect"] == "PermissionError"
    assert said["program"] == 1
    assert "PermissionError" in said["why"]


@needs_landlock
def test_landlock_lets_allowed_ports_pass(server: Server) -> None:
    said = child(server, "forbid_sockets([(HOST, PORT)]); say(connect=tried(connect))")
    assert said["connect"] is None
    assert said["report"]["landlock_ports"] == [int(server.host.rpartition(":")[2])]


@needs_landlock
def test_threads_that_ran_before_are_told_of(server: Server) -> None:
    said = child(
        server,
        """
        import threading
        done = threading.Event()
        threading.Thread(target=done.wait).start()
        forbid_sockets()
        done.set()
        """,
    )
    assert said["report"]["landlock"] == "active, but not for 1 threads that ran already"


def test_a_kernel_without_it_is_told_of(server: Server) -> None:
    said = child(
        server,
        """
        from otel_agentrec.intercept import landlock
        landlock.abi = lambda: 3
        forbid_sockets()
        say(connect=tried(connect))
        """,
    )
    assert said["report"]["landlock"].startswith("no: this kernel has no Landlock rules for TCP")
    assert said["report"]["landlock_ports"] is None
    assert said["connect"] == "ReplayDivergence"


def test_programs_that_are_started_are_told_of_without_their_arguments(server: Server) -> None:
    true = shutil.which("true")
    said = child(server, f"import subprocess; forbid_sockets(); subprocess.run([{true!r}, 'secret'], check=True)")
    assert said["report"]["programs"] == [true]
    assert "secret" not in json.dumps(said["report"])


def test_a_model_call_that_is_passed_on_is_refused_by_the_guard(server: Server) -> None:
    said = child(
        server,
        f"""
        import httpx2
        forbid_sockets(landlock=False)
        say(call=tried(lambda: httpx2.post(f"http://{{HOST}}:{{PORT}}{CHAT}", json={{}})))
        """,
    )
    assert said["call"] == "ReplayDivergence"

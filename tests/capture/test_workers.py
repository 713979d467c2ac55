"""Servers and pools that fork, spawn, recycle and reload their workers: every call that was answered is one record."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from otel_agentrec import read_nodes, verify

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def serving(recording: Path, port: int, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "WORKER_RECORDING": str(recording), "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, env=environment, start_new_session=True)
    try:
        ask(port, 1, patience=30)
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            raise


def ask(port: int, times: int, patience: float = 5.0) -> list[str]:
    """Ids that the app answered with; a refused or broken connection is tried again."""
    answers: list[str] = []
    end = time.monotonic() + patience + times
    while len(answers) < times:
        assert time.monotonic() < end, "the server does not answer"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                answers.append(answer.read().decode())
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    return answers


def check(recording: Path, answered: list[str], closed: bool) -> None:
    assert len(set(answered)) == len(answered)
    found = Counter(r.tool_call_id for r in read_nodes(recording))
    assert [name for name in answered if found[name] != 1] == []
    assert set(found.values()) == {1}
    report = verify(recording)
    assert report.is_valid and report.exit_code == (0 if closed else 3), report.to_json()


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["each worker loads", "preload"])
def test_gunicorn_with_a_worker_killed(tmp_path: Path, preload: list[str]) -> None:
    pytest.importorskip("gunicorn")
    port, recording = free_port(), tmp_path / "rec"
    command = ["gunicorn", "--workers", "2", "--bind", f"127.0.0.1:{port}", *preload, "tests.capture.worker_app:wsgi"]
    with serving(recording, port, *command):
        answered = ask(port, 60)
        victim = int(answered[-1].split("-")[0])
        os.kill(victim, signal.SIGKILL)
        answered += ask(port, 60, patience=20)
    assert len({name.split("-")[0] for name in answered}) >= 2
    check(recording, answered, closed=False)


def test_gunicorn_that_recycles_its_workers(tmp_path: Path) -> None:
    pytest.importorskip("gunicorn")
    port, recording = free_port(), tmp_path / "rec"
    command = ["gunicorn", "--workers", "2", "--max-requests", "10", "--bind", f"127.0.0.1:{port}"]
    with serving(recording, port, *command, "--preload", "tests.capture.worker_app:wsgi"):
        answered = ask(port, 80, patience=60)
    assert len({name.split("-")[0] for name in answered}) >= 4
    check(recording, answered, closed=True)


def test_uvicorn_that_reloads(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    port, recording, watched = free_port(), tmp_path / "rec", tmp_path / "watched"
    watched.mkdir()
    (watched / "a.py").write_text("")
    command = ["uvicorn", "--port", str(port), "--reload", "--reload-dir", str(watched), "--log-level", "warning"]
    with serving(recording, port, *command, "tests.capture.worker_app:asgi"):
        answered = ask(port, 20)
        first = answered[0].split("-")[0]
        end = time.monotonic() + 60
        while answered[-1].split("-")[0] == first:
            assert time.monotonic() < end, "it did not reload"
            (watched / "a.py").write_text("changed = True")  # again and again: its first look may come after a change
            time.sleep(0.2)
            answered += ask(port, 1)
        answered += ask(port, 20)
    # uvicorn lets the signal that stops it end the process: no exit handler runs, the streams stay open
    check(recording, answered, closed=False)


def one(_: int) -> str:
    from tests.capture import worker_app

    return worker_app.work()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("recycle", [None, 5], ids=["lasting", "recycled after 5"])
def test_multiprocessing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, recycle: int | None) -> None:
    recording = tmp_path / "rec"
    program = f"""
import multiprocessing, sys
from tests.capture.test_workers import one
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    with context.Pool(2, maxtasksperchild={recycle}) as pool:
        print("\\n".join(pool.map(one, range(40), chunksize=1)))
        pool.close()
        pool.join()
"""
    (tmp_path / "main.py").write_text(program)
    environment = {**os.environ, "WORKER_RECORDING": str(recording), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "main.py")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    answered = done.stdout.split()
    assert len(answered) == 40 and len({name.split("-")[0] for name in answered}) >= (4 if recycle else 1)
    # forked children end by os._exit: their streams stay open, and nothing is lost
    check(recording, answered, closed=method == "spawn")

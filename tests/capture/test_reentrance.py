"""A thread that is recording comes back to the recorder: no hang, no fork of the chain, each record once.

Each case runs in a child process that is killed after ten seconds of work.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.audit.verify import verify
from tests.capture.recording import events

FRAME = """
import faulthandler, gc, json, logging, os, signal, sys, threading, time
from opentelemetry import _logs, trace
from otel_agentrec.capture.configure import configure
from otel_agentrec.journal import named, writer

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": "[]"}
recorder = configure(sys.argv[1])
tracer = trace.get_tracer("demo")
faulthandler.dump_traceback_later(45, exit=True)
made = 0

def call():
    global made
    made += 1
    return tracer.start_span("chat m", attributes=CHAT)

def inside_each_write(do):
    # `do` runs on the writing thread, while it holds the writer's lock.
    original = writer.write_whole
    def write_whole(*args):
        do()
        return original(*args)
    writer.write_whole = write_whole

%s
recorder.force_flush()
stats = recorder.stats()
recorder.shutdown()
print(json.dumps({"made": made, **stats}))
"""

GARBAGE = """
class Stream:
    # An abandoned answer: its span is ended by the garbage collector.
    def __init__(self):
        self.span, self.me = call(), self
    def __del__(self):
        self.span.end()
"""

CASES = {
    "the garbage collector ends a span inside the writer": GARBAGE
    + """
def collect():
    if made < 400:
        Stream()
        gc.collect(0)
inside_each_write(collect)
for _ in range(20):
    call().end()
del writer.write_whole
writer.write_whole = named.write_whole
gc.collect()
""",
    "the garbage collector runs at every allocation": GARBAGE
    + """
gc.set_threshold(1)
for _ in range(60):
    Stream()
    call().end()
gc.set_threshold(700)
gc.collect()
""",
    "the garbage collector takes a span that nobody ends": """
taken = 0
def collect():
    global made, taken
    if taken < 200:
        taken += 1
        span = call()
        made -= 1  # it gets no record of its own, only an interrupted one
        cycle = [span]
        cycle.append(cycle)
        del span, cycle
        gc.collect()
inside_each_write(collect)
for _ in range(20):
    call().end()
writer.write_whole = named.write_whole
""",
    "a signal handler ends a span": """
def handler(*_):
    call().end()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    call().end()
signal.setitimer(signal.ITIMER_REAL, 0)
""",
    "a signal handler ends a span inside the writer": """
signal.signal(signal.SIGUSR1, lambda *_: call().end() if made < 300 else None)
inside_each_write(lambda: os.kill(os.getpid(), signal.SIGUSR1))
for _ in range(50):
    call().end()
writer.write_whole = named.write_whole
""",
    "log lines are written inside the writer": """
from opentelemetry.sdk._logs import LoggingHandler
provider = _logs.get_logger_provider()
for name in ("otel_agentrec", "app"):
    logging.getLogger(name).addHandler(LoggingHandler(logger_provider=provider))
    logging.getLogger(name).setLevel(logging.DEBUG)
event = provider.get_logger("app")
def lines():
    logging.getLogger("otel_agentrec").warning("our own line")
    logging.getLogger("app").warning("a line of the program")
    event.emit(event_name="gen_ai.client.inference.operation.details", attributes={})
inside_each_write(lines)
for _ in range(20):
    call().end()
writer.write_whole = named.write_whole
""",
    "eight threads, all with garbage that ends spans": GARBAGE
    + """
gc.set_threshold(5)
lock = threading.Lock()
def work():
    for _ in range(20):
        with lock:
            made_here = call()
        made_here.end()
        with lock:
            Stream()
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
gc.set_threshold(700)
gc.collect()
""",
}


def run_child(code: str, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *args], capture_output=True, text=True, timeout=60, **more
    )


@pytest.mark.alone
@pytest.mark.parametrize("case", CASES)
def test_no_hang_no_fork_each_record_once(tmp_path: Path, case: str) -> None:
    child = run_child(FRAME % CASES[case], str(tmp_path / "rec"))
    assert child.returncode == 0, child.stderr
    stats = json.loads(child.stdout)
    assert stats["swallowed"] == stats["dropped"] == 0, child.stderr
    nodes = events(tmp_path / "rec", "NODE_RECORDED")
    assert len({e["trace"]["spanId"] for e in nodes}) == len(nodes) == stats["made"]
    if "allocation" not in case and "threads" not in case:
        assert stats["reentrant"] > 0, "the case did not come about"
    report = verify(tmp_path / "rec")
    assert report.is_valid, report.to_json()


def test_ctrl_c_inside_the_recorder_passes_and_recording_goes_on(tmp_path: Path) -> None:
    code = """
interrupted = 0
def stop():
    global interrupted
    if interrupted < 3:
        interrupted += 1
        raise KeyboardInterrupt
inside_each_write(stop)
for _ in range(6):
    try:
        call().end()
    except KeyboardInterrupt:
        made -= 1
writer.write_whole = named.write_whole
call().end()
assert interrupted == 3
"""
    child = run_child(FRAME % code, str(tmp_path / "rec"))
    assert child.returncode == 0, child.stderr
    made = json.loads(child.stdout)["made"]
    assert len(events(tmp_path / "rec", "NODE_RECORDED")) >= made >= 4
    assert verify(tmp_path / "rec").is_valid

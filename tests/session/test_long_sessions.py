"""Sessions of a million events, and eight processes at one session. Slow."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.journal.chain import GENESIS, seal
from otel_agentrec.journal.events import FORMAT
from otel_agentrec.session.agent import AGENT
from otel_agentrec.session.log import SessionLog
from tests.session.test_log import APPENDER

pytestmark = pytest.mark.slow
TURN = 10


def turns(events: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Turns with background work between them, and a summary now and then: the context stays as long as it is."""
    yield "STREAM_OPENED", {"origin": "here", "nonce": "0" * 32}
    yield "SESSION_STARTED", {}
    for n in range(2, events):
        if n % TURN == 1:
            yield "USER_MESSAGE_APPENDED", {"content": f"question {n}"}
        elif n % TURN == 2:
            yield "AGENT_REPLY_APPENDED", {"content": f"answer {n}"}
        elif n % 1_000 == 999:
            yield "CONTEXT_COMPACTED", {"from": 1, "summary": "they talked", "to": n - 20}
        else:
            yield "SCHEDULED_TASK_FIRED", {"task": "look around"}


def session(directory: Path, events: int) -> Path:
    """A session of so many events, and its saved projection. Written line by line, as the format has it: a million would
    take minutes through the store."""
    log = SessionLog.open(directory, "long")
    path = directory / "sessions" / "long.jsonl"
    path.parent.mkdir(parents=True)
    prev, envelope = GENESIS, {"v": FORMAT, "stream": log.stream, "mono": "0", "ts": 0}
    with path.open("wb") as file:
        for seq, (type_, payload) in enumerate(turns(events)):
            id = f"00000000-0000-4000-8000-{seq:012x}"
            event = {**envelope, "id": id, "seq": seq, "type": type_, "payload": payload}
            line, prev = seal(prev, orjson.dumps(event, option=orjson.OPT_SORT_KEYS))
            file.write(line)
    log.save_projection(AGENT)
    return directory


def opened(directory: Path) -> float:
    """Seconds to open the session and have its context."""
    begun = time.perf_counter()
    log = SessionLog.open(directory, "long", policy=AGENT)
    messages = log.project()
    took = time.perf_counter() - begun
    assert messages
    assert log.events_read <= 1, "only what came after the saved projection, which is the mark of it"
    return took


@pytest.mark.alone
@pytest.mark.timeout(1800)
def test_opening_a_million_events_costs_what_ten_thousand_cost(tmp_path: Path) -> None:
    small, large = session(tmp_path / "small", 10_000), session(tmp_path / "large", 1_000_000)
    times = [(opened(small), opened(large)) for _ in range(60)]
    assert min(large for _, large in times) <= 1.3 * min(small for small, _ in times)


def test_eight_processes_at_one_session_killed_at_random(tmp_path: Path) -> None:
    rec, chance = tmp_path / "rec", random.Random(8)
    children = [
        subprocess.Popen([sys.executable, "-c", APPENDER, str(rec), str(n), "200"], stdout=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    acknowledged: list[list[str]] = []
    killed = chance.sample(range(8), 5)
    read: dict[int, list[str]] = {}
    for n in killed:  # while all of them write
        stdout = children[n].stdout
        assert stdout is not None
        read[n] = [stdout.readline() for _ in range(chance.randint(1, 20))]
        children[n].kill()
    ends = []
    for n, child in enumerate(children):
        assert child.stdout is not None
        lines = read.get(n, []) + child.stdout.read().splitlines(keepends=True)
        ends.append(child.wait())
        assert n in killed or ends[-1] == 0
        acknowledged += [line.split() for line in lines if line.endswith("\n")]
    assert -9 in ends
    events = list(SessionLog.open(rec, "shared").events())
    assert [e.seq for e in events] == list(range(len(events)))
    assert [e.prev_hash for e in events[1:]] == [e.hash for e in events[:-1]]
    held = {(str(e.seq), e.payload.get("content")) for e in events}
    assert {(seq, text) for seq, text in acknowledged} <= held
    assert len(acknowledged) >= 3 * 200
    assert verify(rec).is_valid

"""A recording may be verified and read at any time: beside live writers there is never a false fault."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from otel_agentrec.audit.verify import verify
from otel_agentrec.journal.reader import read_events

WRITER = """
import itertools, random, sys, time
from otel_agentrec.journal.draft import Envelope
from otel_agentrec.journal.journal import Journal
random.seed(int(sys.argv[2]))
said = []
for n in itertools.count():
    journal = Journal(sys.argv[1], origin="me", segment_bytes=10_000)
    for k in range(random.randrange(1, 60)):
        said = [*said[-20:], {"role": "user", "text": "x" * random.randrange(300)}]
        journal.append("NODE_RECORDED", {"type": "MODEL", "name": "m", "facts": {"messages": said}}, Envelope(session="s"))
        time.sleep(0.002)
        if not k:
            print(n, flush=True)
    journal.seal()
"""


def test_verify_and_read_beside_writers_that_open_write_close_and_die(tmp_path: Path) -> None:
    seen: Counter[str | None] = Counter()
    killed = 0
    children: list[subprocess.Popen[bytes]] = []
    try:
        while killed < 5 or seen["unsealed_tail"] < 3:  # on a busy machine, few looks fall into the life of a writer
            while len(children) < 2:
                args = [sys.executable, "-c", WRITER, str(tmp_path), str(len(seen))]
                children.append(subprocess.Popen(args, stdout=subprocess.PIPE))
                assert children[-1].stdout is not None and children[-1].stdout.readline()
            killed_at = time.monotonic() + 0.4
            while time.monotonic() < killed_at:
                report = verify(tmp_path)
                seen[report.kind] += 1
                assert report.exit_code in (0, 3) and report.is_valid, (report.kind, report.file, report.hint)
                assert {w["kind"] for w in report.warnings} <= {"unindexed", "leftover_cells"}
                for event in itertools.islice(read_events(tmp_path), 200):
                    assert "$missing" not in repr(event.payload), (event.stream, event.seq)
            child = children.pop(0)
            child.send_signal(signal.SIGKILL)
            child.communicate()
            killed += 1
    finally:
        for child in children:
            child.kill()
            child.communicate()
    report = verify(tmp_path)
    assert report.exit_code == 3 and not report.live

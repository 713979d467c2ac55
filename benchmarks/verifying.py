"""How fast a recording is verified, as a fraction of hashing its files with ``hashlib``."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import cpu_seconds
from benchmarks.samples import message
from otel_agentrec.journal.draft import ContentMode, Envelope
from otel_agentrec.journal.journal import Journal

LEVELS = ("chained", "structured")
SIZES = {"1 KB": 1_000, "6 KB": 6_000}
ROWS = (
    *(f"verify {level} {size}" for level in LEVELS for size in SIZES),
    "verify content in lock-step 6 KB",
    "verify memory",
)


def digest(paths: list[Path]) -> None:
    for path in paths:
        sha = hashlib.sha256()
        with path.open("rb", buffering=0) as file:
            while data := file.read(1 << 18):
                sha.update(data)
        sha.hexdigest()


def made(where: Path, size: int, total: int, content: ContentMode) -> list[Path]:
    """A recording of ``total`` bytes, its lines about ``size`` bytes long; the files that verifying it must read."""
    journal = Journal(where, origin="benchmark", content=content)
    each = (size - 760) // 4
    messages = [message("user", each, n) for n in range(64)]
    for n in range(total // size):
        facts = {
            "dialect": "genai",
            "model": "gpt-5-mini",
            "responseId": f"resp-{n}",
            "inputTokens": 812,
            "outputTokens": 96,
            "messages": [{**messages[(n + i) % 64], "name": f"u{n}"} for i in range(3)],
            "outputMessages": [{**messages[(n + 3) % 64], "name": f"a{n}"}],
        }
        payload = {
            "type": "MODEL",
            "name": "chat gpt-5-mini",
            "scope": "benchmark",
            "startedAt": str(n),
            "facts": facts,
        }
        journal.append("NODE_RECORDED", payload, Envelope(session=f"s{n // 100}"))
    journal.seal()
    return sorted(where.glob("*.jsonl"))


def rows(quick: bool) -> Iterator[tuple[str, float]]:
    from otel_agentrec import verify

    rounds, total = (5, 25_000_000) if quick else (9, 100_000_000)
    with tempfile.TemporaryDirectory() as scratch:
        for size, length in SIZES.items():
            where = Path(scratch) / size
            digested = partial(digest, made(where, length, total, "inline"))
            ours = {level: partial(verify, where, level=level) for level in LEVELS}
            took = cpu_seconds({"digest": digested, **ours}, rounds=rounds)
            for level in LEVELS:
                yield f"verify {level} {size}", took["digest"] / took[level]
        where = Path(scratch) / "detached"
        digested = partial(digest, made(where, 6_000, total, "detached"))
        took = cpu_seconds({"digest": digested, "ours": partial(verify, where)}, rounds=rounds)
        yield "verify content in lock-step 6 KB", took["digest"] / took["ours"]
        yield "verify memory", memory(Path(scratch) / "many", 100_000 if quick else 1_000_000)


MEASURE = """
import sys
from otel_agentrec import verify
assert verify(sys.argv[1]).exit_code == 0
with open("/proc/self/status") as status:  # not ru_maxrss, which begins with what the parent held
    print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")))
"""


def memory(where: Path, events: int) -> float:
    """MB that a process of its own holds at most while it verifies so many events."""
    journal = Journal(where, origin="benchmark")
    for n in range(events):
        journal.append("STEP_ENDED", {"kind": "benchmark", "name": f"step {n}"})
    journal.seal()
    done = subprocess.run([sys.executable, "-c", MEASURE, str(where)], capture_output=True, text=True, check=True)
    return float(done.stdout)

"""What tests send to a Collector, and what its files must then hold."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from otel_agentrec.export.spans import Exported
from otel_agentrec.journal.chain import split
from otel_agentrec.journal.reader import Recording
from otel_agentrec.journal.stamps import EVENT, Stamp, stamp_of
from tests.servers.jaeger import plain, spans_of

Json = Any
T = TypeVar("T")


def export(recording: Path, url: str, *more: str) -> int:
    """``otel-agentrec export`` in a process of its own, as users start it; how many spans (or events) were
    taken. None was refused."""
    words = [sys.executable, "-m", "otel_agentrec", "export", str(recording), "--otlp", url, "--json", *more]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["refused"] == []
    return int(said["events" if "--events" in more else "spans"])


def stamps(recording: Path) -> set[Stamp]:
    """Those that an export of the recording puts on its spans."""
    found = {stamp_of(span.attributes or {}) for _, _, span in Exported(Recording(recording)).spans()}
    assert None not in found
    return {stamp for stamp in found if stamp is not None}


def event_texts(recording: Path) -> dict[tuple[str, int], str]:
    """(stream, seq) -> canonical text of each event of the recording's streams, read from the lines themselves."""
    texts: dict[tuple[str, int], str] = {}
    for stream in Recording(recording).streams():
        for line in stream.path.read_bytes().splitlines():
            parts = split(line)
            assert parts is not None
            texts[stream.name, json.loads(parts[0])["seq"]] = parts[0].decode()
    return texts


def spans_in(file: Path) -> list[dict[str, Json]]:
    """All spans of a Collector's file, as :func:`tests.servers.jaeger.spans_of` has them; none when there is no file."""
    return [span for one in _objects(file) for span in spans_of(one)]


def events_in(file: Path) -> dict[tuple[str, int], str]:
    """(stream, seq) -> body of each event log record of a Collector's file."""
    found = {}
    for one in _objects(file):
        for resource in one.get("resourceLogs", ()):
            for scope in resource["scopeLogs"]:
                for record in scope["logRecords"]:
                    attributes = plain(record["attributes"])
                    assert record["eventName"] == EVENT
                    found[attributes["agentrec.stream"], attributes["agentrec.seq"]] = record["body"]["stringValue"]
    return found


def _objects(file: Path) -> list[dict[str, Json]]:
    """The lines that are whole: the last one may still be on its way."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def wait_for(what: Callable[[], T], good: Callable[[T], bool], seconds: float = 60.0) -> T:
    """What ``what`` gives once it is ``good``; after ``seconds`` whatever it gives, for the caller's own assertion."""
    until = time.monotonic() + seconds
    while not good(found := what()) and time.monotonic() < until:
        time.sleep(0.1)
    return found

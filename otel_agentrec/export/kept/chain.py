"""Verify the event records that another system kept: each stream's chain, numbers, beginning and end.

Records may come in any order and more than once: a batch is sent again when nobody said that it had arrived. They are
checked as they come; only those whose predecessor has not come yet are held.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from otel_agentrec.audit.report import OK, UNPROVEN, VerifyReport, sum_up
from otel_agentrec.audit.structure import MOST_GAPS, OpenSpans, Structure, printable
from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.export.kept.reading import BrokenMark, Checkpoint, EventRecord, KeptFile, StampMark
from otel_agentrec.journal.chain import GENESIS, link_hash
from otel_agentrec.journal.check import Fault
from otel_agentrec.journal.reader import INDEX, SESSIONS

__all__ = ["StreamCheck", "verify_kept"]

Json = Any


def verify_kept(
    files: Iterable[KeptFile], *, structured: bool = True, progress: Callable[[int], None] | None = None
) -> VerifyReport:
    """Verify the event records in files of another system, all streams of them.

    Args:
        structured: False asks only that each event is unchanged and follows the one before.
        progress: called with the number of bytes that were read since the last call.

    Returns:
        a report as of a recording directory: ``streams`` has one each, named by its stream; lines are numbers of events.
        ``content`` is ``absent`` and there is no report of an index: neither goes out in event records. ``kept`` counts.

    Raises:
        UsageError, RecordingUnreadable: there is nothing to verify.
    """
    files = list(files)
    checks: dict[str, StreamCheck] = {}
    open_spans: dict[str, OpenSpans] = {}
    lost: list[VerifyReport] = []
    stamps = 0
    witnesses: dict[str, dict[tuple[int, str], str]] = {}
    for file in files:
        for mark in file.marks(progress):
            if isinstance(mark, BrokenMark) and (mark.stream is None or not mark.is_event):
                kind = "frame" if mark.is_event else "anchor_invalid"
                fault = Fault(kind, mark.seq or 0, 0, f"{mark.what} ({mark.place})", mark.seq)
                name = file.path.name if mark.stream is None else printable(mark.stream)
                lost.append(_placeless(VerifyReport(file=name, content="absent").failed(kind, fault)))
            elif isinstance(mark, (EventRecord, BrokenMark)):
                told = _sealed_place(mark)
                name = told[0] if told is not None else str(mark.stream)
                check = checks.get(name)
                if check is None:
                    check = checks[name] = StreamCheck(name, open_spans, structured=structured)
                check.take(mark, told)
            elif isinstance(mark, (StampMark, Checkpoint)):
                stamps += isinstance(mark, StampMark)
                seq = mark.seq if isinstance(mark, StampMark) else mark.size - 1
                witnesses.setdefault(mark.stream, {}).setdefault((seq, mark.hash), mark.place)
    for name, said in witnesses.items():
        if name in checks:
            checks[name].compare(said)
    if not checks and not lost:
        raise _nothing(files, stamps)
    reports = [checks[name].report() for name in sorted(checks)]
    reports = [_continued(report, checks) for report in reports]
    warnings = [
        _absent(files),
        *_unrecorded(witnesses, checks),
        *(warning for file in files for warning in _unread(file)),
    ]
    whole = sum_up([*reports, *lost], None, warnings)
    return dataclasses.replace(whole, content="absent", kept=_counts(files, checks.values()))


class StreamCheck:
    """The records of one stream, taken in as they come.

    Args:
        name: of the stream.
        open_spans: spans that each stream left open; a later segment goes on with those of its predecessor.
    """

    def __init__(self, name: str, open_spans: dict[str, OpenSpans], *, structured: bool = True) -> None:
        self.name = name
        self._named = name == INDEX or name.startswith(f"{SESSIONS}/")
        self._structure = Structure(name, named=self._named, earlier=open_spans)
        self._structured = structured
        self._open_spans = open_spans
        self._hashes: list[bytes] = []
        self._held: dict[int, EventRecord] = {}
        self._fault: Fault | None = None
        self._whole_after: set[int] = set()
        self._newest = self._stamped = -1
        self.records = self.again = self.late = 0
        """Records that came; identical ones that had come before; ones that came after a later one."""

    def take(self, record: EventRecord | BrokenMark, told: tuple[str, int] | None) -> None:
        """Take in one record; ``told``: its stream and number as its sealed event says them."""
        self.records += 1
        if isinstance(record, BrokenMark):
            at = record.seq if record.seq is not None else len(self._hashes)
            self._found("frame", at, f"{record.what} ({record.place})")
            return
        seq, size = record.seq, len(self._hashes)
        if told is not None and told != (record.stream, seq):
            said, own = f"event {seq} of {printable(record.stream)}", f"event {told[1]} of {printable(told[0])}"
            hint = f"the record ({record.place}) says that it is {said}, the event in it says {own}"
            self._found("wrong_origin", told[1], hint, own, said)
        elif seq < size:
            before = self._hashes[seq - 1].hex() if seq else GENESIS
            self._come_again(record, (self._hashes[seq].hex(), before) == (record.hash, record.prev_hash))
        elif seq in self._held:
            self._come_again(record, self._held[seq][:5] == record[:5])
        else:
            self.late += seq < self._newest
            self._newest = max(self._newest, seq)
            self._held[seq] = record
            while self._fault is None and (following := self._held.pop(len(self._hashes), None)) is not None:
                self._check(following)
            if self._fault is not None:
                self._let_go()

    def compare(self, said: Mapping[tuple[int, str], str]) -> None:
        """What stamps and checkpoints in the same files say: (seq, hash) -> where. They must name the same events."""
        size = len(self._hashes)
        for (seq, hash_), place in said.items():
            if seq < size and self._hashes[seq].hex() != hash_:
                hint = (
                    f"a stamp ({place}) names another event {seq} than the record: one of the two is not the recorder's"
                )
                self._found("equivocation", seq, hint, hash_, self._hashes[seq].hex())
        self._stamped = max((seq for seq, _ in said), default=-1)
        if self._stamped >= size and self._structure.sealed(size):
            hint = f"a stamp names event {self._stamped}, and event {size - 1} closes the stream: one of the two is not the recorder's"
            self._found("equivocation", size, hint)

    @property
    def size(self) -> int:
        """Events that fit, from the first on without a gap."""
        return len(self._hashes)

    def hash_after(self, size: int) -> str | None:
        """Hash of the last of the first ``size`` events; None when there are not so many."""
        return self._hashes[size - 1].hex() if 0 < size <= len(self._hashes) else None

    @property
    def opened(self) -> dict[str, Json]:
        """Payload of STREAM_OPENED."""
        return self._structure.opened

    def report(self) -> VerifyReport:
        """The verdict, when no more records come."""
        size, structure = len(self._hashes), self._structure
        report = VerifyReport(
            file=printable(self.name),
            level=("structured" if self._structured else "chained") if size else None,
            covers={"anchored": [], "signed": [], "chainedOnly": [[0, size]] if size else []},
            content="absent",
            gaps=tuple({"kind": "dropped", "file": printable(self.name), **d} for d in structure.dropped),
            events=size,
        )
        if structure.backwards:
            hint = f"{structure.backwards} events have an earlier monotonic time than the event before them"
            report = report.warned("time_backwards", report.file, hint, index=structure.backwards_at)
        fault = self._fault if self._fault is not None else self._missing()
        if fault is not None:
            fault = dataclasses.replace(fault, salvageable=len(self._whole_after))
            return _placeless(report.failed(fault.kind, fault))
        if self._structured and structure.sealed(size):
            return dataclasses.replace(report, end="proven_close")
        if self.name == INDEX or not self._structured:
            return report
        spans = list(self._open_spans.get(self.name, {}).values())[:MOST_GAPS]
        gaps = [{"kind": "unended", "file": report.file, **span} for span in spans]
        report = dataclasses.replace(report, gaps=(*report.gaps, *gaps))
        hint = (
            f"its last record is event {size - 1}, and that does not close it: its writer still runs or was killed, or the end "
            "was cut off or has not arrived; what is there is valid"
        )
        if self._stamped >= size:
            hint += f"; a stamp names event {self._stamped}, so records are missing at the end"
        return _placeless(report.failed("unsealed_tail", Fault("unsealed_tail", size, 0, hint)))

    def _check(self, record: EventRecord) -> None:
        prev = self._hashes[-1].hex() if self._hashes else GENESIS
        seq, own = record.seq, link_hash(record.prev_hash, record.body)
        at = f"event {seq} ({record.place})"
        if own == record.hash and record.prev_hash == prev:
            fault = self._structural(record, at)
            if fault is None:
                self._hashes.append(bytes.fromhex(record.hash))
            elif self._fault is None or fault.index < self._fault.index:
                self._fault = fault
        elif own == record.hash:
            hint = f"{at} follows another event than the one before it, which was put in or sealed anew"
            self._found("prev_hash_mismatch", seq, hint, prev, record.prev_hash)
        elif link_hash(prev, record.body) == record.hash:
            hint = f"only prev_hash of {at} was changed: event and hash fit the event before"
            self._found("prev_hash_mismatch", seq, hint, prev, record.prev_hash)
        else:
            self._found("hash_mismatch", seq, f"{at}, or its hash, was changed after it was sealed", record.hash, own)

    def _structural(self, record: EventRecord, at: str) -> Fault | None:
        """What the event itself says against its place."""
        seq = record.seq
        fault = self._structure(seq, 0, record.body, record.hash)
        if not self._structure.applies:
            return Fault("frame", seq, 0, f"{at} is no event of a recording", seq)
        self._open_spans[self.name] = self._structure.open_spans
        if self._structure.predecessor is not None:
            self._open_spans.pop(self._structure.predecessor, None)
        if fault is not None and not self._structured and fault.kind not in ("frame", "genesis_missing"):
            return None
        return None if fault is None else dataclasses.replace(fault, hint=f"{at}: {fault.hint}")

    def _come_again(self, record: EventRecord, same: bool) -> None:
        at = f"event {record.seq} ({record.place})"
        if link_hash(record.prev_hash, record.body) != record.hash:
            hint = f"a second copy of {at}, or its hash, was changed after it was sealed"
            self._found("hash_mismatch", record.seq, hint, record.hash, link_hash(record.prev_hash, record.body))
        elif same:
            self.again += 1
        else:
            hint = f"{at} came twice, and the two are different events: one of two histories is not the recorder's"
            self._found("equivocation", record.seq, hint, None, record.hash)

    def _missing(self) -> Fault | None:
        if not self._held:
            return None
        size, following = len(self._hashes), min(self._held)
        count = following - size
        which = f"event {size} is" if count == 1 else f"events {size} to {following - 1} are"
        hint = f"{which} not there: lost on the way, taken out, or in another file of the same Collector (give all of them)"
        self._let_go()
        if size == 0:
            return Fault("genesis_missing", 0, 0, f"the beginning is not there: {hint}", 0, "0", str(following))
        return Fault("seq_gap", size, 0, hint, size, str(size), str(following))

    def _found(self, kind: str, seq: int, hint: str, expected: str | None = None, actual: str | None = None) -> None:
        """Keep the first fault in the order of events."""
        if self._fault is None or seq < self._fault.index:
            self._fault = Fault(kind, seq, 0, hint, seq, expected, actual)

    def _let_go(self) -> None:
        """Records after a fault are only counted, where they are whole in themselves."""
        for seq, record in self._held.items():
            if link_hash(record.prev_hash, record.body) == record.hash:
                self._whole_after.add(seq)
        self._held.clear()


def _continued(report: VerifyReport, checks: Mapping[str, StreamCheck]) -> VerifyReport:
    """What the next segment of a stream says of its end."""
    own = checks.get(report.file or "")
    if own is None or report.exit_code not in (OK, UNPROVEN):
        return report
    for later in checks.values():
        said = later.opened.get("prevStream")
        if not isinstance(said, dict) or said.get("id") != own.name or type(said.get("size")) is not int:
            continue
        size, by = said["size"], printable(later.name)
        if own.size < size:
            hint = f"{size - own.size} events are not there at its end: {by} goes on from {size}"
            fault = Fault("truncated", own.size, 0, hint, own.size, str(size), str(own.size))
            return _placeless(report.failed("truncated", fault))
        if own.hash_after(size) != said.get("hash"):
            hint = f"{by} goes on from another event {size - 1}: one of the two is not the recorder's"
            fault = Fault(
                "history_rewritten", size - 1, 0, hint, size - 1, printable(said.get("hash")), own.hash_after(size)
            )
            return _placeless(report.failed("history_rewritten", fault))
    return report


def _placeless(report: VerifyReport) -> VerifyReport:
    """A line of a kept file holds many events: where one begins in bytes says nothing."""
    return dataclasses.replace(report, byte_offset=None)


def _sealed_place(mark: EventRecord | BrokenMark) -> tuple[str, int] | None:
    """Stream and number as the event itself says them; None when it does not, or is not as it was sealed."""
    if isinstance(mark, BrokenMark) or link_hash(mark.prev_hash, mark.body) != mark.hash:
        return None
    try:
        event = orjson.loads(mark.body)
    except ValueError:
        return None
    if not isinstance(event, dict) or not isinstance(event.get("stream"), str) or type(event.get("seq")) is not int:
        return None
    return event["stream"], event["seq"]


def _counts(files: Iterable[KeptFile], checks: Iterable[StreamCheck]) -> dict[str, Json]:
    checks, files = list(checks), list(files)
    return {
        "files": [str(file.path) for file in files],
        "records": sum(check.records for check in checks),
        "again": sum(check.again for check in checks),
        "late": sum(check.late for check in checks),
        "foreign": sum(file.foreign for file in files),
        "unread": sum(file.unread for file in files),
    }


def _absent(files: list[KeptFile]) -> dict[str, Json]:
    hint = "event records hold neither content nor index: neither was checked"
    return {"kind": "not_kept", "file": files[0].path.name, "hint": hint}


def _unrecorded(
    witnesses: Mapping[str, Mapping[tuple[int, str], str]], checks: Mapping[str, StreamCheck]
) -> Iterable[dict[str, Json]]:
    """Streams that stamps name and no event record: of a program that sends none, or whose records were taken out."""
    for name, said in witnesses.items():
        if name not in checks:
            hint = f"{len(said)} stamps or checkpoints name it, and no event record is there: it was not checked"
            yield {"kind": "not_kept", "file": printable(name), "hint": hint, "count": len(said)}


def _unread(file: KeptFile) -> list[dict[str, Json]]:
    if not file.unread:
        return []
    more = f" and {file.unread - 1} more" if file.unread > 1 else ""
    return [{"kind": "unread_lines", "file": file.path.name, "hint": f"{file.faults[0]}{more}", "count": file.unread}]


def _nothing(files: list[KeptFile], stamps: int) -> RecordingUnreadable:
    names = ", ".join(str(file.path) for file in files)
    if stamps:
        return RecordingUnreadable(
            f"{names}: no event records, but {stamps} spans with stamps",
            "stamps are checked against a recording: otel-agentrec verify REC --against FILE",
        )
    return RecordingUnreadable(
        f"{names}: telemetry, but nothing of a recording in it",
        "event records are log records named agentrec.event; they go out when they are forwarded",
    )

"""Verify a recording: every line of every stream, its content, and what the streams and the index say of one another.

A recording that is being written may be verified at any time: sizes are taken before a file is read, the index is read
before the streams (for what it says of them) and again after them (for what they say of it), and a fault in a file that
changes meanwhile is believed only when it is still there on reading again.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable
from typing import Any

import orjson

from otel_agentrec.audit.index import IndexFacts, read_index
from otel_agentrec.audit.report import (
    CONTRADICTED,
    KINDS,
    LEVELS,
    OK,
    TAMPERED,
    UNPROVEN,
    UNREADABLE,
    VerifyReport,
    sum_up,
)
from otel_agentrec.audit.structure import MOST_GAPS, Structure, claims_format
from otel_agentrec.errors import RecordingUnreadable, UsageError
from otel_agentrec.journal.check import Checked, Fault, check_stream
from otel_agentrec.journal.lines import size_of
from otel_agentrec.journal.reader import INDEX, Recording, StreamFile, looks_like_stream

__all__ = ["verify"]

Json = Any
_TRIES = 4


def verify(
    recording: Recording | str | os.PathLike[str],
    *,
    level: str | None = None,
    content: bool = True,
    keys: Iterable[str] = (),
    policy: str | os.PathLike[str] | None = None,
    against: Iterable[str] = (),
) -> VerifyReport:
    """Verify a recording directory or a single stream.

    Args:
        recording: path of the directory or ``.jsonl`` file.
        level: ``chained`` (bytes, hashes, content, index), ``structured`` (default: also numbers, origin, starts and ends,
            canonical bytes), ``signed`` or ``anchored`` (need checkpoints).
        content: check the content files too.
        keys, policy: public keys to check checkpoints with (asks for ``signed``).
        against: anchors (asks for ``anchored``).

    Returns:
        The report; see :class:`VerifyReport` for its exit codes.

    Raises:
        RecordingNotFound, RecordingUnreadable: there is nothing to verify.
        UsageError: an unknown level.
    """
    if level is not None and level not in LEVELS:
        raise UsageError(f"unknown level {level!r}", f"one of: {', '.join(LEVELS)}")
    asked = level or ("anchored" if list(against) else "signed" if list(keys) or policy is not None else "structured")
    path = recording.path if isinstance(recording, Recording) else recording
    report = _Verification(path, structured=asked != "chained", content=content).run()
    if asked in ("signed", "anchored") and report.exit_code in (OK, UNPROVEN):
        hint = f"level {asked} needs a checkpoint, and this recording has none; what is proven is level {report.level}"
        kind = report.kind if report.exit_code == UNPROVEN else "checkpoint_missing"
        report = dataclasses.replace(report, kind=kind, hint=hint, exit_code=UNPROVEN)
    return report


class _Verification:
    """One pass over a recording."""

    def __init__(self, path: str | os.PathLike[str], *, structured: bool, content: bool) -> None:
        recording = Recording(path)
        self._structured = structured
        self._content = content
        index = _steady_index(recording.index) if recording.index is not None else None
        self._index = index if isinstance(index, IndexFacts) else None
        # scanned only now: every stream that the index listed a moment ago has its file by now
        self._recording = Recording(path)
        self._tips: list[tuple[str, Json]] = []
        self._open_spans: dict[str, dict[tuple[str, str], dict[str, Json]]] = {}

    def run(self) -> VerifyReport:
        recording = self._recording
        single = recording.single
        if single is not None and single.name == INDEX:
            return self._index_report(single, _steady_index(single)) or VerifyReport(file=f"{INDEX}.jsonl")
        streams = [*recording.streams(), *recording.sessions()]
        reports = [self._stream(stream) for stream in streams]
        reports = [self._unended(stream, report) for stream, report in zip(streams, reports, strict=True)]
        after = _steady_index(recording.index, self._wanted()) if recording.index is not None else None
        if single is not None:
            return self._beside(reports[0], after)
        reports += self._gone(after)
        reports = [self._unindexed(report, after) for report in reports]
        index = self._index_report(recording.index, after)
        warnings: list[dict[str, Json]] = []
        if not reports:
            warnings.append({"kind": "empty", "file": None, "hint": "the recording holds an index but no stream"})
        return sum_up(reports, index, warnings)

    # --- one stream ---

    def _stream(self, stream: StreamFile) -> VerifyReport:
        file = self._recording.relative(stream.path)
        try:
            live = stream.is_live()
            for attempt in range(_TRIES):
                before = _stamp(stream)
                checked, structure = self._check(stream)
                grown = _stamp(stream) != before
                if not grown or checked.fault is None or attempt == _TRIES - 1:
                    break
                time.sleep(0.02)
            live = live or grown or stream.is_live()
            return self._judge(stream, file, checked, structure, live)
        except (RecordingUnreadable, OSError) as e:
            hint = f"{e}; {e.hint}" if isinstance(e, RecordingUnreadable) else str(e)
            return _failed(VerifyReport(file=file), "unreadable", hint=hint)

    def _check(self, stream: StreamFile) -> tuple[Checked, Structure | None]:
        listed = self._index.sealed.get(stream.name) if self._index else None
        structure = Structure(stream.name, named=stream.named, earlier=self._open_spans) if self._structured else None
        checked = check_stream(
            stream.path,
            stream.content_path if self._content else None,
            stop=size_of(stream.path),
            observe=structure,
            erased=self._index.erased.get(stream.name, ()) if self._index else (),
            hashes=(listed.size,) if listed else (),
        )
        return checked, structure

    def _judge(
        self, stream: StreamFile, file: str, checked: Checked, structure: Structure | None, live: bool
    ) -> VerifyReport:
        opened = structure.opened if structure and structure.applies else _payload(checked.first, "STREAM_OPENED")
        ours = structure.applies if structure else opened is not None
        if checked.size and ours and stream.name != INDEX:
            self._tips.append((file, (opened or {}).get("indexTip")))
        report = VerifyReport(
            file=file,
            level=None if not checked.size else "structured" if structure and structure.applies else "chained",
            covers={"anchored": [], "signed": [], "chainedOnly": [[0, checked.size]] if checked.size else []},
            content=_content_state(checked, self._content),
            gaps=_dropped(file, structure),
            warnings=_warnings(file, structure),
            events=checked.size,
            live=live,
        )
        if structure is not None:
            self._open_spans[stream.name] = structure.open_spans
            if structure.predecessor is not None:
                self._open_spans.pop(structure.predecessor, None)
        fault = checked.fault
        if fault is not None:
            if (
                not checked.size
                and fault.kind == "frame"
                and not self._known(stream)
                and not looks_like_stream(stream.path)
            ):
                hint = "not a stream of a recording: move it out of the directory"
                return _failed(report, "unreadable", Fault("unreadable", fault.index, fault.offset, hint))
            if fault.in_content:
                report = dataclasses.replace(report, file=self._recording.relative(stream.content_path))
            return _failed(report, fault.kind, fault)
        contradiction = self._contradiction(stream, checked)
        if contradiction is not None:
            return _failed(report, contradiction.kind, contradiction)
        closing = _payload(checked.last, "STREAM_SEALED")
        closed = closing is not None and closing.get("count") == checked.size - 1 and not checked.torn
        if checked.leftover[0]:
            cells, length = checked.leftover
            hint = f"{cells} cell{'s' * (cells > 1)} ({length} bytes) that no event refers to"
            where = self._recording.relative(stream.content_path)
            if closed:
                report = dataclasses.replace(report, file=where)
                at, offset = checked.leftover_at
                return _failed(report, "payload_mismatch", Fault("payload_mismatch", at, offset, hint, in_content=True))
            if not live:
                hint += ": leftovers of a crash"
                report = _warn(report, "leftover_cells", where, hint, index=checked.leftover_at[0])
        if closed:
            return dataclasses.replace(report, end="proven_close")
        return self._open_end(report, checked, ours, live)

    def _open_end(self, report: VerifyReport, checked: Checked, ours: bool, live: bool) -> VerifyReport:
        """The verdict on a stream whose end is not proven."""
        at = Fault("unsealed_tail", checked.size, checked.end, "")
        if checked.torn and not live:
            what = "the last line is whole but for its newline" if checked.torn_whole else "the last line is torn"
            hint = f"{what} ({checked.torn} bytes): its writer was stopped while writing; {checked.size} events before it are valid"
            return _failed(report, "torn_tail", dataclasses.replace(at, hint=hint))
        if live:
            hint = "still being written: its writer is alive; verify again when it has ended"
        elif not checked.size:
            hint = "empty: its writer ended before the first event"
        elif not ours:
            if not self._structured:
                return report
            hint = "events without our envelope: the chain holds; whether it is complete can't be told (level chained)"
        else:
            hint = "its writer ended without closing it (killed?): what is there is valid, whether more came after can't be told"
        return _failed(report, "unsealed_tail", dataclasses.replace(at, hint=hint))

    def _unended(self, stream: StreamFile, report: VerifyReport) -> VerifyReport:
        """Add the spans that were started and never ended. In a live stream they are simply running."""
        spans = list(self._open_spans.get(stream.name, {}).values())
        if report.live or not spans:
            return report
        gaps = [{"kind": "unended", "file": report.file, **span} for span in spans[:MOST_GAPS]]
        if len(spans) > MOST_GAPS:
            gaps.append({"kind": "unended", "file": report.file, "more": len(spans) - MOST_GAPS})
        return dataclasses.replace(report, gaps=(*report.gaps, *gaps))

    # --- streams against the index ---

    def _known(self, stream: StreamFile) -> bool:
        return self._index is not None and stream.name in self._index.opened

    def _contradiction(self, stream: StreamFile, checked: Checked) -> Fault | None:
        """What the index, as it was before the stream was read, says against a stream that is whole in itself."""
        if self._index is None:
            return None
        opened, sealed = self._index.opened.get(stream.name), self._index.sealed.get(stream.name)
        if stream.name in self._index.disputed:
            at = self._index.disputed[stream.name]
            return Fault("equivocation", 0, 0, f"the index lists the stream twice with different hashes (line {at})")
        if opened is not None and checked.size and opened.hash != checked.first_hash:
            hint = f"the stream was written anew: the index (line {opened.at}) knows another first line"
            return Fault("history_rewritten", 0, 0, hint, 0, opened.hash, checked.first_hash)
        least = sealed.size if sealed else 1 if opened else 0
        if checked.size < least:
            count = least - checked.size
            entry = sealed or opened
            hint = f"{count} record{'s' * (count > 1)} missing at the end: the index (line {entry.at if entry else 0}) knows {least}"
            return Fault("truncated", checked.size, checked.end, hint, None, str(least), str(checked.size))
        if sealed is not None and checked.hashes.get(sealed.size) != sealed.hash:
            hint = f"the stream was written anew: the index (line {sealed.at}) knows another last line"
            actual = checked.hashes.get(sealed.size)
            return Fault("history_rewritten", sealed.size - 1, 0, hint, None, sealed.hash, actual)
        if sealed is not None and checked.size > sealed.size and not stream.named:
            hint = f"{checked.size - sealed.size} events were added after the close that the index knows"
            return Fault("close_count_mismatch", sealed.size, 0, hint, None, str(sealed.size), str(checked.size))
        return None

    def _gone(self, after: IndexFacts | RecordingUnreadable | None) -> list[VerifyReport]:
        """A report for each stream that the index lists and that is not there."""
        if self._index is None:
            return []
        pruned = self._index.pruned | (after.pruned if isinstance(after, IndexFacts) else set())
        present = {s.name for s in (*self._recording.streams(), *self._recording.sessions())}
        return [
            _failed(
                VerifyReport(file=f"{name}.jsonl"),
                "stream_missing",
                hint=f"the index (line {entry.at}) lists this stream, and its file is gone",
            )
            for name, entry in self._index.opened.items()
            if name not in present and name not in pruned
        ]

    def _unindexed(self, report: VerifyReport, after: IndexFacts | RecordingUnreadable | None) -> VerifyReport:
        name = (report.file or "").removesuffix(".content.jsonl").removesuffix(".jsonl")
        opened = after.opened if isinstance(after, IndexFacts) else {}
        lost = after is None and any(isinstance(tip, dict) for _, tip in self._tips)
        if not lost and not report.live and report.exit_code != UNREADABLE and name not in opened:
            hint = "the index does not list this stream: that it is all there rests on its own close only"
            return _warn(report, "unindexed", report.file, hint)
        return report

    def _wanted(self) -> set[int]:
        sizes = {tip.get("size") for _, tip in self._tips if isinstance(tip, dict)}
        return {size for size in sizes if type(size) is int and size > 0}

    # --- the index ---

    def _index_report(
        self, stream: StreamFile | None, after: IndexFacts | RecordingUnreadable | None
    ) -> VerifyReport | None:
        """The verdict on the index: its own chain, and what the streams, read before it, say of it."""
        file = f"{INDEX}.jsonl"
        if stream is None or after is None:
            witness = next((name for name, tip in self._tips if isinstance(tip, dict)), None)
            if witness is None:
                return None
            hint = (
                f"the index is gone: {witness} and others name it"
                if len(self._tips) > 1
                else f"the index is gone: {witness} names it"
            )
            return _failed(VerifyReport(file=file), "index_missing", hint=hint)
        if isinstance(after, RecordingUnreadable):
            return _failed(VerifyReport(file=file), "unreadable", hint=f"{after}; {after.hint}")
        checked = after.checked
        report = VerifyReport(
            file=file,
            level=None if not checked.size else "structured" if after.structured and self._structured else "chained",
            covers={"anchored": [], "signed": [], "chainedOnly": [[0, checked.size]] if checked.size else []},
            events=checked.size,
        )
        if checked.fault is not None:
            return _failed(report, checked.fault.kind, checked.fault)
        if checked.size and not after.structured:
            return _failed(
                report, "frame", Fault("frame", 0, 0, "the first line of the index is no event of our format")
            )
        for name, tip in self._tips:
            fault = _tip_fault(name, tip, checked)
            if fault is not None:
                return _failed(report, fault.kind, fault)
        if checked.torn and not stream.is_live():
            hint = f"the last line is torn ({checked.torn} bytes); the next writer cuts it off"
            return _failed(report, "torn_tail", Fault("torn_tail", checked.size, checked.end, hint))
        return report

    def _beside(self, report: VerifyReport, after: IndexFacts | RecordingUnreadable | None) -> VerifyReport:
        """The verdict on a single stream, with what the index beside it says. Only a contradiction makes it worse."""
        index = self._index_report(self._recording.index, after)
        report = self._unindexed(report, after)
        if index is None or index.exit_code == OK:
            return report
        if index.exit_code == CONTRADICTED and report.exit_code in (OK, UNPROVEN):
            return dataclasses.replace(index, gaps=report.gaps, warnings=report.warnings)
        return _warn(report, str(index.kind), index.file, str(index.hint))


def _tip_fault(witness: str, tip: Json, index: Checked) -> Fault | None:
    """What the tip that a stream names says against the index."""
    if not isinstance(tip, dict) or type(tip.get("size")) is not int or tip["size"] < 1:
        return None
    size, hash = tip["size"], tip.get("hash")
    if size > index.size:
        hint = f"the index was put back to an older state: {witness} saw {size} lines, {index.size} are there"
        return Fault("rolled_back", index.size, index.end, hint, None, str(size), str(index.size))
    if index.hashes.get(size) != hash:
        hint = f"the index was written anew: {witness} saw another line {size - 1}"
        return Fault("history_rewritten", size - 1, 0, hint, size - 1, _text(hash), index.hashes.get(size))
    return None


def _steady_index(stream: StreamFile, hashes: Iterable[int] = ()) -> IndexFacts | RecordingUnreadable:
    """The index as it stands now; while it is being written to, a fault or torn tail is looked at again."""
    wanted = frozenset(hashes)
    for _ in range(_TRIES):
        before = _stamp(stream)
        try:
            facts = read_index(stream.path, wanted)
        except RecordingUnreadable as e:
            return e
        checked = facts.checked
        if checked.fault is None and not checked.torn:
            break
        if _stamp(stream) == before and not stream.is_live():
            break
        time.sleep(0.02)
    return facts


def _stamp(stream: StreamFile) -> tuple[tuple[int, int, int], ...]:
    """What tells that a stream's files have changed."""
    stamps = []
    for path in (stream.path, stream.content_path):
        try:
            stat = path.stat()
            stamps.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            stamps.append((0, 0, 0))
    return tuple(stamps)


def _failed(report: VerifyReport, kind: str, fault: Fault | None = None, *, hint: str | None = None) -> VerifyReport:
    code = KINDS[kind]
    broken = code in (TAMPERED, CONTRADICTED) and fault is not None
    return dataclasses.replace(
        report,
        is_valid=code in (OK, UNPROVEN),
        kind=kind,
        exit_code=code,
        first_broken_index=fault.index if fault and broken else -1,
        index=fault.index if fault else None,
        seq=fault.seq if fault else None,
        byte_offset=fault.offset if fault else None,
        expected=fault.expected if fault else None,
        actual=fault.actual if fault else None,
        hint=fault.hint if fault else hint,
        salvageable=fault.salvageable if fault else 0,
        end="unproven",
    )


def _warn(report: VerifyReport, kind: str, file: str | None, hint: str, **more: Json) -> VerifyReport:
    return dataclasses.replace(report, warnings=(*report.warnings, {"kind": kind, "file": file, "hint": hint, **more}))


def _content_state(checked: Checked, asked: bool) -> str:
    if not asked:
        return "unchecked"
    if checked.content_fault is not None:
        return "failed" if checked.content_there else "absent"
    if not checked.references and not checked.content_there:
        return "none"
    return f"erased {checked.erased}" if checked.erased else "verified"


def _dropped(file: str, structure: Structure | None) -> tuple[dict[str, Json], ...]:
    """What the events themselves say was lost."""
    if structure is None:
        return ()
    return tuple({"kind": "dropped", "file": file, **entry} for entry in structure.dropped)


def _warnings(file: str, structure: Structure | None) -> tuple[dict[str, Json], ...]:
    if structure is None or not structure.backwards:
        return ()
    hint = f"{structure.backwards} events have an earlier monotonic time than the event before them"
    return ({"kind": "time_backwards", "file": file, "hint": hint, "index": structure.backwards_at},)


def _payload(e: bytes, type_: str) -> dict[str, Json] | None:
    """The payload of an event of our envelope, if it is of that type."""
    if not claims_format(e):
        return None
    event = orjson.loads(e)
    payload = event.get("payload")
    return payload if event.get("type") == type_ and isinstance(payload, dict) else None


def _text(value: Json) -> str:
    return str(value)[:200]

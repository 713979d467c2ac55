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

from otel_agentrec.audit.index import (
    TRIES,
    IndexFacts,
    contradiction,
    stamp,
    steady_index,
    tip_fault,
    tip_size,
)
from otel_agentrec.audit.report import CONTRADICTED, LEVELS, OK, UNPROVEN, UNREADABLE, VerifyReport, sum_up
from otel_agentrec.audit.structure import MOST_GAPS, OpenSpans, Structure, claims_format
from otel_agentrec.errors import RecordingUnreadable, UsageError
from otel_agentrec.journal.check import Checked, Fault, check_stream
from otel_agentrec.journal.content import is_inline
from otel_agentrec.journal.lines import size_of
from otel_agentrec.journal.reader import INDEX, Recording, StreamFile, looks_like_stream

__all__ = ["verify"]

Json = Any
INDEX_FILE = f"{INDEX}.jsonl"


def verify(
    recording: Recording | str | os.PathLike[str],
    *,
    level: str | None = None,
    content: bool = True,
    keys: Iterable[str] = (),
    policy: str | os.PathLike[str] | None = None,
) -> VerifyReport:
    """Verify a recording directory or a single stream.

    Args:
        recording: path of the directory or ``.jsonl`` file.
        level: ``chained`` (bytes, hashes, content, index), ``structured`` (default: also numbers, origin, opening and
            close, starts and ends, what was dropped), ``signed`` or ``anchored`` (need checkpoints).
        content: check the content files too.
        keys, policy: public keys to check checkpoints with (asks for ``signed``).

    Returns:
        The report; see :class:`VerifyReport` for its exit codes.

    Raises:
        RecordingNotFound, RecordingUnreadable: there is nothing to verify.
        UsageError: an unknown level.
    """
    if level is not None and level not in LEVELS:
        raise UsageError(f"unknown level {level!r}", f"one of: {', '.join(LEVELS)}")
    asked = level or ("signed" if list(keys) or policy is not None else "structured")
    path = recording.path if isinstance(recording, Recording) else recording
    report = _Verification(path, structured=asked != "chained", content=content).run()
    if asked in ("signed", "anchored") and report.exit_code in (OK, UNPROVEN):
        hint = f"level {asked} needs a checkpoint, and this recording has none: what is proven is level {report.level}"
        kind = report.kind or "checkpoint_missing"
        report = dataclasses.replace(report, kind=kind, hint=hint, exit_code=UNPROVEN)
    return report


class _Verification:
    """One pass over a recording."""

    def __init__(self, path: str | os.PathLike[str], *, structured: bool, content: bool) -> None:
        self._structured = structured
        self._content = content
        self._before: IndexFacts | None = None
        self._after: IndexFacts | None = None
        self._unreadable_index: RecordingUnreadable | None = None
        index = Recording(path).index
        if index is not None:
            try:
                self._before = steady_index(index)
            except RecordingUnreadable as e:
                self._unreadable_index = e
        # scanned only now: every stream that the index listed a moment ago has its file by now
        self._recording = Recording(path)
        self._tips: dict[str, Json] = {}
        self._heads: dict[str, tuple[int, str]] = {}
        self._predecessors: dict[str, dict[str, Json]] = {}
        self._open_spans: dict[str, OpenSpans] = {}

    def run(self) -> VerifyReport:
        recording = self._recording
        if recording.single is not None and recording.single.name == INDEX:
            self._after = self._before
            return self._index_report() or VerifyReport(file=INDEX_FILE)
        streams = [*recording.streams(), *recording.sessions()]
        reports = [self._stream(stream) for stream in streams]
        reports = [self._unended(stream, report) for stream, report in zip(streams, reports, strict=True)]
        if recording.index is not None and self._unreadable_index is None:
            try:
                self._after = steady_index(recording.index, {tip_size(tip) for tip in self._tips.values()})
            except RecordingUnreadable as e:
                self._unreadable_index = e
        index = self._index_report()
        reports = [self._unindexed(report) for report in reports]
        if recording.single is not None:
            return _beside(reports[0], index)
        names = [stream.name for stream in streams]
        reports = [self._cut_segment(name, report) for name, report in zip(names, reports, strict=True)]
        reports += self._gone(set(names))
        return sum_up(reports, index, self._directory_warnings(reports))

    # --- one stream ---

    def _stream(self, stream: StreamFile) -> VerifyReport:
        try:
            live = stream.is_live()
            for attempt in range(1, TRIES + 1):
                before = stamp(stream)
                checked, structure = self._check(stream)
                changed = stamp(stream) != before
                if not changed or checked.fault is None or attempt == TRIES:
                    break
                time.sleep(0.02)
            return self._judge(stream, checked, structure, live or changed or stream.is_live())
        except RecordingUnreadable as e:
            return VerifyReport(file=self._recording.relative(stream.path)).failed("unreadable", hint=f"{e}; {e.hint}")
        except OSError as e:
            return VerifyReport(file=self._recording.relative(stream.path)).failed("unreadable", hint=str(e))

    def _check(self, stream: StreamFile) -> tuple[Checked, Structure | None]:
        index = self._before
        structure = Structure(stream.name, named=stream.named, earlier=self._open_spans) if self._structured else None
        checked = check_stream(
            stream.path,
            stream.content_path if self._content else None,
            stop=size_of(stream.path),
            observe=structure,
            erased=index.erased.get(stream.name, ()) if index else (),
            hashes=[end.size for end in index.ends(stream.name)] if index else (),
        )
        return checked, structure

    def _judge(self, stream: StreamFile, checked: Checked, structure: Structure | None, live: bool) -> VerifyReport:
        file, content_file = self._recording.relative(stream.path), self._recording.relative(stream.content_path)
        structured = structure is not None and structure.applies and checked.size > 0
        opening = _payload(checked.first, "STREAM_OPENED")
        self._take_in(stream.name, file, checked, structure, opening or {})
        report = VerifyReport(
            file=file,
            level="structured" if structured else "chained" if checked.size else None,
            covers={"anchored": [], "signed": [], "chainedOnly": [[0, checked.size]] if checked.size else []},
            content=_content_state(stream, checked, self._content),
            gaps=tuple({"kind": "dropped", "file": file, **d} for d in structure.dropped) if structure else (),
            events=checked.size,
            live=live,
        )
        if structure is not None and structure.backwards:
            hint = f"{structure.backwards} events have an earlier monotonic time than the event before them"
            report = report.warned("time_backwards", file, hint, index=structure.backwards_at)
        fault = checked.fault
        if fault is None and self._before is not None:
            fault = contradiction(self._before, stream, checked)
        if fault is not None:
            if fault.kind == "frame" and not checked.size and not self._is_stream(stream):
                hint = "not a stream of a recording: move it out of the directory"
                return report.failed("unreadable", dataclasses.replace(fault, hint=hint))
            if fault.in_content:
                report = dataclasses.replace(report, file=content_file)
            return report.failed(fault.kind, fault)
        closing = _payload(checked.last, "STREAM_SEALED")
        closed = closing is not None and closing.get("count") == checked.size - 1 and not checked.torn
        count, length = checked.leftover
        if count and (closed or not live):
            hint = f"{count} cell{'s' * (count > 1)} ({length} bytes) that no event refers to"
            at, offset = checked.leftover_at
            if closed:
                report = dataclasses.replace(report, file=content_file, content="failed")
                return report.failed("payload_mismatch", Fault("payload_mismatch", at, offset, hint, in_content=True))
            report = report.warned("leftover_cells", content_file, f"{hint}: leftovers of a crash", index=at)
        if closed:
            return dataclasses.replace(report, end="proven_close")
        return self._open_end(report, checked, ours=opening is not None or structured, live=live)

    def _take_in(
        self, name: str, file: str, checked: Checked, structure: Structure | None, opening: dict[str, Json]
    ) -> None:
        """Keep what a stream says of the index and of its predecessor."""
        self._tips[file] = opening.get("indexTip")
        self._heads[name] = (checked.size, checked.head)
        before = opening.get("prevStream")
        if isinstance(before, dict) and isinstance(before.get("id"), str) and "/" not in before["id"]:
            self._predecessors[before["id"]] = {**before, "witness": file}
        if structure is not None:
            self._open_spans[name] = structure.open_spans
            if structure.predecessor is not None:
                self._open_spans.pop(structure.predecessor, None)

    def _is_stream(self, stream: StreamFile) -> bool:
        listed = self._before is not None and stream.name in self._before.opened
        return listed or looks_like_stream(stream.path)

    def _open_end(self, report: VerifyReport, checked: Checked, *, ours: bool, live: bool) -> VerifyReport:
        """The verdict on a stream whose end is not proven."""
        kind = "unsealed_tail"
        if checked.torn and not live:
            kind = "torn_tail"
            what = "the last line is whole but for its newline" if checked.torn_whole else "the last line is torn"
            hint = (
                f"{what} ({checked.torn} bytes): its writer was stopped; the {checked.size} events before it are valid"
            )
        elif live:
            hint = "still being written: its writer is alive; verify again when it has ended"
        elif not checked.size:
            hint = "empty: its writer ended before the first event"
        elif not ours:
            if not self._structured:
                return report
            hint = "its events have no agentrec/1 envelope: the chain holds, more can't be told (--level chained asks no more)"
        else:
            hint = "its writer ended without closing it (killed?): what is there is valid, more may have followed"
        return report.failed(kind, Fault(kind, checked.size, checked.end, hint))

    def _unended(self, stream: StreamFile, report: VerifyReport) -> VerifyReport:
        """Add the spans that were started and never ended. In a live stream they are simply running."""
        spans = list(self._open_spans.get(stream.name, {}).values())
        if report.live or not spans:
            return report
        gaps = [{"kind": "unended", "file": report.file, **span} for span in spans[:MOST_GAPS]]
        if len(spans) > MOST_GAPS:
            gaps.append({"kind": "unended", "file": report.file, "more": len(spans) - MOST_GAPS})
        return dataclasses.replace(report, gaps=(*report.gaps, *gaps))

    # --- streams, the index, and one another ---

    def _cut_segment(self, name: str, report: VerifyReport) -> VerifyReport:
        """What the next segment says of a stream's end."""
        said = self._predecessors.get(name)
        if said is None or report.exit_code not in (OK, UNPROVEN):
            return report
        size, head = self._heads[name]
        if type(said.get("size")) is int and size < said["size"]:
            hint = f"{said['size'] - size} records missing at the end: {said['witness']} goes on from {said['size']}"
            return report.failed("truncated", Fault("truncated", size, 0, hint, None, str(said["size"]), str(size)))
        if said.get("size") == size and said.get("hash") != head:
            hint = f"the stream was written anew: {said['witness']} goes on from another last line"
            fault = Fault("history_rewritten", size - 1, 0, hint, None, str(said.get("hash"))[:64], head)
            return report.failed("history_rewritten", fault)
        return report

    def _gone(self, present: set[str]) -> list[VerifyReport]:
        """A report for each stream that the index lists, or a later segment names, and that is not there."""
        pruned: set[str] = set()
        missing: dict[str, str] = {}
        for index in filter(None, (self._before, self._after)):
            pruned |= index.pruned
        if self._before is not None:
            missing = {name: f"the index (line {entry.at}) lists" for name, entry in self._before.opened.items()}
        for name, said in self._predecessors.items():
            # a listing made while streams come and go may show a later one without an earlier one: look again
            if not (self._recording.directory / f"{name}.jsonl").exists():
                missing.setdefault(name, f"{said['witness']} goes on from")
        return [
            VerifyReport(file=f"{name}.jsonl").failed("stream_missing", hint=f"{by} this stream, and its file is gone")
            for name, by in missing.items()
            if name not in present and name not in pruned
        ]

    def _unindexed(self, report: VerifyReport) -> VerifyReport:
        name = (report.file or "").removesuffix(".content.jsonl").removesuffix(".jsonl")
        named = any(tip_size(tip) for tip in self._tips.values())
        lost = self._after is None and (named or self._unreadable_index is not None)
        if lost or report.live or report.exit_code == UNREADABLE or (self._after and name in self._after.opened):
            return report
        hint = "the index does not list this stream: that it is all there rests on its own close only"
        return report.warned("unindexed", report.file, hint)

    def _index_report(self) -> VerifyReport | None:
        """The verdict on the index: its own chain, and what the streams, read before it, say of it."""
        report = VerifyReport(file=INDEX_FILE)
        if self._unreadable_index is not None:
            return report.failed("unreadable", hint=f"{self._unreadable_index}; {self._unreadable_index.hint}")
        facts = self._after
        if facts is None:
            witness = next((file for file, tip in self._tips.items() if tip_size(tip)), None)
            hint = f"the index is gone: {witness} names a line of it"
            return report.failed("index_missing", hint=hint) if witness else None
        checked = facts.checked
        report = dataclasses.replace(
            report,
            level="structured" if facts.structured and self._structured else "chained" if checked.size else None,
            covers={"anchored": [], "signed": [], "chainedOnly": [[0, checked.size]] if checked.size else []},
            events=checked.size,
        )
        fault = checked.fault
        if fault is None and checked.size and not facts.structured:
            fault = Fault("frame", 0, 0, "its first line is no event of our format")
        if fault is None:
            found = (tip_fault(file, tip, checked) for file, tip in self._tips.items())
            fault = next(filter(None, found), None)
        if fault is None and checked.torn and self._recording.index is not None and not self._recording.index.is_live():
            hint = f"its last line is torn ({checked.torn} bytes); the next writer cuts it off"
            fault = Fault("torn_tail", checked.size, checked.end, hint)
        return report if fault is None else report.failed(fault.kind, fault)

    def _directory_warnings(self, reports: list[VerifyReport]) -> list[dict[str, Json]]:
        found: list[dict[str, Json]] = []
        if not reports:
            found.append({"kind": "empty", "file": None, "hint": "the recording holds an index but no stream"})
        for path in self._recording.orphans():
            hint = "a content file without its stream: plaintext that nothing refers to"
            found.append({"kind": "leftover_cells", "file": self._recording.relative(path), "hint": hint})
        return found


def _beside(report: VerifyReport, index: VerifyReport | None) -> VerifyReport:
    """The verdict on a single stream, with what the index beside it says. Only a contradiction makes it worse."""
    if index is None or index.exit_code == OK:
        return report
    if index.exit_code == CONTRADICTED and index.worse_than(report):
        return dataclasses.replace(index, gaps=report.gaps, warnings=report.warnings, events=report.events)
    return report.warned(str(index.kind), index.file, str(index.hint))


def _content_state(stream: StreamFile, checked: Checked, asked: bool) -> str:
    if not asked:
        return "unchecked"
    if checked.content_fault is not None:
        return "failed" if checked.content_there else "absent"
    if not checked.references and not checked.content_there:
        return "inline" if is_inline(stream.path) else "none"
    return f"erased {checked.erased}" if checked.erased else "verified"


def _payload(e: bytes, type_: str) -> dict[str, Json] | None:
    """The payload of an event of our envelope, if it is of that type."""
    if not claims_format(e):
        return None
    event = orjson.loads(e)
    payload = event.get("payload")
    return payload if event.get("type") == type_ and isinstance(payload, dict) else None

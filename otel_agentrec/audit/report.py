"""The result of a verification: one report per stream, and one that sums up a directory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from otel_agentrec.journal.check import Fault

__all__ = ["KINDS", "LEVELS", "VerifyReport", "sum_up"]

Json = Any
LEVELS = ("chained", "structured", "signed", "anchored")

OK, TAMPERED, UNREADABLE, UNPROVEN, CONTRADICTED = 0, 1, 2, 3, 4

KINDS: dict[str, int] = {
    "frame": TAMPERED,
    "noncanonical_bytes": TAMPERED,
    "hash_mismatch": TAMPERED,
    "prev_hash_mismatch": TAMPERED,
    "seq_gap": TAMPERED,
    "seq_repeat": TAMPERED,
    "time_backwards": OK,
    "wrong_origin": TAMPERED,
    "genesis_missing": TAMPERED,
    "torn_tail": UNPROVEN,
    "unsealed_tail": UNPROVEN,
    "leftover_cells": OK,
    "unindexed": OK,
    "index_missing": TAMPERED,
    "stream_missing": TAMPERED,
    "checkpoint_missing": UNPROVEN,
    "truncated": TAMPERED,
    "history_rewritten": CONTRADICTED,
    "rolled_back": CONTRADICTED,
    "equivocation": CONTRADICTED,
    "anchor_invalid": CONTRADICTED,
    "unwitnessed": UNPROVEN,
    "not_kept": OK,
    "unread_lines": OK,
    "close_count_mismatch": TAMPERED,
    "payload_mismatch": TAMPERED,
    "payload_missing": TAMPERED,
    "payload_erased": TAMPERED,
    "unreadable": UNREADABLE,
}
"""Kind of a finding -> exit code. 0: only a warning."""

_BADNESS = {OK: 0, UNPROVEN: 1, UNREADABLE: 2, TAMPERED: 3, CONTRADICTED: 4}


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was checked and the first thing that failed.

    Args:
        is_valid: False when something was changed, is missing, unreadable, or contradicts a head held elsewhere. True also
            for a valid prefix whose end is not proven: look at ``exit_code`` or ``end``.
        file: the file concerned, relative to the recording directory.
        first_broken_index: 0-based line of ``file`` that fails; -1 when none does.
        kind: see :data:`KINDS`; None when all is well.
        index: the line that ``kind`` speaks of (also for a torn or unsealed tail); byte_offset: where it begins.
        seq: sequence number of the event concerned.
        level: the level that was reached: ``chained``, ``structured``, or None.
        covers: ranges of events ``{"anchored": [], "signed": [], "chainedOnly": [[0, n]]}``.
        content: ``verified``, ``erased <n>``, ``absent`` (the file is gone), ``failed``, ``none`` (no event refers to
            content) or ``unchecked``.
        end: ``proven_close`` (the writer closed the stream, nothing was cut off), ``proven_head`` or ``unproven``.
        gaps: what the events themselves say is missing: ``{kind: dropped | unended, file, index, ...}``.
        warnings: findings that are no fault: ``{kind, file, hint, ...}``.
        salvageable: lines after the first broken one that are whole in themselves.
        events: lines that were checked.
        live: the stream's writer is alive.
        exit_code: 0 ok · 1 tampered · 2 unreadable · 3 valid prefix, end or level not proven · 4 contradicts another head.
        streams, index_report: for a directory, the report of each stream, and of the index.
        kept: of event records that another system kept, how many were read (``files``, ``records``, ``again``, ``late``,
            ``foreign``, ``unread``).
        against: what the comparison with files of other systems gave, see :class:`otel_agentrec.export.kept.compare.Compared`.
    """

    is_valid: bool = True
    file: str | None = None
    first_broken_index: int = -1
    kind: str | None = None
    index: int | None = None
    seq: int | None = None
    byte_offset: int | None = None
    expected: Json = None
    actual: Json = None
    hint: str | None = None
    level: str | None = None
    covers: dict[str, list[list[int]]] = field(default_factory=dict)
    content: str = "none"
    end: str = "unproven"
    gaps: tuple[dict[str, Json], ...] = ()
    warnings: tuple[dict[str, Json], ...] = ()
    salvageable: int = 0
    events: int = 0
    live: bool = False
    exit_code: int = OK
    streams: tuple[VerifyReport, ...] | None = None
    index_report: VerifyReport | None = None
    kept: dict[str, Json] | None = None
    against: dict[str, Json] | None = None

    def failed(self, kind: str, fault: Fault | None = None, *, hint: str | None = None) -> VerifyReport:
        """This report with a finding of that kind, which decides its exit code."""
        code = KINDS[kind]
        at = fault or Fault(kind, -1, -1, hint or "")
        return dataclasses.replace(
            self,
            is_valid=code in (OK, UNPROVEN),
            kind=kind,
            exit_code=code,
            first_broken_index=at.index if code in (TAMPERED, CONTRADICTED) else -1,
            index=at.index if fault else None,
            seq=at.seq,
            byte_offset=at.offset if fault else None,
            expected=at.expected,
            actual=at.actual,
            hint=at.hint,
            salvageable=at.salvageable,
            end="unproven",
        )

    def warned(self, kind: str, file: str | None, hint: str, **more: Json) -> VerifyReport:
        """This report with one more warning."""
        return dataclasses.replace(self, warnings=(*self.warnings, {"kind": kind, "file": file, "hint": hint, **more}))

    def worse_than(self, other: VerifyReport) -> bool:
        return _BADNESS[self.exit_code] > _BADNESS[other.exit_code]

    def to_json(self) -> dict[str, Json]:
        """The report with camelCase keys. For a directory ``index`` is the report of the index stream; the line number
        then stands in ``firstBrokenIndex`` and in ``streams``."""
        out: dict[str, Json] = {
            "isValid": self.is_valid,
            "file": self.file,
            "firstBrokenIndex": self.first_broken_index,
            "kind": self.kind,
            "index": self.index,
            "seq": self.seq,
            "byteOffset": self.byte_offset,
            "expected": self.expected,
            "actual": self.actual,
            "hint": self.hint,
            "level": self.level,
            "covers": self.covers,
            "content": self.content,
            "end": self.end,
            "gaps": list(self.gaps),
            "warnings": list(self.warnings),
            "salvageable": self.salvageable,
            "events": self.events,
            "live": self.live,
            "exitCode": self.exit_code,
        }
        if self.streams is not None:
            out["streams"] = [report.to_json() for report in self.streams]
            out["index"] = self.index_report.to_json() if self.index_report else None
        if self.kept is not None:
            out["kept"] = self.kept
        if self.against is not None:
            out["against"] = self.against
        return out


def sum_up(
    streams: Sequence[VerifyReport], index: VerifyReport | None, warnings: Sequence[dict[str, Json]]
) -> VerifyReport:
    """One report for a directory: the fields of the worst stream (the index counts as one), gaps and warnings of all."""
    everything = [*streams, *([index] if index else [])]
    worst = max(everything, key=lambda report: _BADNESS[report.exit_code], default=VerifyReport())
    if worst.exit_code == OK and streams:
        worst = dataclasses.replace(streams[0], file=None, events=0)
    elif worst is index and worst.exit_code == OK:
        worst = dataclasses.replace(worst, file=None)
    if worst.exit_code in (OK, UNPROVEN):
        worst = dataclasses.replace(worst, content=_content(streams))
    return dataclasses.replace(
        worst,
        gaps=tuple(gap for report in everything for gap in report.gaps),
        warnings=(*(w for report in everything for w in report.warnings), *warnings),
        events=sum(report.events for report in streams),
        live=any(report.live for report in streams),
        streams=tuple(streams),
        index_report=index,
    )


def _content(streams: Sequence[VerifyReport]) -> str:
    """One word for the content of all streams, none of which is at fault."""
    states = [report.content for report in streams]
    erased = sum(int(state.split()[1]) for state in states if state.startswith("erased "))
    if erased:
        return f"erased {erased}"
    return next((state for state in ("unchecked", "verified", "inline") if state in states), "none")

"""The result of verify in words: one line of verdict, then what broke, what is proven and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from otel_agentrec.cli.terminal import plain
from otel_agentrec.cli.wording import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from otel_agentrec.audit.report import VerifyReport

__all__ = ["MEANING", "verdict"]

Json = Any

MEANING: dict[str, str] = {
    "frame": "a line does not have the form of a recording's line",
    "noncanonical_bytes": "a line was written anew in another form",
    "hash_mismatch": "a line was changed",
    "prev_hash_mismatch": "a line does not follow the one before it",
    "seq_gap": "lines are missing",
    "seq_repeat": "a line stands there twice",
    "time_backwards": "the clock went backwards",
    "wrong_origin": "a line comes from another recording",
    "genesis_missing": "the beginning is missing",
    "torn_tail": "the last line was cut off in the middle",
    "unsealed_tail": "nobody closed it",
    "leftover_cells": "the content file holds words that no event names",
    "unindexed": "the index does not list it",
    "index_missing": "the index is missing",
    "stream_missing": "a stream that the index lists is missing",
    "checkpoint_missing": "there is no checkpoint",
    "truncated": "the end was cut off",
    "history_rewritten": "it is not the history that is known elsewhere",
    "rolled_back": "it is older than what is known elsewhere",
    "equivocation": "there are two histories of the same place",
    "anchor_invalid": "what is kept elsewhere was changed, or can't be read",
    "unwitnessed": "nobody else has seen it",
    "not_kept": "not all of a recording is there",
    "unread_lines": "lines of it can't be read",
    "close_count_mismatch": "its closing line counts other lines than there are",
    "payload_mismatch": "recorded words were changed",
    "payload_missing": "recorded words are missing",
    "payload_erased": "recorded words were erased, and the index does not say so",
    "unreadable": "it can't be read",
}
"""Kind of a finding -> what it means, to follow the file's name."""

HEADS: dict[int, tuple[str, str]] = {
    0: ("INTACT", "bold green"),
    1: ("CHANGED", "bold red"),
    2: ("UNREADABLE", "bold red"),
    3: ("NOT ALL PROVEN", "bold yellow"),
    4: ("CONTRADICTED", "bold red"),
}
"""Exit code -> the first words of the verdict and their style."""

MOST = 8
"""Rows of one kind that are printed; --json has them all."""


def verdict(report: VerifyReport) -> Iterator[RenderableType]:
    """What to print: a line with the verdict, then where it broke, what is proven and what is not."""
    from rich.table import Table
    from rich.text import Text

    head, style = HEADS[report.exit_code]
    yield Text.assemble((head, style), f"  {_sentence(report)}")
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(style="dim", no_wrap=True, min_width=12)
    rows.add_column(overflow="fold")
    for label, lines in _details(report):
        for line in lines[:MOST]:
            rows.add_row(f"  {label}", Text(line))
            label = ""
        if len(lines) > MOST:
            rows.add_row("", f"and {len(lines) - MOST} more; --json has them all")
    yield rows


def _details(report: VerifyReport) -> Iterator[tuple[str, list[str]]]:
    if report.exit_code:
        yield "hint", [plain(report.hint)] if report.hint else []
    if report.exit_code and not (report.against and report.against["differences"]):
        yield "expected", [] if report.expected is None else [plain(str(report.expected), 200)]
        yield "found", [] if report.actual is None else [plain(str(report.actual), 200)]
    yield "also", _others(report)
    yield "differs", _differences(report)
    yield "compared", _compared(report)
    yield "proven", _proven(report)
    yield "not proven", _not_proven(report)
    yield "warning", [f"{_named(w)} ({w.get('hint') or w.get('kind')})" for w in report.warnings]


def _sentence(report: VerifyReport) -> str:
    events = count(report.events, "event")
    if report.streams is not None:
        events += f" in {count(len(report.streams), 'stream')}"
    if report.exit_code == 0:
        return f"{events}: nothing was changed, removed or put in"
    what = f"{MEANING.get(report.kind or '', report.kind)} ({report.kind})"
    if report.file:
        what = f"{_place(report, report)}: {what}"
    return f"what is there is intact ({events}), but {what}" if report.exit_code == 3 else what


def _others(report: VerifyReport) -> list[str]:
    """The findings beside the one of the verdict."""
    everything = [*(report.streams or ()), *([report.index_report] if report.index_report else [])]
    found = [
        r for r in everything if r.exit_code and (r.file, r.kind, r.index) != (report.file, report.kind, report.index)
    ]
    return [f"{_place(r, report)}: {MEANING.get(r.kind or '', r.kind)} ({r.kind})" for r in found]


def _place(found: VerifyReport, whole: VerifyReport) -> str:
    """The file of a finding and its line; in what another system kept, the stream and the number of the event."""
    if found.index is None or (found is whole and found.exit_code != 1):
        return plain(found.file or "")
    line = f"event {found.index}" if whole.kept is not None else f"line {found.index + 1}"
    return f"{plain(found.file or '')}, {line}"


def _differences(report: VerifyReport) -> list[str]:
    """One line for each thing in which the recording and what another system kept differ."""
    lines = []
    for d in (report.against or {}).get("differences", ()):
        where = plain(d["stream"] or "a mark without a stream")
        where += "" if d["seq"] is None else f", event {d['seq']}"
        if d["what"] in ("hash", "prev_hash", "record_id"):
            what = f"{d['what']} is {_short(d['recorded'])}, kept was {_short(d['kept'])}"
        elif d["what"] == "event":
            what = f"not there, kept was {_short(d['kept'])}"
        elif d["what"] == "stream":
            what = f"no such stream, kept were {plain(d['kept'])}"
        else:
            what = plain(d["hint"])
        lines.append(f"{where}: {what} ({plain(d['place'])})")
    return lines


def _short(value: str | None) -> str:
    return "nothing" if value is None else plain(value if len(value) <= 40 else f"{value[:12]}…")


def _compared(report: VerifyReport) -> list[str]:
    """What was held against the recording, and how much of it others have seen."""
    told = report.against
    if told is None:
        return []
    kinds = (("spans", "stamp"), ("events", "event record"), ("checkpoints", "checkpoint"))
    parts = [count(told[key], word) for key, word in kinds if told[key]] or ["nothing"]
    passed = [
        f"{told[key]} of {word}"
        for key, word in (("others", "other recordings"), ("pruned", "pruned streams"))
        if told[key]
    ]
    words = [f"{', '.join(parts)} in {plain(', '.join(told['files']))}"]
    words[0] += f"; passed over: {', '.join(passed)}" if passed else ""
    unseen = told["nodes"] - told["witnessed"]
    words.append(f"{told['witnessed']} of {count(told['nodes'], 'call')} witnessed there, {unseen} not")
    if told["unread"]:
        words.append(f"{count(told['unread'], 'line')} can't be read")
    return words


def _proven(report: VerifyReport) -> list[str]:
    if report.exit_code == 2:
        return []
    if report.exit_code in (1, 4):
        whole = []
        # What contradicts a recording says nothing of the lines before: they may have been written anew too, or be gone.
        own = report.exit_code == 1 or report.kept is not None
        if report.first_broken_index > 0 and own:
            before = (
                f"the {count(report.first_broken_index, 'event')} before it in that stream"
                if report.kept is not None
                else f"the {count(report.first_broken_index, 'line')} before it in that file"
            )
            whole.append(before)
        if report.salvageable:
            whole.append(
                f"{count(report.salvageable, 'later line')} that {'is' if report.salvageable == 1 else 'are'} whole"
            )
        return whole
    words = ["every event is as it was written, and in its place"]
    if report.streams is not None and report.kept is None:
        words[0] += "; no stream of the index is missing"
    if report.content == "verified":
        words.append("what people, models and tools said is what the events stand for")
    elif report.content.startswith("erased"):
        words.append(f"what was said is what the events stand for; {report.content}, as the index says")
    if any(one.content == "inline" for one in report.streams or (report,)):
        words.append("what was said is as it was written; it stands in the events themselves and can't be erased")
    if report.end == "proven_close":
        words.append("the writer closed it: nothing was cut off at the end")
    seen = _ranges(report, "anchored")
    if seen:
        of = count(report.events, "event")
        words.append(f"{seen} of {of} can't have been written anew: another system has a hash that seals them")
    return words


def _ranges(report: VerifyReport, how: str) -> int:
    """How many events are covered so."""
    return sum(high - low for r in (report.streams or (report,)) for low, high in r.covers.get(how, ()))


def _not_proven(report: VerifyReport) -> list[str]:
    words = []
    if report.exit_code in (0, 3):
        if report.end == "unproven":
            words.append("that nothing is missing at the end" + (": it is still being written" if report.live else ""))
        if report.content == "unchecked":
            words.append("what was said: the content files were not checked")
        if report.kept is not None:
            words.append(
                "what was said, and that no stream is missing: content and index are not kept there, not checked"
            )
        elif not _ranges(report, "signed") and not _ranges(report, "anchored"):
            words.append(
                "that nobody wrote all of it anew: it is not signed, and no copy of its head is held elsewhere"
            )
        elif alone := _ranges(report, "chainedOnly"):
            words.append(
                f"that the other {count(alone, 'event')} {'was' if alone == 1 else 'were'} not written anew: nobody else has seen them"
            )
    lost = sum(int(gap.get("count") or 1) for gap in report.gaps if gap.get("kind") == "dropped")
    if lost:
        words.append(f"{count(lost, 'thing')} could not be recorded when it happened; the recording says so itself")
    return words


def _named(warning: dict[str, Json]) -> str:
    meaning = MEANING.get(str(warning.get("kind")), str(warning.get("kind")))
    return plain(f"{warning['file']}: {meaning}" if warning.get("file") else meaning)

"""A cache of what a recording holds."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from otel_agentrec.audit.verify import verify
from otel_agentrec.clients.answers import result_of_record
from otel_agentrec.errors import RecordingTampered, UsageError
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import Effect
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.keys import KeyRing, NoKey
from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.resume.choosing import Resumable, choose_root, resumables
from otel_agentrec.resume.entries import Entry
from otel_agentrec.resume.recorded import recorded_calls
from otel_agentrec.resume.requests import Store
from otel_agentrec.resume.results import lost_answer, output_of_record
from otel_agentrec.resume.tape import Outcome, Recorded

if TYPE_CHECKING:
    from otel_agentrec.resume.cache import Match, ResumeCache

__all__ = ["load"]


def load(
    kind: type[ResumeCache], path: str | os.PathLike[str], run: str | None, match: Match, options: dict[str, Any]
) -> ResumeCache:
    """See :meth:`ResumeCache.from_recording`."""
    recording = Recording(path)
    report = verify(recording)
    if report.exit_code == RecordingTampered.exit_code:
        at = f" in {report.file}" if report.file else ""
        raise RecordingTampered(f"{path} is not as it was written: {report.kind}{at}")
    view = fold(recording)
    where = shlex.quote(os.fspath(path))
    root: str | None = None
    if match == "occurrence":
        root = choose_root(resumables(recording, view), where, run).root
    elif run is not None:
        root = _any_root(resumables(recording, view), where, run).root
    cache = kind(match, ring=KeyRing.of(recording.directory, create=False), **options)
    if match == "occurrence":
        cache.recording, cache.run = os.fspath(recording.directory), root
    store = Store()
    for call in recorded_calls(recording, root, cache.ring, cache.inert, view):
        entry = _entry(call, store)
        if entry is not None:
            cache.add(entry)
        elif (said := _said_before_it_broke(call)) is not None:
            for key in call.keys:
                cache.add_cut_stream(key, said)
    return cache


def _said_before_it_broke(call: Recorded) -> str | None:
    """What a model's answer had said when its stream, or the whole process, broke off; None: it did not."""
    record = call.answer
    if call.kind is not NodeType.MODEL or call.outcome not in (Outcome.CUT, Outcome.OPEN, Outcome.FAILED):
        return None
    if not isinstance(record, NodeIoRecord) or record.streamed is False:
        return None
    text = record.output_text
    if call.outcome is Outcome.FAILED and not text:
        return None
    return text if text and lost_in(text) is None else ""


def _any_root(found: list[Resumable], where: str, run: str) -> Resumable:
    """The run that is meant, finished or not. Raises UsageError."""
    exact = [one for one in found if any(attempt.id == run for attempt in one.runs)]
    meant = exact or [one for one in found if any(attempt.id.startswith(run) for attempt in one.runs)]
    if len(meant) != 1:
        said = f"{len(meant)} runs begin with {run!r}" if meant else f"there is no run {run!r}"
        raise UsageError(f"{said} in {where}", f"otel-agentrec runs {where} lists them")
    return meant[0]


def _entry(call: Recorded, store: Store) -> Entry | None:
    """What a cache can hand out: whole answers only. What failed, or broke off, is called again."""
    if call.outcome is not Outcome.DONE or call.unfit is not None or not call.keys:
        return None
    known = call.answer
    value: Any
    if isinstance(known, Effect):
        if known.codec is not None:  # only the adapter that wrote it can read it
            return None
        value = known.output
    elif isinstance(known, NodeIoRecord) and lost_answer(known) is None:
        value = result_of_record(known) if call.kind is NodeType.MODEL else output_of_record(known)
    else:
        return None
    try:
        held = store.hold(call.request) if call.request is not None else None
    except NoKey:
        held = None
    return Entry(call.kind, value, call.keys, call.aliases, held, call.call_id, label=call.label, step=call.step)

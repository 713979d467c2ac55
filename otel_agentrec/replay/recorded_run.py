"""A recording as a replay needs it: verified, the runs that are meant, their calls, and what of them can't be handed out.

All is checked before the first answer. What was changed, spliced or cut off is refused; a recording that its writer did not
close (a crash) is replayed up to where it ends.
"""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from otel_agentrec.audit.report import CONTRADICTED, OK, TAMPERED, UNPROVEN
from otel_agentrec.audit.verify import verify
from otel_agentrec.errors import CannotReplay, RecordingBusy, RecordingTampered, RecordingUnreadable
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.effects import DONE, FAILED, NOT_BEGUN, Effect
from otel_agentrec.nodes.exchange import RecordedResponse
from otel_agentrec.nodes.fold import View, fold
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.wire import record_of_wire
from otel_agentrec.nodes.wires import Wire
from otel_agentrec.records import NodeIoRecord
from otel_agentrec.replay.quick import QuickKeys
from otel_agentrec.resume.asked_tools import asked_tools
from otel_agentrec.resume.choosing import Resumable, resumables
from otel_agentrec.resume.tape import Outcome, Recorded
from otel_agentrec.resume.wire_tape import abandoned, recorded_call

__all__ = ["RecordedRun", "load"]

LISTED = 8
"""Most runs that an error names."""
KEPT = 256 << 10
"""Bytes of an answer up to which it is kept in memory."""


@dataclass(frozen=True, slots=True)
class Ready:
    """An answer that is read already. ``tools``: names of those that it asks for; ``response``: None where it is so long that
    it is read when it is handed out; ``origin``: where it stands."""

    tools: tuple[str, ...]
    response: RecordedResponse | None
    origin: dict[str, Any]


@dataclass(frozen=True)
class RecordedRun:
    """What a replay answers from.

    Args:
        directory: of the recording.
        runs: ids of the runs that are replayed, all attempts of each.
        calls: the requests to models in the order in which they left; the ``answer`` of each is its :class:`Wire`.
        ready: what each of them hands out, by its wire id.
        effects: the tool calls that were intercepted, in the order in which they began.
        quick: the keys of the recorded requests.
        inner: ids of effects inside which calls are recorded (an agent as a tool): they run again.
        ends_open: the recording was not closed: the program may have done more than is recorded.
        unseen: names of tools that the recorded answers ask for and that nobody intercepted then.
    """

    directory: Path
    runs: tuple[str, ...]
    calls: tuple[Recorded, ...]
    ready: dict[str, Ready]
    quick: QuickKeys
    effects: tuple[Effect, ...]
    inner: frozenset[str]
    ends_open: bool
    unseen: tuple[str, ...]
    ring: KeyRing
    inert: tuple[str, ...]
    view: View


def load(
    recording: str | os.PathLike[str],
    runs: Iterable[str] = (),
    *,
    inert: Iterable[str] = (),
    collapse: bool = False,
    rerun: Iterable[str] = (),
) -> RecordedRun:
    """Verify a recording and read what a replay answers from.

    Args:
        recording: the recording directory.
        runs: ids of the runs that are meant, or the beginnings of them; default: all runs of the one process that was
            recorded there.
        inert: paths of request bodies that can't change an answer.
        collapse: leave out attempts that were made again (429s): their answer is that of the last one.
        rerun: names of tools that are not answered, so that what is recorded of them need not be there.

    Raises:
        RecordingTampered: it is not as it was written.
        RecordingBusy: it is being written.
        CannotReplay: no run, or not those of one process, are meant; or an answer is not there any more.
        RecordingNotFound, RecordingUnreadable: there is no recording.
        UsageError: ``inert`` holds what is no path.
    """
    inert = tuple(inert)
    inert_of(inert)
    opened = Recording(recording)
    if opened.single is not None:
        raise CannotReplay(f"{recording} is one stream of a recording", f"give the directory: {opened.directory}")
    _check(opened, recording)
    view = fold(opened)
    chosen = _choose(opened, view, tuple(runs), shlex.quote(os.fspath(recording)))
    ring = KeyRing.of(opened.directory)
    ids = {run.id for one in chosen for run in one.runs}
    calls = tuple(_calls(view, chosen, ring, inert, collapse))
    effects = tuple(e for e in view.effects if e.run in ids and e.state != NOT_BEGUN)
    quick = QuickKeys(inert)
    ready = {call.answer.wire_id: _read(view, call, quick) for call in calls if call.unfit is None}
    run = RecordedRun(
        directory=opened.directory,
        runs=tuple(run.id for one in chosen for run in one.runs),
        calls=calls,
        ready=ready,
        quick=quick,
        effects=effects,
        inner=_with_calls_inside(view, calls, effects),
        ends_open=_ends_open(opened, calls, effects),
        unseen=_unseen(ready.values(), effects),
        ring=ring,
        inert=inert,
        view=view,
    )
    _check_answers(run, frozenset(rerun), recording)
    return run


def _check(opened: Recording, where: str | os.PathLike[str]) -> None:
    report = verify(opened)
    if report.live:
        raise RecordingBusy(f"{where} is still being written", "wait for its process to end, or stop it")
    if report.exit_code in (TAMPERED, CONTRADICTED):
        place = f" ({report.kind} in {report.file})" if report.kind else ""
        raise RecordingTampered(f"{where} is not as it was written{place}: nothing of it is replayed")
    if report.exit_code not in (OK, UNPROVEN):
        raise RecordingUnreadable(f"{where} can't be read: {report.hint or report.kind}")


# --- which runs -----------------------------------------------------------------------------------------------------------


def _choose(opened: Recording, view: View, runs: tuple[str, ...], where: str) -> list[Resumable]:
    found = resumables(opened, view)
    if runs:
        return _named(found, runs, where)
    streams = _streams_of(view)
    found = [one for one in found if any(streams.get(run.id) for run in one.runs)]
    if not found:
        raise CannotReplay(
            f"{where} holds no call that could be answered",
            "record the program with otel-agentrec run, or configure(path, wire=True)",
        )
    groups = _connected(found, streams)
    if len(groups) > 1:
        said = [
            " ".join(f"--run {one.root}" for one in group[:LISTED]) + (" …" if len(group) > LISTED else "")
            for group in groups[-LISTED:]
        ]
        raise CannotReplay(f"{where} holds runs of {len(groups)} processes", "name those of one: " + "; or ".join(said))
    return groups[0]


def _named(found: list[Resumable], runs: tuple[str, ...], where: str) -> list[Resumable]:
    see = f"otel-agentrec runs {where} lists them"
    chosen: list[Resumable] = []
    for run in runs:
        exact = [one for one in found if any(attempt.id == run for attempt in one.runs)]
        meant = exact or [one for one in found if any(attempt.id.startswith(run) for attempt in one.runs)]
        if len(meant) != 1:
            what = f"{len(meant)} runs begin with {run!r}" if meant else f"there is no run {run!r}"
            raise CannotReplay(f"{what} in {where}", see)
        if meant[0] not in chosen:
            chosen.append(meant[0])
    return chosen


def _streams_of(view: View) -> dict[str, set[str]]:
    """Run id -> the streams that hold calls of it."""
    streams: dict[str, set[str]] = defaultdict(set)
    for wire in view.wires:
        run = view.run_of_wire(wire)
        if run is not None:
            streams[run].add(wire.place.stream)
    for effect in view.effects:
        streams[effect.run or ""].add(effect.stream)
    return streams


def _connected(found: list[Resumable], streams: dict[str, set[str]]) -> list[list[Resumable]]:
    """Those that share a stream, which is a process, stand together."""
    groups: list[tuple[set[str], list[Resumable]]] = []
    for one in found:
        mine = {stream for run in one.runs for stream in streams.get(run.id, ())}
        near = [group for group in groups if group[0] & mine]
        groups = [group for group in groups if not any(group is other for other in near)]
        members = [member for _, group in near for member in group]
        groups.append((mine.union(*(at for at, _ in near)), [*members, one]))
    return [group for _, group in groups]


# --- their calls ----------------------------------------------------------------------------------------------------------


def _calls(
    view: View, chosen: Sequence[Resumable], ring: KeyRing, inert: tuple[str, ...], collapse: bool
) -> Iterator[Recorded]:
    """All requests that left, in order. What a program went past or not, each is answered as it was."""
    attempt_of = {run.id: (one.root, n) for one in chosen for n, run in enumerate(one.runs)}
    placed: dict[str, list[tuple[int, str, Wire]]] = defaultdict(list)
    for wire in view.wires:
        run = view.run_of_wire(wire)
        if run in attempt_of:
            where = view.lane_of_wire(wire)
            root, n = attempt_of[run]
            placed[root].append((n, where.text if where is not None else "", wire))
    found: list[tuple[str, Wire]] = []
    for of_root in placed.values():
        of_root.sort(key=lambda one: one[0])
        dead = abandoned(of_root)
        found += [(lane, wire) for _, lane, wire in of_root if wire.answered_from is None and wire.wire_id not in dead]
    if collapse:
        last = {wire.call: wire for _, wire in sorted(found, key=lambda one: one[1].order)}
        found = [(lane, wire) for lane, wire in found if last[wire.call] is wire]
    records: dict[str, NodeIoRecord] = {}
    for _, record in view.calls(contents=False):
        records.update(dict.fromkeys(record.wire_ids, record))
    for lane, wire in sorted(found, key=lambda one: one[1].order):
        yield replace(recorded_call(view, wire, lane, records.get(wire.wire_id), True, ring, inert), past=True)


def _with_calls_inside(view: View, calls: Iterable[Recorded], effects: Iterable[Effect]) -> frozenset[str]:
    """Ids of effects with a recorded call below their span."""
    spans = {(s.trace, s.span): s for s in view.spans()}
    of_span = {effect.span: effect.id for effect in effects if effect.span is not None}
    found: set[str] = set()

    def mark(s: Span | None, but: str | None = None) -> None:
        for above in s.lineage() if s is not None else ():
            if above.kind == Kind.TOOL:
                inside = of_span.get((above.trace, above.span))
                if inside is not None and inside != but:
                    found.add(inside)

    for call in calls:
        at = spans.get((call.answer.trace, call.answer.span))
        mark(at)
        if at is not None and at.kind == Kind.TOOL:
            found.update(filter(None, [of_span.get((at.trace, at.span))]))
    for effect in effects:
        mark(spans.get(effect.span) if effect.span is not None else None, effect.id)
    return frozenset(found)


def _ends_open(opened: Recording, calls: Iterable[Recorded], effects: Iterable[Effect]) -> bool:
    names = {call.answer.place.stream for call in calls} | {effect.stream for effect in effects}
    return any(not stream.sealed for stream in opened.streams() if stream.name in names)


def _read(view: View, call: Recorded, quick: QuickKeys) -> Ready:
    wire: Wire = call.answer
    told = record_of_wire(view, wire)
    if call.request is not None and call.keys:  # its body is whole
        asked = told.payload
        quick.learn(quick.spelt(str(asked.get("method")), str(asked.get("path")), told.api, told.body), call.keys[-1])
    origin = {
        "run": view.run_of_wire(wire),
        "wireId": wire.wire_id,
        "stream": wire.place.stream,
        "seq": wire.place.seq,
        "span": wire.span or None,
    }
    origin = {key: value for key, value in origin.items() if value is not None}
    is_short = (wire.size or 0) <= KEPT
    response = replace(told.response, origin=origin) if is_short else None
    return Ready(tuple(asked_tools(told)), response, origin)


def _unseen(answers: Iterable[Ready], effects: Iterable[Effect]) -> tuple[str, ...]:
    known = {effect.name for effect in effects}
    return tuple(dict.fromkeys(name for one in answers for name in one.tools if name not in known))


def _check_answers(run: RecordedRun, rerun: frozenset[str], where: str | os.PathLike[str]) -> None:
    """Raises CannotReplay with all that is missing."""
    missing = [f"{call.label}: {call.unfit}" for call in run.calls if call.unfit is not None]
    missing += [
        f"{call.label}: its request can't be compared any more"
        for call in run.calls
        if not call.keys and call.unfit is None and call.outcome is not Outcome.OPEN
    ]
    if "all" not in rerun:
        for effect in run.effects:
            if effect.name in rerun or effect.id in run.inner or effect.effect == "container":
                continue
            if effect.state in (DONE, FAILED) and effect.lost is not None:
                missing.append(f"{effect.name} (effect {effect.id}): something in its result is {effect.lost}")
    if missing:
        more = f"; and {len(missing) - LISTED} more" if len(missing) > LISTED else ""
        raise CannotReplay(
            f"{where} can't be replayed: {'; '.join(missing[:LISTED])}{more}",
            "an answer that was redacted, erased or cut is never handed out; record the run again",
        )

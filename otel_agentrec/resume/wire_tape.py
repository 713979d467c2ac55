"""The model calls of a run's earlier attempts, from the wire: which of them a resumed program gets again.

Every request that left is a call of its own here, those that a client repeated after a 429 too: they come back one after the
other, as they came. What an attempt was answered from the recording is not recorded a second time. An attempt that made a
real call in a lane had either used all that was recorded of that lane or left it for good; what it had not used by then
answers nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from otel_agentrec.nodes.effects import Effect
from otel_agentrec.nodes.fold import View
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.keys import WIRE_INERT, KeyRing, NoKey, split_key
from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.nodes.wire import WireRecord, record_of_wire
from otel_agentrec.nodes.wirebody import Unanswerable
from otel_agentrec.nodes.wires import Wire
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.resume.requests import Request
from otel_agentrec.resume.results import is_length_cut
from otel_agentrec.resume.tape import Outcome, Recorded

__all__ = ["RecordedRequest", "abandoned", "recorded_call", "recorded_calls"]

Json = Any


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A recorded request that is read when it is asked for: a long conversation is said again in each of them."""

    view: View
    wire: Wire
    kind: str

    @property
    def compared(self) -> Json:
        """The body; None when it is not there any more."""
        try:
            return record_of_wire(self.view, self.wire).body
        except Unanswerable:
            return None


def recorded_calls(
    view: View,
    runs: Sequence[str],
    effects: Iterable[Effect],
    ring: KeyRing,
    inert: Sequence[str] = (),
    *,
    collapse: bool = False,
    is_over: bool = False,
    wires: Iterable[Wire] | None = None,
    known: Iterable[NodeIoRecord] | None = None,
) -> list[Recorded]:
    """The calls of these runs, ``answer`` of each its :class:`Wire`, in the order in which they began.

    Args:
        runs: ids of all attempts of one run, the first one first.
        effects: of all attempts: a run that began one has gone past the model calls before it.
        ring, inert: under which keys are made.
        collapse: leave out attempts that were made again (429s): their answer is that of the last one.
        is_over: the run came to its end, so it has gone past all of them.
        wires, known: attempts and records of these runs, where somebody has them already.
    """
    number = {run: n for n, run in enumerate(runs)}
    placed: list[tuple[int, str, Wire]] = []
    for wire in view.wires if wires is None else wires:
        run, where = view.run_of_wire(wire), view.lane_of_wire(wire)
        if run in number and where is not None:
            placed.append((number[run], where.text, wire))
        elif wire.run in number:  # nothing was around it when it left, as it will be again; its span was found later
            placed.append((number[wire.run], "", wire))
    placed.sort(key=lambda one: one[0])  # within an attempt they stand in the order of their start
    dead = abandoned(placed)
    told = view.records(runs) if known is None else known
    records = {id_: r for r in told for id_ in r.wire_ids}
    latest: dict[tuple[int, str], int] = {}
    for n, lane, wire in placed:
        latest[n, lane] = max(latest.get((n, lane), 0), wire.started)
    for effect in effects:
        if effect.run in number:
            key = number[effect.run], effect.lane
            latest[key] = max(latest.get(key, 0), effect.started_ms * 1_000_000)
    real = [one for one in placed if one[2].answered_from is None and one[2].wire_id not in dead]
    if collapse:
        last = {wire.call: wire for *_, wire in sorted(real, key=lambda one: one[2].order)}
        real = [one for one in real if last[one[2].call] is one[2]]
    calls = []
    for n, lane, wire in real:
        past = is_over or latest[n, lane] > wire.started or any(a > n and there == lane for a, there, _ in placed)
        calls.append(recorded_call(view, wire, lane, records.get(wire.wire_id), past, ring, tuple(inert)))
    return calls


def abandoned(placed: list[tuple[int, str, Wire]]) -> set[str]:
    """Wire ids of answers that an attempt left behind when it went on for real."""
    dead: set[str] = set()
    for n in sorted({n for n, *_ in placed}):
        used = {str(w.answered_from.get("wireId")) for m, _, w in placed if m == n and w.answered_from is not None}
        went_on = {lane for m, lane, w in placed if m == n and w.answered_from is None}
        dead |= {w.wire_id for m, lane, w in placed if m < n and lane in went_on and w.wire_id not in used}
    return dead


def recorded_call(
    view: View,
    wire: Wire,
    lane: str,
    record: NodeIoRecord | None,
    past: bool,
    ring: KeyRing,
    inert: tuple[str, ...],
) -> Recorded:
    """One attempt of a model call as a tape wants it; ``record``: of the call, where it is known."""
    told = record_of_wire(view, wire)
    method, path = str(told.payload.get("method") or ""), str(told.payload.get("path") or "")
    body, lost = _body(told)
    keys: list[str] = []
    aliases: tuple[str, ...] = ()
    if told.key is not None and ring.made(told.key) and _scheme_fits(told.key, told.api, inert):
        keys.append(told.key)
    request = Request("wire", {"method": method, "path": path, "api": told.api, "body": body})
    if lost is None:
        try:
            key, alias = request.keys(ring, inert)
            keys += [key] if key not in keys else []
            aliases = (alias,) if alias else ()
        except NoKey:
            pass
    return Recorded(
        NodeType.MODEL,
        lane,
        tuple(keys),
        _outcome(told, record),
        wire,
        aliases,
        name=record.model_id or "" if record is not None else "",
        past=past,
        unfit=_unfit(told),
        request=RecordedRequest(view, wire, request.kind) if lost is None else None,  # type: ignore[arg-type]
        label=record.node_id if record is not None else f"call {wire.wire_id}",
        step=record.step if record is not None else None,
    )


def _body(told: WireRecord) -> tuple[Json, str | None]:
    try:
        body = told.body
    except Unanswerable as error:
        return None, str(error)
    return body, lost_in(body)


def _scheme_fits(key: str, api: str, inert: tuple[str, ...]) -> bool:
    return split_key(key).scheme == f"wire/{api}{inert_of(inert, WIRE_INERT).suffix}"


def _outcome(told: WireRecord, record: NodeIoRecord | None) -> Outcome:
    """How it ended. Whether an answer is whole is told by what was said, not by how the connection ended."""
    has_error = told.payload.get("error") is not None
    if told.status is None:
        return Outcome.FAILED if has_error else Outcome.OPEN
    if told.status >= 400:
        return Outcome.FAILED
    if told.complete is False or (told.complete is None and (has_error or told.payload.get("end") != "eof")):
        return Outcome.CUT
    if record is not None and record.streamed and is_length_cut(record.finish_reasons):
        return Outcome.CUT
    return Outcome.DONE


def _unfit(told: WireRecord) -> str | None:
    """Why the bytes of an answer can't be handed out."""
    changed = {"redacted", "withheld", "unread"}.intersection(told.flags)
    if changed:
        return f"its answer is {', '.join(sorted(changed))}"
    try:
        told.response  # noqa: B018 - it is read
    except Unanswerable as error:
        return str(error)
    return None

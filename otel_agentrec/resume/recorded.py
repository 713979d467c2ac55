"""The calls of a recording as a :class:`~otel_agentrec.resume.tape.Tape` wants them: lane, keys, order, and how they ended.

Keys that were stored under the recording's present secret, for the same inert list, are taken as they are (they were made
before anything was redacted); all others are made anew from the recorded request, where it is still whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.normal import restore
from otel_agentrec.journal.reader import Recording, Resolver
from otel_agentrec.nodes.effects import DONE, FAILED, NOT_BEGUN, Effect, EffectEvents, read_effects
from otel_agentrec.nodes.fold import View, fold
from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.keys import KeyRing, NoKey, split_key
from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.nodes.wirebody import Unanswerable, read_request
from otel_agentrec.prompts import AgentPrompt
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.resume.entries import DEFAULT_INERT, stored_key
from otel_agentrec.resume.requests import Request, WireRequest, asked_model
from otel_agentrec.resume.results import is_length_cut, lost_answer
from otel_agentrec.resume.tape import Outcome, Recorded

__all__ = ["WireSeen", "recorded_calls"]

Json = Any
_ENDS = {"ok": Outcome.DONE, "error": Outcome.FAILED, "partial": Outcome.CUT}


@dataclass(frozen=True, slots=True)
class WireSeen:
    """One attempt of a model call on the wire. ``request``: None when it is not whole any more."""

    event: Event
    request: Request | None
    key: str | None

    @property
    def is_whole(self) -> bool:
        """Its answer came to its end, and not as an error of the transport."""
        payload = self.event.payload
        return bool(payload.get("complete")) and payload.get("error") is None


@dataclass(slots=True)
class _Call:
    """A call on its way to become a :class:`Recorded`: where it stands in the order of all."""

    attempt: int
    since: int
    stream: str
    seq: int
    until: int | None
    made: Recorded
    run: str


def recorded_calls(
    recording: Recording,
    root: str | None,
    ring: KeyRing,
    inert: Iterable[str] = (),
    view: View | None = None,
    *,
    runs: Sequence[str] | None = None,
) -> list[Recorded]:
    """The calls of one run over all its attempts, in the order in which they began.

    What an attempt answered from an earlier one is left out. The ``answer`` of a MODEL is its record; of a TOOL that the
    ledger knows its :class:`~otel_agentrec.nodes.effects.Effect`, of any other its record.

    Args:
        root: id of the run's root; None: all runs, the lane's roots not told apart.
        view: the fold of the recording, where it was made already.
        runs: ids of the attempts that count; default: all of the root.
    """
    return _Reading(recording, root, ring, tuple(inert), view or fold(recording)).calls(runs)


class _Reading:
    def __init__(
        self, recording: Recording, root: str | None, ring: KeyRing, inert: tuple[str, ...], view: View
    ) -> None:
        self._recording, self._root, self._ring, self._inert, self._view = recording, root, ring, inert, view
        events = EffectEvents.of(e for stream in recording.streams() for e in stream.events())
        self._lineages = events.lineages
        self._wires = dict(_wires(recording))

    def calls(self, runs: Sequence[str] | None = None) -> list[Recorded]:
        if runs is None and self._root is not None:
            runs = self._lineages.runs(self._root)
        attempts = {run: n for n, run in enumerate(runs or ())}
        tools: list[tuple[_Call, NodeIoRecord]] = []
        found: list[_Call] = []
        for s, record in self._view.calls():
            run = record.run_id or ""
            if (runs is not None and run not in attempts) or record.answered_from is not None:
                continue
            lane = self._view.lane(s).text
            seq = s.started_seq if s.started_seq >= 0 else s.seq
            place = (attempts.get(run, 0), s.since, s.stream, seq, s.end)
            if record.node_type is NodeType.TOOL:
                tools.append((_Call(*place, self._of_tool(record, lane), run), record))
            else:
                found.append(_Call(*place, self._of_model(record, lane), run))
        effects = list(read_effects(self._recording, (record for _, record in tools), root=self._root))
        found.extend(self._with_effects(tools, effects, attempts))
        found.sort(key=lambda c: (c.attempt, c.since, c.stream, c.seq))
        return _gone_past(found)

    # --- models -------------------------------------------------------------------------------------------------------

    def _of_model(self, record: NodeIoRecord, lane: str) -> Recorded:
        wire = self._wire_of(record)
        prompt = self._prompt_of(record)
        is_keyed = "prompt" in record.keys  # else telemetry tells it, which may have left something out
        keys: list[str] = []
        aliases: list[str] = []
        for form, request, stored in (
            ("prompt", prompt, stored_key(record, "prompt", self._ring, self._inert)),
            ("wire", wire.request if wire else None, self._wire_key(record, wire)),
        ):
            if stored is not None:
                keys.append(stored)
            if request is not None and (form == "wire" or is_keyed):
                key, alias = self._keys(request)
                keys += [key] if key is not None and stored is None else []
                aliases += [alias] if alias is not None else []
        outcome = _ENDS.get(record.status, Outcome.OPEN)
        if outcome is Outcome.DONE and record.streamed and is_length_cut(record.finish_reasons):
            outcome = Outcome.CUT
        return Recorded(
            NodeType.MODEL,
            lane,
            tuple(dict.fromkeys(keys)),
            outcome,
            record,
            tuple(dict.fromkeys(aliases)),
            name=record.model_id or "",
            unfit=None if wire is not None and wire.is_whole else lost_answer(record),
            request=wire.request if wire is not None and wire.request is not None else prompt,
            label=record.node_id,
            step=record.step,
        )

    def _wire_of(self, record: NodeIoRecord) -> WireSeen | None:
        """The last attempt of a call."""
        seen = [self._wires[wire_id] for wire_id in record.wire_ids if wire_id in self._wires]
        return seen[-1] if seen else None

    def _wire_key(self, record: NodeIoRecord, wire: WireSeen | None) -> str | None:
        stored = stored_key(record, "wire", self._ring, self._inert)
        if stored is None and wire is not None and wire.key is not None and self._ring.made(wire.key):
            suffix = inert_of(self._inert, DEFAULT_INERT["wire"]).suffix
            scheme = split_key(wire.key).scheme
            stored = wire.key if scheme[len(scheme.partition("[")[0]) :] == suffix else None
        return stored

    def _prompt_of(self, record: NodeIoRecord) -> Request | None:
        try:
            return None if lost_in(record.inputs) is not None else asked_model(AgentPrompt.from_inputs(record.inputs))
        except (ValueError, TypeError):
            return None

    # --- tools --------------------------------------------------------------------------------------------------------

    def _of_tool(self, record: NodeIoRecord, lane: str) -> Recorded:
        inputs = record.inputs if isinstance(record.inputs, dict) else {}
        arguments = inputs.get("arguments")
        whole = lost_in(arguments) is None and "input_truncated" not in record.flags
        request = self._tool_request(record.tool_name or "", arguments, record.tool_call_id) if whole else None
        key = stored_key(record, "tool", self._ring, self._inert) or (self._keys(request)[0] if request else None)
        return Recorded(
            NodeType.TOOL,
            lane,
            (key,) if key else (),
            _ENDS.get(record.status, Outcome.OPEN),
            record,
            name=record.tool_name or "",
            call_id=record.tool_call_id,
            unfit=lost_answer(record) if record.status == "ok" else None,
            request=request,
            label=record.node_id,
            step=record.step,
        )

    def _with_effects(
        self, tools: list[tuple[_Call, NodeIoRecord]], effects: list[Effect], attempts: dict[str, int]
    ) -> Iterator[_Call]:
        """Tool calls as the ledger has them; spans only where it has nothing."""
        of_span = {effect.id: effect for effect in effects if effect.effect is None}
        for call, record in tools:
            known = of_span.get(record.record_id)
            if known is None:  # the ledger tells of it
                continue
            if known.resolved is not None:
                if known.state == NOT_BEGUN:
                    continue
                call.made = replace(call.made, outcome=Outcome.DONE, answer=known, unfit=_unfit(known))
            yield call
        by_call: dict[tuple[str, str | None, str], _Call] = {
            (call.run, call.made.call_id, call.made.name): call for call, _ in tools if call.made.call_id
        }
        by_span = {(record.trace_id, record.span_id): call for call, record in tools}
        for effect in effects:
            if effect.effect is None or effect.state == NOT_BEGUN:
                continue
            near = by_call.get((effect.run or "", effect.call_id, effect.name)) or by_span.get(
                effect.span or (None, None)
            )
            attempt = attempts.get(effect.run or "", 0)
            made = self._of_effect(effect, near)
            yield _Call(attempt, effect.started_ms * 1_000_000, effect.stream, effect.seq, None, made, effect.run or "")

    def _of_effect(self, effect: Effect, near: _Call | None) -> Recorded:
        request = None
        if effect.arguments_lost is None:
            request = self._tool_request(effect.name, effect.arguments, effect.call_id)
        key = effect.key
        if key is None or not self._ring.made(key) or split_key(key).scheme != f"tool{inert_of(self._inert).suffix}":
            key = self._keys(request)[0] if request is not None else None
        outcome = {DONE: Outcome.DONE, FAILED: Outcome.FAILED}.get(effect.state, Outcome.OPEN)
        return Recorded(
            NodeType.TOOL,
            effect.lane or (near.made.lane if near is not None else ""),
            (key,) if key else (),
            outcome,
            effect,
            name=effect.name,
            call_id=effect.call_id,
            unfit=_unfit(effect) if outcome is not Outcome.OPEN else None,
            request=request,
            label=near.made.label if near is not None else effect.id,
            step=near.made.step if near is not None else None,
        )

    @staticmethod
    def _tool_request(name: str, arguments: Json, call_id: str | None) -> Request:
        return Request("tool", {"name": name, "arguments": arguments}, call_id)

    def _keys(self, request: Request) -> tuple[str | None, str | None]:
        try:
            return request.keys(self._ring, self._inert)
        except NoKey:
            return None, None


def _unfit(effect: Effect) -> str | None:
    return f"something in its answer is {effect.lost}" if effect.lost is not None else None


def _gone_past(calls: list[_Call]) -> list[Recorded]:
    """Mark what the run went past: something in its lane, or in one around it, began after it had ended."""
    latest: dict[tuple[int, str], int] = defaultdict(lambda: -1)
    for call in calls:
        at = (call.attempt, call.made.lane)
        latest[at] = max(latest[at], call.since)
    made = []
    for call in calls:
        until, goes_on = call.until, max(latest[call.attempt, lane] for lane in _with_those_around(call.made.lane))
        made.append(replace(call.made, past=until is not None and until > call.since and goes_on >= until))
    return made


def _with_those_around(lane: str) -> list[str]:
    steps = lane.split("/")
    return ["/".join(steps[:n]) for n in range(len(steps), 0, -1)]


def _wires(recording: Recording) -> Iterator[tuple[str, WireSeen]]:
    """The attempts on the wire, by their ids."""
    for stream in recording.streams():
        seen = [e for e in stream.events() if e.type == "WIRE_RECORDED"]
        if not seen:
            continue
        with Resolver(stream) as resolver:
            for event in seen:
                payload = event.payload
                wire_id, key = payload.get("wireId"), payload.get("key")
                if isinstance(wire_id, str):
                    request = _request_of(restore(resolver.resolve(event)))
                    yield wire_id, WireSeen(event, request, key if isinstance(key, str) else None)


def _request_of(payload: dict[str, Json]) -> Request | None:
    told = [payload.get(name) for name in ("method", "path", "api")]
    try:
        body = read_request(payload.get("request"))
    except Unanswerable:
        return None
    held = payload.get("request")
    if not all(isinstance(x, str) for x in told) or (isinstance(held, dict) and ("parts" in held or "body" in held)):
        return None  # multipart and plain bodies are known by their stored key only
    if lost_in(body) is not None:
        return None
    method, path, api = (str(x) for x in told)
    return asked_model(WireRequest(method, path, body, api))

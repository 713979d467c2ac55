"""The effect ledger while it is written: nothing with an effect begins before its intent is on disk.

EFFECT_STARTED is on disk when :meth:`EffectLog.started` returns, and EFFECT_DONE or EFFECT_FAILED when :meth:`done` and
:meth:`failed` return. What is cut off in between (the process dies, a cancellation, a time-out, a lost connection) leaves only
EFFECT_STARTED: its outcome is unknown, which is what readers must find.
"""

from __future__ import annotations

import dataclasses
import uuid
import weakref
from typing import Any

from otel_agentrec.capture.placing import CallPlace
from otel_agentrec.capture.recorder import Recorder
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.errors import LedgerUnavailable, RunStopped
from otel_agentrec.journal.claims import over_path
from otel_agentrec.journal.draft import SealedAt
from otel_agentrec.journal.events.base import Payload
from otel_agentrec.journal.events.effect import EffectDone, EffectFailed, EffectResolved, EffectStarted
from otel_agentrec.journal.events.node import NodeAnswered
from otel_agentrec.journal.events.run import ErrorEvent, RunResumed
from otel_agentrec.journal.process import own_path
from otel_agentrec.journal.sync import NotSynced
from otel_agentrec.nodes.keys import KeyRing, NoKey, tool_key

__all__ = ["EffectLog", "effect_log"]

Json = Any


class EffectLog:
    """Writes the ledger of one recorder. Any thread may use it.

    Every method that has to be durable raises LedgerUnavailable when it can't be.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._ring: KeyRing | None = None
        self._begun: dict[str, tuple[CallPlace, bool]] = {}
        """effect id -> its place, and whether it must be durable"""

    @property
    def recorder(self) -> Recorder:
        recorder = self._recorder()
        if recorder is None:
            raise LedgerUnavailable("the recording is closed")
        return recorder

    def key(self, name: str, arguments: Json, inert: tuple[str, ...] = ()) -> str | None:
        """The key of a call under the recording's secret; None when the arguments can't be written out whole.

        Raises:
            LedgerUnavailable: the secret can't be read or made.
        """
        try:
            if self._ring is None:
                self._ring = KeyRing.of(self.recorder.path)
            return tool_key(self._ring, name, arguments, inert)
        except NoKey:
            return None
        except Exception as error:
            raise LedgerUnavailable(f"{self.recorder.path} has no resume.key that can be used: {error}") from error

    def started(
        self,
        place: CallPlace,
        name: str,
        arguments: Json,
        *,
        root: str | None = None,
        effect: bool | str = True,
        hook: str | None = None,
        key: str | None = None,
        idempotency_key: str | None = None,
        effect_id: str | None = None,
        trace: dict[str, Json] | None = None,
    ) -> str:
        """A tool is about to run. Returns the effect's id when that is on disk (of one that only reads: when it was told).

        Args:
            root: id of the first attempt's run; default: this is the first.
            effect_id: of an effect that is begun once more, with its idempotency key or after it was settled as not done.
            trace: ``{traceId, spanId}`` of the tool's span, where it was opened after the place was told.

        Raises:
            LedgerUnavailable: it is not; the tool must not run.
        """
        if trace is not None:
            place = dataclasses.replace(place, where=_moved(place, trace))
        effect_id = effect_id or str(uuid.uuid4())
        begun = EffectStarted(
            effect_id=effect_id,
            name=name,
            root=root or place.run,
            lane=place.lane.text or None,
            key=key,
            call_id=place.call_id,
            arguments=arguments,
            effect=effect,
            idempotency_key=idempotency_key,
            span_id=(place.where.trace or {}).get("spanId"),
            hook=hook,
        )
        try:
            self._write(begun, place, effect is not False)
        except LedgerUnavailable as error:
            if isinstance(error.__cause__, NotSynced):  # it may yet be found on disk
                why = "its intent could not be made durable, so the tool was not called"
                settled = EffectResolved(effect_id, "not_done", by="otel-agentrec", reason=why)
                self.recorder.edge.write(_event(settled, place))
            raise
        if effect is not False:
            self._check_command(effect_id, place)
        self._begun[effect_id] = place, effect is not False
        return effect_id

    def _check_command(self, effect_id: str, place: CallPlace) -> None:
        """A process that was left over when its program was killed begins nothing once that is gone on with elsewhere. Its intent
        is on disk by now: whoever goes on looks for such after saying so, so one of the two sees the other."""
        over = over_path(self.recorder.path, own_path())
        if over is None or not over.exists():
            return
        why = "the run of this program is gone on with by another command"
        self.recorder.edge.write(_event(EffectResolved(effect_id, "not_done", by="otel-agentrec", reason=why), place))
        raise LedgerUnavailable(f"{why}: a process that was left over must not do the same", "stop this process")

    def done(self, effect_id: str, output: Json = None, codec: str | None = None) -> None:
        """The tool returned. Raises LedgerUnavailable: nobody knows it, and the result must not be used."""
        self._write(EffectDone(effect_id, output, codec), *self._begun.pop(effect_id, (None, True)))

    def failed(self, effect_id: str, error: Json, codec: str | None = None) -> None:
        """The tool raised ``{type, module, message, …}``. Raises LedgerUnavailable."""
        self._write(EffectFailed(effect_id, error, codec), *self._begun.pop(effect_id, (None, True)))

    def cut_off(self, effect_id: str) -> None:
        """The tool was cut off: nothing is written, so its outcome reads as unknown."""
        self._begun.pop(effect_id, None)

    def resolved(self, effect_id: str, outcome: str, output: Json = None, codec: str | None = None, *, by: str) -> None:
        """Somebody settled an effect: ``outcome`` is ``done`` or ``not_done``. Raises LedgerUnavailable."""
        self._write(EffectResolved(effect_id, outcome, output, by, codec=codec), None)

    def answered(self, place: CallPlace, trace: dict[str, str] | None, from_: dict[str, Json]) -> None:
        """A call was answered from the recording: ``from_`` says where its record stands."""
        where = _moved(place, trace) if trace is not None else place.where
        node = (where.trace or {}).get("spanId")
        if node is not None:
            self.recorder.edge.write(_event(NodeAnswered(node, from_), dataclasses.replace(place, where=where)))

    def stopped(self, place: CallPlace, error: RunStopped) -> None:
        """The run is stopped: it did not come to its end, whatever its agent makes of that."""
        event = _event(ErrorEvent(type(error).__name__, str(error)), place)
        event.run = place.run
        self.recorder.edge.write(event)

    def resumed(self, place: CallPlace, root: str, from_: dict[str, Json]) -> SealedAt:
        """A run goes on with another one: the first event of an attempt. Raises LedgerUnavailable."""
        event = _event(RunResumed(root, from_), place)
        event.run = place.run
        return self.recorder.edge.write_durably(event)

    def _write(self, payload: Payload, place: CallPlace | None, durable: bool = True) -> None:
        edge = self.recorder.edge
        if durable:
            edge.write_durably(_event(payload, place))
        else:  # what only reads may be lost: it is read again
            edge.write(_event(payload, place))


_LOGS: weakref.WeakKeyDictionary[Recorder, EffectLog] = weakref.WeakKeyDictionary()


def effect_log(recorder: Recorder) -> EffectLog:
    """The ledger of a recorder: one each."""
    return _LOGS.setdefault(recorder, EffectLog(recorder))


def _event(payload: Payload, place: CallPlace | None) -> StepEvent:
    event = StepEvent(payload.event_type, payload.to_json())
    if place is not None:
        where = place.where
        event.run, event.session, event.turn, event.step = where.run, where.session, where.turn, where.step
        event.trace = dict(where.trace or {})
    return event


def _moved(place: CallPlace, trace: dict[str, Json]) -> Any:
    """The place for events, at a span below it."""
    before = place.where.trace or {}
    if before.get("spanId") == trace.get("spanId"):
        return place.where
    path = [before["spanId"], *before.get("path", ())] if before.get("spanId") else []
    return dataclasses.replace(place.where, trace={**trace, **({"path": path} if path else {})})

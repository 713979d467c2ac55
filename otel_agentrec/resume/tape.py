"""The recorded calls of a run as answers: which one is meant, and how far the record reaches. Pure: no files, no clock.

A :class:`Tape` is made of the recorded calls of a lineage (all attempts of one run), and asked for every call that the
program makes:

* ``tape.model(lane, request)`` → :class:`Answered` or :class:`Miss`;
* ``tape.tool(lane, call)`` → :class:`Done`, :class:`Failed`, :class:`Unknown` or :class:`NotBegun`.

Equal calls of a lane match the same call id first, then the order in which they began; each recorded call is handed out
once. What the tape says is not what happens: whether a :class:`Miss` may run for real is for a policy to decide, by
``frontier``: while a lane has model answers that were not handed out, it has not reached its frontier, and a miss there is a
divergence (its ``report`` says where). :meth:`Tape.leave` is ``--on-divergence=live``: the lane takes no more answers, and a
tool with a recorded call of its name that was not handed out is :class:`Unknown` whatever its arguments.

Thread-safe. Replay uses the same tape with a policy in which nothing is real.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from otel_agentrec.nodes.inert import Inert, inert_of
from otel_agentrec.nodes.keys import KeyRing, NoKey
from otel_agentrec.records import NodeType
from otel_agentrec.resume.entries import DEFAULT_INERT
from otel_agentrec.resume.requests import Request
from otel_agentrec.resume.whymiss import Known, MissReport, explain

__all__ = ["Answered", "Done", "Failed", "Miss", "NotBegun", "Outcome", "Recorded", "Tape", "Unknown"]

Json = Any


class Outcome(str, Enum):
    """How a recorded call ended."""

    DONE = "done"
    FAILED = "failed"
    """It raised, or its provider answered with an error."""
    CUT = "cut"
    """A stream that the program or the provider broke off; some of it was recorded."""
    OPEN = "open"
    """It began, and nothing tells how it ended: a crash, a time-out, a cancellation."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded call.

    Args:
        kind: MODEL or TOOL.
        lane: the path of its lane (``Lane.text``); the root is the tape's.
        keys: its keys under the tape's ring and inert list; none when it can't be keyed (its request was redacted or erased,
            and its stored keys are dead).
        aliases: its keys of the second look-up.
        outcome: how it ended.
        answer: what is handed out (a record, a wire exchange, an effect's output …); the tape does not look into it.
        name: tool or model.
        call_id: of a TOOL.
        past: the run went on after it, so an error or a cut stream is answered as it was; else it stands at the frontier
            of its attempt, and only a whole answer counts.
        unfit: why the answer can't be handed out though it ended (redacted, cut …); None: it can.
        request: what was asked, for reports; None when that is not known.
        label: how to name it (its node id); step: its step, where known.
    """

    kind: NodeType
    lane: str
    keys: tuple[str, ...]
    outcome: Outcome
    answer: Any = None
    aliases: tuple[str, ...] = ()
    name: str = ""
    call_id: str | None = None
    past: bool = False
    unfit: str | None = None
    request: Request | None = None
    label: str = ""
    step: int | None = None

    @property
    def is_answer(self) -> bool:
        """Whether a model call is one that the resumed program gets again: whole, or gone past as it was."""
        if self.outcome is Outcome.DONE:
            return True
        return self.past and self.outcome in (Outcome.FAILED, Outcome.CUT)


@dataclass(frozen=True, slots=True)
class Answered:
    """A model call with a recorded answer. ``aliased``: found with tool-call ids renamed."""

    call: Recorded
    aliased: bool = False


@dataclass(frozen=True, slots=True)
class Miss:
    """A model call without one. ``frontier``: nothing recorded is left in its lane, so it may be made. ``unfit``: it was
    recorded, and why its answer can't be handed out."""

    report: MissReport
    frontier: bool
    unfit: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The tool returned: hand out ``call.answer``."""

    call: Recorded


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool raised: raise ``call.answer`` again."""

    call: Recorded


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have happened. ``reason``: one line for people."""

    call: Recorded
    reason: str


@dataclass(frozen=True, slots=True)
class NotBegun:
    """Nothing of it is recorded. ``frontier``: as in :class:`Miss`."""

    report: MissReport
    frontier: bool


@dataclass(slots=True)
class _Lane:
    models: list[Recorded] = field(default_factory=list)
    tools: list[Recorded] = field(default_factory=list)
    by_key: dict[str, deque[Recorded]] = field(default_factory=lambda: defaultdict(deque))
    """model calls, by each of their keys and aliases"""
    used: set[int] = field(default_factory=set)
    """ids of recorded calls that were handed out"""
    unused: int = 0
    """of the model calls"""
    left: bool = False


class Tape:
    """The recorded calls of one lineage.

    Args:
        calls: in the order in which they began (NODE_STARTED), attempt after attempt, without those that an attempt
            answered from the earlier ones.
        ring, inert: under which the keys of ``calls`` were made, and those of requests are.
    """

    def __init__(self, calls: Iterable[Recorded], ring: KeyRing, inert: Iterable[str] = ()) -> None:
        self._ring = ring
        self._inert = (inert,) if isinstance(inert, str) else tuple(inert)
        inert_of(self._inert)
        self._lock = threading.Lock()
        self._lanes: dict[str, _Lane] = defaultdict(_Lane)
        self._recorded: dict[str, set[str]] = defaultdict(set)
        for call in calls:
            lane = self._lanes[call.lane]
            if call.kind is NodeType.MODEL:
                self._recorded[call.lane].update(call.keys, call.aliases)
            if call.kind is NodeType.TOOL:
                lane.tools.append(call)
            elif call.is_answer:  # one that broke at the frontier is simply made again
                lane.models.append(call)
                lane.unused += 1
                for key in dict.fromkeys((*call.keys, *call.aliases)):
                    lane.by_key[key].append(call)

    def model(self, lane: str, request: Request) -> Answered | Miss:
        """Ask for a model call; an answer is handed out once."""
        keys, aliases = self._keys(request)
        unfit = None
        for key in (*keys, *aliases):
            found = self.with_key(lane, key)
            if isinstance(found, Recorded):
                return Answered(found, key in aliases)
            unfit = unfit or found
        with self._lock:
            here = self._lanes[lane]
            frontier = here.left or self._is_at_frontier(here)
        return Miss(self._report(here.models, here, request), frontier, unfit)

    def with_key(self, lane: str, key: str) -> Recorded | str | None:
        """The next answer of a lane to the requests with this key, which is handed out with that. Else, why none can be
        handed out though one is recorded; or None."""
        unfit = None
        with self._lock:
            here = self._lanes[lane]
            waiting = here.by_key.get(key) if not here.left else None
            while waiting and id(waiting[0]) in here.used:
                waiting.popleft()
            for call in waiting or ():
                if id(call) in here.used:
                    continue
                if call.unfit is None:
                    here.used.add(id(call))
                    here.unused -= 1
                    return call
                unfit = unfit or call.unfit
        return unfit

    def tool(self, lane: str, call: Request) -> Done | Failed | Unknown | NotBegun:
        """Ask for a tool call; a recorded one is handed out once, one with an unknown outcome every time."""
        keys, _ = self._keys(call)
        name = call.value["name"]
        with self._lock:
            here = self._lanes[lane]
            free = [c for c in here.tools if id(c) not in here.used]
            if here.left:
                of_that_name = [c for c in free if c.name == name]
                if of_that_name:
                    return Unknown(of_that_name[0], "after a divergence its recorded call may be the same one")
                return NotBegun(self._report(here.tools, here, call), True)
            same = [c for c in free if set(keys) & set(c.keys)]
            mine = [c for c in same if call.call_id is not None and c.call_id == call.call_id] or same
            if mine:
                found = mine[0]
                if found.outcome in (Outcome.OPEN, Outcome.CUT):
                    return Unknown(found, "it began, and nothing tells whether it happened")
                if found.unfit is not None:
                    return Unknown(found, f"it ended, but {found.unfit}")
                here.used.add(id(found))
                return Failed(found) if found.outcome is Outcome.FAILED else Done(found)
            unkeyed = [c for c in free if c.name == name and not c.keys]
            if unkeyed and (not keys or _may_be(unkeyed, call.call_id)):
                return Unknown(unkeyed[0], "a call of this tool is recorded whose arguments are not known any more")
            if not keys and free:
                return Unknown(free[0], "its arguments can't be compared with those of the recorded calls")
            frontier = self._is_at_frontier(here)
        return NotBegun(self._report(here.tools, here, call), frontier)

    def frontier(self, lane: str) -> bool:
        """Whether a lane has handed out all its model answers: what comes next happens for real."""
        with self._lock:
            here = self._lanes[lane]
            return here.left or self._is_at_frontier(here)

    def waiting(self, lane: str) -> list[Recorded]:
        """The model answers of a lane that were not handed out yet."""
        with self._lock:
            here = self._lanes[lane]
            return [call for call in here.models if id(call) not in here.used]

    def elsewhere(self, lane: str, request: Request) -> list[str]:
        """The other lanes in which this very request is recorded, answered or not; none where it is recorded in this one."""
        asked = {key for keys in self._keys(request) for key in keys}
        with self._lock:
            found = [
                name
                for name, one in self._lanes.items()
                if any(not asked.isdisjoint((*call.keys, *call.aliases)) for call in one.models)
            ]
        return [] if lane in found else found

    def knows(self, lane: str, request: Request) -> bool:
        """Whether this very request is recorded in this lane, answered or not."""
        asked = {key for keys in self._keys(request) for key in keys}
        with self._lock:
            return not asked.isdisjoint(self._recorded.get(lane, ()))

    def leave(self, lane: str) -> None:
        """Go on for real in this lane, whatever is left of its record."""
        with self._lock:
            self._lanes[lane].left = True

    def unknown(self) -> list[Unknown]:
        """All tool calls whose outcome is not known and that were not settled, for a list before the first real call."""
        reason = "it began, and nothing tells whether it happened"
        with self._lock:
            return [
                Unknown(call, reason)
                for lane in self._lanes.values()
                for call in lane.tools
                if call.outcome in (Outcome.OPEN, Outcome.CUT)
            ]

    def left_over(self) -> list[Recorded]:
        """Recorded calls that nobody asked for, lane by lane: a replay that ends with some has diverged."""
        with self._lock:
            return [c for lane in self._lanes.values() for c in (*lane.models, *lane.tools) if id(c) not in lane.used]

    # --- inside -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _is_at_frontier(here: _Lane) -> bool:
        return not here.unused

    def _keys(self, request: Request) -> tuple[tuple[str, ...], tuple[str, ...]]:
        try:
            key, alias = request.keys(self._ring, self._inert)
        except NoKey:
            return (), ()
        return (key,), (alias,) if alias else ()

    def _declared(self, request: Request) -> Inert:
        return inert_of(self._inert, DEFAULT_INERT[request.form])

    def _report(self, calls: list[Recorded], here: _Lane, request: Request) -> MissReport:
        known = [
            Known(c.label, c.request.kind, c.request.compared, c.step, id(c) in here.used)
            for c in calls
            if c.request is not None
        ]
        try:
            return explain(request.compared, request.kind, known, self._declared(request))
        except (NoKey, RecursionError):
            return MissReport(False, f"the {request.kind} request can't be written out whole, so nothing is the same")


def _may_be(unkeyed: list[Recorded], call_id: str | None) -> bool:
    """Whether one of these can be the call that is asked: none of them, or the call, names another id."""
    return call_id is None or any(c.call_id is None or c.call_id == call_id for c in unkeyed)

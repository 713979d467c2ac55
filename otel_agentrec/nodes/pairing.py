"""Which model call asked for which tool call.

By call id where the tool span has one; else by the requesting model call (same run, same agent), the tool's name, its
arguments, then order. No id is made up.
"""

from __future__ import annotations

import bisect
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.merge import same_name
from otel_agentrec.nodes.skeleton import REEXPORT, Call, Rows, Span, mark
from otel_agentrec.nodes.source import Source
from otel_agentrec.nodes.text import calls_in, parsed

__all__ = ["Pairing", "agent_of", "call_id_of", "call_ids", "calls_of"]

Json = Any
Named = Callable[[Span], str | None]
_LOOK = 64
"""So many requests with one call id, before and after a tool, are looked at."""


def calls_of(model: Span) -> tuple[Call, ...]:
    """The calls that a model call asked for, by the first of its spans that tells."""
    return _who_asked(model).calls or ()


def _who_asked(model: Span) -> Span:
    """The span of a model call that tells of its calls."""
    return next((s for s in model.members() if s.calls_count > 0), model)


def call_ids(source: Source, model: Span) -> list[str | None]:
    """The ids of the calls in ``calls_of(model)``."""
    told = _who_asked(model)
    for place in (told.place, *(told.extra.amended if told.extra is not None else ())):
        calls = source.facts(place, ("calls",)).get("calls")
        if isinstance(calls, list) and calls:
            return [c.get("id") for c in calls if isinstance(c, dict)]
    return [None] * told.calls_count


def call_id_of(tool: Span) -> int | None:
    """The mark of a tool's call id."""
    return next((s.ident for s in tool.members() if s.ident), None)


def tool_name_of(tool: Span) -> str | None:
    return next((s.name for s in tool.members() if s.name), None)


def agent_of(s: Span) -> Span | None:
    """The nearest agent around a span."""
    return next((above for above in s.lineage() if above.kind == Kind.AGENT), None)


def _when(s: Span) -> tuple[int, tuple[str, int]]:
    return s.since, s.place


class _Asked:
    """All calls that models asked for, by call id; a few bytes each."""

    def __init__(self, models: list[Span]) -> None:
        self._models = models
        owners, numbers, ids = array("i"), array("h"), array("q")
        for n, model in enumerate(models):
            for i, (call_id, _) in enumerate(calls_of(model)):
                if call_id is not None:
                    owners.append(n)
                    numbers.append(i)
                    ids.append(call_id)
        order = sorted(range(len(ids)), key=ids.__getitem__)  # stable: equal ids stay in the order of the models
        self._ids = array("q", [ids[k] for k in order])
        self._owners = array("i", [owners[k] for k in order])
        self._numbers = array("h", [numbers[k] for k in order])

    def by_id(self, call_id: int) -> Sequence[tuple[Span, int]]:
        """The requests with this call id, earlier ones first: (model call, index of the call)."""
        return _Requests(self, bisect.bisect_left(self._ids, call_id), bisect.bisect_right(self._ids, call_id))

    def at(self, k: int) -> tuple[Span, int]:
        return self._models[self._owners[k]], self._numbers[k]


class _Requests(Sequence[tuple[Span, int]]):
    """A slice of the calls; made as it is looked at, as some servers repeat one id for ever."""

    def __init__(self, asked: _Asked, start: int, stop: int) -> None:
        self._asked, self._range = asked, range(start, stop)

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, i: Any) -> Any:
        return self._asked.at(self._range[i])


class Pairing:
    """Pairs the tools of a recording with the calls that asked for them (sets ``asked`` and ``call_no`` of tools).

    Args:
        nodes: the leading spans of all calls.
        run_of, session_of: what is known of a span's run and session before tools join runs.
        handoffs: spans of agents handing over; a model asks for that as if it were a tool.
    """

    def __init__(
        self,
        source: Source,
        rows: Rows,
        nodes: Iterable[Span],
        run_of: Named,
        session_of: Named,
        handoffs: Iterable[Span] = (),
    ) -> None:
        self._source = source
        self._run_of, self._session_of = run_of, session_of
        leading = sorted(nodes, key=_when)
        models = [s for s in leading if s.kind == Kind.MODEL and not s.marks & REEXPORT]
        tools = [s for s in leading if s.kind == Kind.TOOL]
        self._claimed = bytearray(len(rows.call_marks))
        """1 for each call that a span answers, in the order of the table's calls"""
        self._arguments: OrderedDict[Span, list[Json]] = OrderedDict()
        self._by_id(models, tools)
        self._by_name(models, tools)
        self._take_handoffs(models, handoffs)

    def unanswered(self, models: Iterable[Span]) -> Iterator[tuple[Span, int, Call]]:
        """Calls of these model calls that no tool span answers: (model call, index, call)."""
        for model in models:
            for i, call in enumerate(calls_of(model)):
                if not self._is_claimed(model, i):
                    yield model, i, call

    def awaits(self, model: Span) -> bool:
        """Has a model call a call that no tool span answers?"""
        return any(True for _ in self.unanswered([model]))

    def _is_claimed(self, model: Span, i: int) -> bool:
        return bool(self._claimed[_who_asked(model).calls_from + i])

    def _claim(self, model: Span, i: int, tool: Span | None = None) -> None:
        self._claimed[_who_asked(model).calls_from + i] = 1
        if tool is not None:
            tool.asked, tool.call_no = model, i

    def implied_id(self, tool: Span) -> str | None:
        """The call id of a tool span that has none itself, where only one call can be meant; else None."""
        if tool.asked is None or tool.call_no < 0:
            return None
        calls = calls_of(tool.asked)
        same = [i for i, (_, name) in enumerate(calls) if name and same_name(name, calls[tool.call_no][1] or "")]
        if len(same) > 1:
            asked, mine = self.asked_arguments(tool.asked), self._own_arguments(tool)
            same = [i for i in same if i < len(asked) and _likeness(mine, asked[i]) == _EQUAL]
        return call_ids(self._source, tool.asked)[tool.call_no] if same == [tool.call_no] else None

    def named_arguments(self, tool: Span, told: Json) -> Json:
        """The arguments of a tool call; some telemetry tells a single one bare, and the call that asked for it names it."""
        if tool.asked is not None and tool.call_no >= 0 and not isinstance(told, (dict, list)) and told is not None:
            asked = self.asked_arguments(tool.asked)
            if tool.call_no < len(asked) and _is_value_of(told, asked[tool.call_no]):
                return asked[tool.call_no]
        return parsed(told)

    def asked_arguments(self, model: Span) -> list[Json]:
        """The arguments of each call in ``calls_of(model)``; empty when they are not known."""
        if model not in self._arguments:
            told = _who_asked(model)
            asked = calls_in(self._source.facts(told.place, ("outputMessages",)).get("outputMessages"))
            fits = [(mark(c["id"]), c["name"]) for c in asked] == list(calls_of(model))
            self._arguments[model] = [c["arguments"] for c in asked] if fits else []
            if len(self._arguments) > 64:
                self._arguments.popitem(last=False)
        return self._arguments[model]

    # --- by call id ---------------------------------------------------------------------------------------------------

    def _by_id(self, models: list[Span], tools: list[Span]) -> None:
        asked = _Asked(models)
        for tool in tools:
            call_id = call_id_of(tool)
            found = self._meant(tool, asked.by_id(call_id)) if call_id is not None else None
            if found is not None:
                self._claim(*found, tool)

    def _meant(self, tool: Span, requests: Sequence[tuple[Span, int]]) -> tuple[Span, int] | None:
        """The request that is meant: in the tool's run, else in its session; the latest one before the tool."""
        if not requests:
            return None
        now = bisect.bisect_right(requests, _when(tool), key=lambda request: _when(request[0]))
        near = [
            requests[i]
            for i in (*range(now - 1, max(-1, now - _LOOK), -1), *range(now, min(len(requests), now + _LOOK)))
        ]
        run, session, agent = self._run_of(tool), self._session_of(tool), agent_of(tool)
        mine = [request for request in near if self._run_of(request[0]) == run]
        if not mine and session is not None and is_alone(tool):
            mine = [request for request in near if self._session_of(request[0]) == session]
        before = [request for request in mine if _when(request[0]) <= _when(tool)]
        return next((r for r in before if agent_of(r[0]) == agent), next(iter(before or mine), None))

    # --- by name, arguments, order ------------------------------------------------------------------------------------

    def _by_name(self, models: list[Span], tools: list[Span]) -> None:
        coming: dict[str | None, deque[tuple[Span, int, str]]] = defaultdict(deque)
        for model, i, (_, name) in self.unanswered(models):
            if name:
                coming[self._run_of(model)].append((model, i, name))
        waiting: dict[str | None, list[tuple[Span, int, str]]] = defaultdict(list)
        for tool in tools:
            name = tool_name_of(tool)
            if tool.asked is not None or call_id_of(tool) or not name:
                continue
            run = self._run_of(tool)
            while coming[run] and _when(coming[run][0][0]) <= _when(tool):
                waiting[run].append(coming[run].popleft())
            candidates = [call for call in waiting[run] if same_name(call[2], name)]
            if candidates:
                found = self._best(tool, candidates)
                waiting[run].remove(found)
                self._claim(*found[:2], tool)

    def _take_handoffs(self, models: list[Span], handoffs: Iterable[Span]) -> None:
        """A handoff answers the call that the last model call beside it asked for and no tool span claims."""
        beside: dict[Span | None, list[tuple[Span, int, str | None]]] = defaultdict(list)
        for model, i, (_, name) in self.unanswered(models):
            beside[model.up].append((model, i, name))
        for handoff in sorted(handoffs, key=_when):
            before = [
                call
                for call in beside[handoff.up]
                if _when(call[0]) <= _when(handoff) and not self._is_claimed(*call[:2])
            ]
            if handoff.up is not None and before:
                named = [call for call in before if (call[2] or "").startswith("transfer_to_")]
                self._claim(*max(named or before, key=lambda call: (_when(call[0]), -call[1]))[:2])

    def _best(self, tool: Span, candidates: list[tuple[Span, int, str]]) -> tuple[Span, int, str]:
        agent = agent_of(tool)
        if len(candidates) == 1:
            return candidates[0]
        mine = self._own_arguments(tool)

        def rank(c: tuple[Span, int, str]) -> tuple[bool, int, tuple[int, tuple[str, int]], int]:
            model, i, _ = c
            asked = self.asked_arguments(model)
            likeness = _likeness(mine, asked[i]) if i < len(asked) else 0
            return agent_of(model) == agent, likeness, _when(model), -i

        return max(candidates, key=rank)

    def _own_arguments(self, tool: Span) -> Json:
        for s in tool.members():
            arguments = self._source.facts(s.place, ("arguments",)).get("arguments")
            if arguments is not None:
                return arguments
        return None


_EQUAL = 2


def _likeness(told: Json, asked: Json) -> int:
    """``_EQUAL`` for equal arguments, 1 when the tool only has more of them (defaults were filled in), else 0.

    Args:
        told: the tool's arguments as its span tells them.
        asked: those of the call, parsed.
    """
    mine = parsed(told)
    if mine == asked or _is_value_of(told, asked):
        return _EQUAL
    if isinstance(mine, dict) and isinstance(asked, dict) and all(k in mine and mine[k] == v for k, v in asked.items()):
        return 1
    return 0


def _is_value_of(told: Json, asked: Json) -> bool:
    """Is this the one argument of the call, told without its name?"""
    if told is None or isinstance(told, (dict, list)) or not isinstance(asked, dict) or len(asked) != 1:
        return False
    (value,) = asked.values()
    return value in (told, parsed(told))


def is_alone(tool: Span) -> bool:
    """Does the tool stand at the top of its trace, without an agent or a model call above it?"""
    return not any(above.is_node or above.kind == Kind.AGENT for above in tool.lineage())

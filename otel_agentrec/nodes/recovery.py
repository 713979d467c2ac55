"""Tool calls without a span: their results show in the messages of a later model call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.belonging import Belonging
from otel_agentrec.nodes.pairing import Pairing, calls_of, tool_name_of
from otel_agentrec.nodes.skeleton import REEXPORT, Span, mark
from otel_agentrec.nodes.sound import record_of
from otel_agentrec.nodes.source import Place, Source
from otel_agentrec.nodes.text import calls_in, responses_in
from otel_agentrec.nodes.told import messages_of

__all__ = ["Recovery"]

Json = Any
Asked = tuple[Span, int]
"""(model call that asked, index of the call)"""
Found = tuple[Span, int, str, Json]
"""(model call that asked, index of the call, call id, result)"""


class Recovery:
    """Walks over the model calls in cause order and finds the results of calls that have no tool span.

    A result belongs to the latest open call with its id, in the same run or session; where neither call has a session
    (a program without an agent span, each call a trace of its own), the call itself must be in the history as well, or the
    request must go on from the answer that asked for it (``previous_response_id``).

    Args:
        nodes: the leading spans of all calls.
    """

    def __init__(self, source: Source, belonging: Belonging, pairing: Pairing, nodes: Iterable[Span]) -> None:
        self._source, self._belonging, self._pairing = source, belonging, pairing
        models = []
        told: set[int] = set()
        loose: set[tuple[str, str | None]] = set()
        for s in nodes:
            if s.kind == Kind.MODEL:
                if not s.marks & REEXPORT and pairing.awaits(s):
                    models.append(s)
            else:
                told.update(member.ident for member in s.members() if member.ident)
                if s.asked is None:
                    loose.add((belonging.run(s), tool_name_of(s)))
        self._coming: dict[Span, list[int]] = defaultdict(list)
        for model, i, (call_id, name) in pairing.unanswered(models):
            if call_id and call_id not in told and (belonging.run(model), name) not in loose:
                self._coming[model].append(i)
        self._open: dict[int, list[Asked]] = defaultdict(list)
        """mark of the call id -> calls that were passed and not answered yet"""
        self._places: Counter[tuple[str, str | None]] = Counter()
        """How many open calls there are per run and per session."""

    def open_calls(self) -> list[Asked]:
        """Calls that were passed and not answered yet."""
        return [call for calls in self._open.values() for call in calls]

    def passed(self, model: Span, messages: Json = None) -> Iterator[Found]:
        """Go past one model call.

        Args:
            messages: its input messages where they are at hand; read from the source when they are needed and None.
        """
        if not model.marks & REEXPORT and any(self._places[place] for place in self._places_of(model)):
            yield from self._answered(model, messages_of(self._source, model) if messages is None else messages)
        for i in self._coming.pop(model, ()):
            self._open[calls_of(model)[i][0] or 0].append((model, i))
            self._places.update(self._places_of(model))

    def _answered(self, model: Span, messages: Json) -> Iterator[Found]:
        found: list[Found] = []
        for call_id, result in reversed(responses_in(messages)):
            call = next(
                (c for c in reversed(self._open.get(mark(call_id) or 0, [])) if self._fits(c, model, messages)), None
            )
            if call is not None:
                self._open[mark(call_id) or 0].remove(call)
                self._places.subtract(self._places_of(call[0]))
                found.append((*call, call_id, result))
        yield from reversed(found)

    def _places_of(self, model: Span) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
        return ("run", self._belonging.run(model)), ("session", self._belonging.session(model))

    def _fits(self, call: Asked, model: Span, messages: Json) -> bool:
        asking, i = call
        (run, session), (other_run, other_session) = self._places_of(asking), self._places_of(model)
        if run == other_run or (session == other_session and session[1] is not None):
            return True
        if session != other_session:
            return False
        if asking.ident and asking.ident == self._continued(model):
            return True
        call_id, name = calls_of(asking)[i]
        arguments = self._pairing.asked_arguments(asking)
        return any(
            mark(c["id"]) == call_id and c["name"] == name and (i >= len(arguments) or c["arguments"] == arguments[i])
            for c in calls_in(messages)
        )

    def _continued(self, model: Span) -> int | None:
        """:func:`mark` of the response that a request goes on from, by what it tells of its parameters."""
        try:
            header = record_of(self._source.outline(model.place)).get("header")
            if not isinstance(header, int):
                return None
            parameters = self._source.event(Place(model.stream, header)).payload.get("parameters")
        except LookupError:  # the header's line is damaged
            return None
        return mark(parameters.get("previous_response_id")) if isinstance(parameters, dict) else None

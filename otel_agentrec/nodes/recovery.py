"""Tool calls without a span: their results show in the messages of a later model call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from otel_agentrec.nodes.belonging import Belonging
from otel_agentrec.nodes.pairing import Pairing, calls_of
from otel_agentrec.nodes.skeleton import REEXPORT, Span
from otel_agentrec.nodes.source import Source
from otel_agentrec.nodes.text import calls_in, responses_in

__all__ = ["Recovery"]

Json = Any
Asked = tuple[Span, int]
"""(model call that asked, index of the call)"""
Found = tuple[Span, int, Json]
"""(model call that asked, index of the call, result)"""


class Recovery:
    """Walks over the model calls in cause order and finds the results of calls that have no tool span.

    A result belongs to the latest open call with its id, in the same run or session; where neither call has a session
    (a program without an agent span, each call a trace of its own), the call itself must be in the history as well.
    """

    def __init__(self, source: Source, belonging: Belonging, pairing: Pairing) -> None:
        self._source, self._belonging, self._pairing = source, belonging, pairing
        told = {s.ident for tool in pairing.tools for s in tool.members() if s.ident}
        loose = pairing.loose_names()
        self._coming: dict[Span, list[int]] = defaultdict(list)
        for model, i, (call_id, name) in pairing.unanswered():
            if call_id and call_id not in told and (belonging.run(model), name) not in loose:
                self._coming[model].append(i)
        self._open: dict[str, list[Asked]] = defaultdict(list)
        """call id -> calls that were passed and not answered yet"""
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
            yield from self._answered(model, self._messages(model) if messages is None else messages)
        for i in self._coming.pop(model, ()):
            self._open[calls_of(model)[i][0] or ""].append((model, i))
            self._places.update(self._places_of(model))

    def _answered(self, model: Span, messages: Json) -> Iterator[Found]:
        found: list[Found] = []
        for call_id, result in reversed(responses_in(messages)):
            call = next((c for c in reversed(self._open.get(call_id, [])) if self._fits(c, model, messages)), None)
            if call is not None:
                self._open[call_id].remove(call)
                self._places.subtract(self._places_of(call[0]))
                found.append((*call, result))
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
        call_id, name = calls_of(asking)[i]
        arguments = self._pairing.asked_arguments(asking)
        return any(
            c["id"] == call_id and c["name"] == name and (i >= len(arguments) or c["arguments"] == arguments[i])
            for c in calls_in(messages)
        )

    def _messages(self, model: Span) -> Json:
        for s in model.members():
            messages = self._source.facts(s.place, ("messages",)).get("messages")
            if messages is not None:
                return messages
        return None

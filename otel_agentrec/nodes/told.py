"""All that the events tell of one call: the facts of its spans, brought together."""

from __future__ import annotations

from typing import Any

from otel_agentrec.journal.events import Event
from otel_agentrec.journal.facts import Kind
from otel_agentrec.nodes.afterwards import is_point
from otel_agentrec.nodes.skeleton import CONFLICT, ENDED, FAILED, OUTERMOST, PUT_OUT, REEXPORT, ROOT_MISSING, Span
from otel_agentrec.nodes.sound import facts_of
from otel_agentrec.nodes.source import Place, Source

__all__ = ["Told", "messages_of"]

Json = Any
Facts = dict[str, Json]

TOKENS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens", "otherTokens")
_OF_ONE_SPAN = {*TOKENS, "status", "errorType", "errorMessage", "retryCount", "retries", "flags", "dialect"}
"""Facts that are not filled up from the other spans of a call, or in a way of their own."""


def _tells_more(key: str, earlier: Json, later: Json) -> bool:
    """A limit on attributes throws the oldest away: of messages in attributes of their own, the beginning."""
    return key == "messages" and isinstance(earlier, list) and isinstance(later, list) and len(earlier) > len(later)


def _further(s: Span, facts: Facts) -> list[Place]:
    """Further events of a span that are worth reading. What was known earlier says nothing new, unless the end lost attributes.

    Args:
        facts: those of its leading event; of these, ``flags`` are looked at.
    """
    places = list(s.extra.amended) if s.extra is not None else []
    if s.state != ENDED or "attributes_dropped" in (facts.get("flags") or ()):
        if s.extra is not None and s.extra.interrupted not in (None, s.place):
            places.append(s.extra.interrupted)
        if s.started_seq not in (-1, s.seq):
            places.append(Place(s.stream, s.started_seq))
    return places


def messages_of(source: Source, leader: Span) -> Json:
    """The messages of a model call, as :class:`Told` brings them together, with nothing else read."""
    for s in leader.members():
        facts = source.facts(s.place, ("messages", "flags"))
        messages = facts.get("messages")
        for place in _further(s, facts):
            later = source.facts(place, ("messages",)).get("messages")
            if messages is None or _tells_more("messages", messages, later):
                messages = later
        if messages is not None:
            return messages
    return None


def _counting(each: list[Facts]) -> Facts:
    """The facts to take tokens from."""
    told = [f for f in each if any(f.get(key) is not None for key in TOKENS[:2])]
    return next((f for f in told if all(f.get(key) is not None for key in TOKENS[:2])), told[0] if told else each[0])


class Told:
    """The facts of one call.

    ``facts`` are those of the leading span; what it does not tell is filled up from the other spans, outermost first.
    Tokens come from one span, the first that counts both input and output, and are never summed; one that counts the same
    may add the details. Status and error are those of the outermost span. ``origins``: which event told each fact.

    Args:
        contents: also read what was said.
    """

    def __init__(self, source: Source, leader: Span, *, contents: bool = True) -> None:
        self._source = source
        self._event = source.event if contents else source.outline
        self.members = leader.members()
        self.events: list[Event] = []
        self.each: list[Facts] = []
        self.later: list[tuple[Event, Facts]] = []
        """Further events of the spans, each with all facts of its span."""
        origins: list[dict[str, Place]] = []
        for member in self.members:
            event, facts, places = self._read(member)
            self.events.append(event)
            self.each.append(facts)
            origins.append(places)
        self.facts = dict(self.each[0])
        self.origins = dict(origins[0])
        for other, places in zip(self.each[1:], origins[1:], strict=True):
            for key, value in other.items():
                if key not in _OF_ONE_SPAN and self.facts.get(key) is None:
                    self.facts[key] = value
                    self.origins[key] = places[key]
        counted = _counting(self.each)
        agreed = [f for f in self.each if all(f.get(key) == counted.get(key) for key in TOKENS[:2])]
        self.facts.update({key: next((f[key] for f in agreed if f.get(key) is not None), None) for key in TOKENS})

    def _read(self, s: Span) -> tuple[Event, Facts, dict[str, Place]]:
        """The leading event of a span, and the facts of all its events: the first one to tell a fact counts."""
        event = self._event(s.place)
        facts = dict(facts_of(event))
        origins = dict.fromkeys(facts, s.place)
        for place in _further(s, facts):
            later = self._event(place)
            self.later.append((later, facts))
            more = facts_of(later)
            better = {k: v for k, v in more.items() if facts.get(k) is None or _tells_more(k, v, facts[k])}
            facts.update(better)
            origins.update(dict.fromkeys(better, place))
            if better:  # what was cut there is cut here
                facts["flags"] = list(dict.fromkeys([*(facts.get("flags") or ()), *(more.get("flags") or ())]))
        return event, facts, origins

    def status(self) -> tuple[str, dict[str, Json] | None]:
        """(status, error) of the call."""
        at = next((i for i, m in enumerate(self.members) if m.marks & OUTERMOST), 0)
        span, facts = self.members[at], self.each[at]
        if span.kind == Kind.TOOL and not span.marks & (PUT_OUT | FAILED) and facts.get("status") is None:
            # it tells neither a result nor how it ended: a span inside it does
            facts = next((f for f in self.each if f.get("status") == "error"), facts)
        failed = facts.get("status") == "error" or bool(span.marks & FAILED)
        error = None
        if failed or facts.get("errorType") is not None:
            error = {"type": facts.get("errorType"), "message": facts.get("errorMessage")}
        if span.state != ENDED:
            return ("partial" if span.marks & PUT_OUT else "interrupted"), error
        return ("error" if failed else facts.get("status") or "ok"), error

    def flags(self) -> list[str]:
        flags = [flag for facts in self.each for flag in facts.get("flags") or ()]
        for bit, flag in ((CONFLICT, "conflict"), (REEXPORT, "probable_reexport")):
            if self.members[0].marks & bit:
                flags.append(flag)
        if any(m.marks & ROOT_MISSING for m in self.members):
            flags.append("root_missing")
        return flags

    def retry_count(self) -> int:
        """The most retries that any of the spans saw."""
        seen = [f.get("retryCount") or len(f.get("retries") or ()) for f in self.each]
        return max(*seen, *(m.extra.retries for m in self.members if m.extra is not None), 0)

    def retries(self) -> list[dict[str, Json]]:
        return max((f.get("retries") or [] for f in self.each), key=len)

    def times(self) -> tuple[int | None, int | None]:
        """Start and end in nanoseconds; of an interrupted call the end is when the recorder gave it up.

        A call ends with the span beside it that tells its answer.
        """
        s = self.members[0]
        if s.end is None and s.extra is not None and s.extra.interrupted is not None:
            return s.start, self._source.outline(s.extra.interrupted).ts * 1_000_000
        beside = [m.end or 0 for m in self.members[1:] if is_point(m) and m.scope == s.scope and m.up == s.up]
        return s.start, max([s.end, *beside]) if s.end is not None else None

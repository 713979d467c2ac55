"""Whose call was it? The rungs, the surest first: what is current, what the request names, what is below the same agent,
what has the same response id, what was said. Where two spans may be meant, none is: nothing is attributed by a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from otel_agentrec.capture.wire.calls import Attempt
from otel_agentrec.capture.wire.facts import GENERATING
from otel_agentrec.journal.facts import Facts, Kind
from otel_agentrec.journal.lists import parsed

if TYPE_CHECKING:
    from otel_agentrec.capture.opening import OpenSpan

__all__ = ["WAIT", "Verdict", "agreement", "decide", "decide_at_once"]

Json = Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """``rung`` None: not decided yet. ``is_alone``: there is no span that may be the call."""

    rung: str | None
    owner: OpenSpan | None = None
    is_alone: bool = False


WAIT = Verdict(None)


def decide_at_once(attempt: Attempt) -> Verdict:
    """What the spans that are known by now to be model calls tell: ``exact``, ``header``, or not decided."""
    for rung, start in (("exact", attempt.entry), ("header", attempt.named)):
        found = _resolved(start, attempt)
        if found is WAIT or (isinstance(found, Verdict)):
            return WAIT
        if found is not None and _is_call(found, attempt):
            return Verdict(rung, found)
    return WAIT


def decide(attempt: Attempt, *, final: bool = False) -> Verdict:
    """Decide, when the body and all spans in question have ended.

    Args:
        final: nothing more will come: what is still open can't be told from others.
    """
    base: OpenSpan | None = None
    for rung, start in (("exact", attempt.entry), ("header", attempt.named)):
        found = _resolved(start, attempt)
        if isinstance(found, Verdict):
            if not final:
                return WAIT
            continue
        if found is not None and _is_call(found, attempt):
            return Verdict(rung, found)
        base = base or found
    if attempt.request.api not in GENERATING:
        return Verdict("none")
    open_ones = [c for c in attempt.candidates if not c.claims and not c.is_left and c.kind in _MAYBE]
    if open_ones and not final:
        return WAIT
    fits = [c for c in attempt.candidates if _may_be(c, attempt)]
    fits = [c for c in fits if not any(above in fits for above in c.ancestors())]
    agreed = {c: agreement(attempt.whole_facts(), c.told.facts) for c in fits if c.told is not None}
    fits = [c for c in fits if agreed.get(c, 0) >= 0]
    below = [c for c in fits if base is not None and any(above is base for above in c.ancestors())]
    with_id = [c for c in fits if agreed.get(c, 0) & _ID]
    for rung, among in (("ancestor", below), ("response_id", with_id), ("content", fits)):
        sure = [c for c in among if agreed.get(c, 0) > 0]
        owner = _only(sure)
        if owner is None:
            continue
        rivals = [
            r for r in owner.calls or () if r is not attempt and r not in attempt.chain and _may_be_meant(r, owner)
        ]
        if any(r.exchange is None for r in rivals) and not final:
            return WAIT
        if not rivals or (rung == "ancestor" and not any(_is_below(owner, r) for r in rivals)):
            return Verdict(rung, owner)
    return Verdict("none", is_alone=not fits and not open_ones)


_MAYBE = (Kind.MODEL, None)
_ID, _SAID, _ASKED = 4, 2, 1


def agreement(call: Facts | None, span: Facts) -> int:
    """What speaks for a span being the call: bits of response id, answer, question. -1: something differs. 0: nothing tells."""
    if call is None:
        return 0
    found = 0
    if call.response_id and span.response_id:
        if call.response_id != span.response_id:
            return -1
        found |= _ID
    if call.model and span.model and not _same_model(call.model, span.model):
        return -1
    if call.status != "error" and span.status != "error":
        mine, other = _answer(call), _answer(span)
        if mine and other:
            if not _same_text(mine, other):
                return -1
            found |= _SAID
        ids, others = _call_ids(call), _call_ids(span)
        if ids and others:
            if not ids & others:
                return -1
            found |= _SAID
    mine, other = _question(call), _question(span)
    if mine and other:
        if not _same_text(mine, other):
            return -1
        found |= _ASKED
    return found


def _resolved(start: OpenSpan | None, attempt: Attempt) -> OpenSpan | Verdict | None:
    """The nearest agent step from a span upwards; WAIT while it has not told what it is."""
    at = start
    while at is not None:
        if at.kind is not None:
            return at
        if not at.is_left:
            return WAIT
        at = at.above  # it ended as no step of an agent
    return None


def _is_call(entry: OpenSpan, attempt: Attempt) -> bool:
    """Whether a span that is current is the call itself."""
    if entry.kind == Kind.MODEL:
        return True
    return entry.kind == Kind.STEP and attempt.request.api not in GENERATING


def _may_be(entry: OpenSpan, attempt: Attempt) -> bool:
    if entry.kind != Kind.MODEL or entry.claims or entry.told is None:
        return False
    return entry.owner_of is None or entry.owner_of in attempt.chain


def _only(spans: Sequence[OpenSpan]) -> OpenSpan | None:
    """The one span, or the first of one for each of several instrumentations."""
    scopes = [c.told.scope for c in spans if c.told is not None]
    return spans[0] if spans and len(set(scopes)) == len(spans) else None


def _may_be_meant(rival: Attempt, owner: OpenSpan) -> bool:
    """Whether a span may be the call of another attempt as well."""
    if rival.done or rival.followed or owner.told is None or owner not in rival.candidates:
        return False
    if rival.owner is not None:
        return False
    return agreement(rival.whole_facts(), owner.told.facts) >= 0


def _is_below(owner: OpenSpan, rival: Attempt) -> bool:
    base = rival.entry
    return base is None or any(above is base for above in owner.ancestors())


# --- what was said ------------------------------------------------------------------------------------------------------


def _same_model(a: str, b: str) -> bool:
    """One may name the dated model, or put the provider in front."""
    a, b = a.rsplit("/", 1)[-1], b.rsplit("/", 1)[-1]
    return a.startswith(b) or b.startswith(a)


def _same_text(a: str, b: str) -> bool:
    """Equal, or one is what a limit on attributes left of the other."""
    if a == b:
        return True
    short, long = sorted((a, b), key=len)
    return len(short) >= 64 and long.startswith(short.rstrip(".… "))


def _answer(facts: Facts) -> str | None:
    texts = _texts(facts.output_messages, None)
    told = "".join(texts) if texts else facts.output_text
    return told.strip() or None if isinstance(told, str) else None


def _question(facts: Facts) -> str | None:
    texts = _texts(facts.messages, ("user", "human"))
    return texts[-1].strip() or None if texts else None


def _call_ids(facts: Facts) -> set[str]:
    return {c["id"] for c in facts.calls or () if isinstance(c.get("id"), str)}


def _texts(messages: Json, roles: tuple[str, ...] | None) -> list[str]:
    out: list[str] = []
    for message in _items(messages):
        if isinstance(message, dict) and (roles is None or message.get("role") in roles):
            for part in message.get("parts") or ():
                if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("content"), str):
                    out.append(part["content"])
    return out


def _items(messages: Json) -> Iterable[Json]:
    messages = parsed(messages)
    return messages if isinstance(messages, (list, tuple)) else ()

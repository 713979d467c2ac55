"""Pass 2 of the fold: one NodeIoRecord from all that the events of a call tell."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any, NamedTuple

from otel_agentrec.journal.events import Event
from otel_agentrec.nodes.belonging import Belonging
from otel_agentrec.nodes.evaluations import Evaluations
from otel_agentrec.nodes.given import given_record
from otel_agentrec.nodes.identity import record_id
from otel_agentrec.nodes.implied import Implied
from otel_agentrec.nodes.intercepted import Intercepted
from otel_agentrec.nodes.memo import Memo
from otel_agentrec.nodes.pairing import Pairing, calls_of
from otel_agentrec.nodes.passed_on import PassedOn
from otel_agentrec.nodes.skeleton import Span
from otel_agentrec.nodes.sound import given_of, record_of, text_or_none
from otel_agentrec.nodes.source import Place, Source
from otel_agentrec.nodes.text import calls_in, is_cut, parsed, reasoning_in, text_in
from otel_agentrec.nodes.told import Told
from otel_agentrec.nodes.wire_payload import payload_of
from otel_agentrec.nodes.wires import Wire, Wires, retries_of
from otel_agentrec.records import RECORD_NAMESPACE, JournalRef, NodeIoRecord, NodeType, node_id

__all__ = ["Builder", "Heard", "message_memo"]

Json = Any


class Heard(NamedTuple):
    """What was said in a model call. ``header``: ``{instructions, tools, parameters}``.

    ``places``: the event that holds a fact itself, by the fact's key; a fact that was put together from several events has
    none. ``header_place``: the REQUEST_HEADER that holds all of the header. ``spans``: the ids of all spans that tell of the
    call.
    """

    facts: dict[str, Json]
    header: dict[str, Json]
    places: dict[str, JournalRef]
    header_place: JournalRef | None
    spans: list[str]


def message_memo() -> Memo:
    """What parses messages for a :class:`Builder`; handed from one to the next where folds are made again and again."""
    return Memo(_parsed_message)


class Builder:
    """Builds records; content is read from the source when a record is asked for."""

    def __init__(
        self,
        source: Source,
        belonging: Belonging,
        pairing: Pairing,
        implied: Implied,
        passed_on: PassedOn,
        evaluations: Evaluations,
        wires: Wires,
        intercepted: Intercepted,
        messages: Memo,
    ) -> None:
        self._source, self._belonging, self._pairing, self._implied = source, belonging, pairing, implied
        self._passed_on, self._evaluations, self._wires = passed_on, evaluations, wires
        self._intercepted = intercepted
        self._headers: dict[Place, dict[str, Json]] = {}
        self._messages = messages

    def build(self, s: Span, *, contents: bool = True) -> NodeIoRecord:
        """The record of the call that ``s`` leads.

        Args:
            contents: also what was said. Without it, messages, arguments, results, texts, error messages and explanations
                are None, and nothing is flagged as truncated; it takes a small part of the time.
        """
        told = Told(self._source, s, contents=contents)
        given = given_of(told.events[0])
        if given:
            return self._given(s, told, given, contents)
        facts, flags = told.facts, told.flags()
        kind = NodeType(s.kind)
        if kind is NodeType.TOOL and contents:
            self._intercepted.fill(told.members, facts)
            self._passed_on.fill(s, facts)
        wires = self._wires.of(told.members) if kind is NodeType.MODEL else []
        own = self._tool(s, facts, flags) if kind is NodeType.TOOL else self._model(told, wires, contents)
        retries = max(told.retries(), retries_of(wires), key=len)
        if kind is NodeType.MODEL and not own["tool_calls"] and self._implied:
            calls = self._implied.calls(s)
            if calls:
                own["tool_calls"] = calls if contents else [{**call, "arguments": None} for call in calls]
                flags.append("calls_implied")
        run, turn = self._belonging.run(s), self._belonging.turn(s)
        start, end = told.times()
        if start is not None and end is not None and end < start:
            flags.append("negative_duration")
        status, error = told.status()
        event = told.events[0]
        return NodeIoRecord(
            record_id=record_id(s),
            node_type=kind,
            node_id=node_id(kind, run, turn, s.step, own.get("tool_call_id"), own.get("tool_name")),
            run_id=run,
            session_id=self._belonging.session(s),
            turn_id=turn,
            step=s.step,
            started_at_epoch_ms=None if start is None else start // 1_000_000,
            captured_at_epoch_ms=None if end is None else end // 1_000_000,
            duration_ms=None if start is None or end is None else max(0, (end - start) // 1_000_000),
            retry_count=max(told.retry_count(), len(retries)),
            provider=facts.get("provider"),
            operation=facts.get("operation"),
            status=status,
            error=error,
            agent_name=facts.get("agentName") or self._belonging.agent_name(s),
            user_id=facts.get("userId") or self._belonging.user(s),
            dialect=facts.get("dialect"),
            trace_id=s.trace or None,
            span_id=s.span if s.trace else None,
            parent_span_id=s.parent or None,
            merged_span_ids=[m.span for m in told.members[1:]],
            copies_seen=1 + (len(s.extra.copies) if s.extra is not None else 0),
            journal=JournalRef(event.stream, event.seq, event.hash),
            keys=_keys(facts.get("keys"), wires),
            retries=retries,
            wire_ids=[wire.wire_id for wire in wires],
            wire=wires[-1].brief() if wires else None,
            answered_from=s.answered_from,
            flags=sorted(set(flags)),
            attributes=facts.get("attributes"),
            evaluations=self._evaluations.of(told.members, contents=contents),
            **own,
        )

    def _given(self, s: Span, told: Told, given: dict[str, Json], contents: bool) -> NodeIoRecord:
        """The record of a call that came as a record."""
        event = told.events[0]
        header = self._header_of(event) if contents else {}
        place = JournalRef(event.stream, event.seq, event.hash)
        record = given_record(s.kind or "", record_id(s), given, told.each[0], header, place, contents=contents)
        copies = given.get("copiesSeen")
        return dataclasses.replace(
            record,
            copies_seen=(copies if isinstance(copies, int) else 1)
            + (len(s.extra.copies) if s.extra is not None else 0),
            flags=list(dict.fromkeys([*record.flags, *told.flags()])),
            evaluations=self._evaluations.of(told.members, contents=contents),
        )

    def told(self, s: Span) -> tuple[dict[str, Json], dict[str, Json]]:
        """Of the call that ``s`` leads: (facts that all its events tell, ``{instructions, tools, parameters}``)."""
        told = Told(self._source, s, contents=True)
        facts = dict(told.facts)
        if s.kind != NodeType.TOOL.value:
            return facts, self._header(told)
        self._intercepted.fill(told.members, facts)
        self._passed_on.fill(s, facts)
        facts["arguments"] = self._pairing.named_arguments(s, facts.get("arguments"))
        facts["toolCallId"] = facts.get("toolCallId") or self._pairing.implied_id(s)
        return facts, {}

    def heard(self, s: Span) -> Heard:
        """What was said in the call that ``s`` leads, with the places where it stands."""
        told = Told(self._source, s, contents=True)
        facts = dict(told.facts)
        for key in ("messages", "outputMessages"):
            facts[key] = self._parsed(facts.get(key))
        places: dict[str, JournalRef] = {}
        for key, place in told.origins.items():
            if self._source.holds(place, key):
                event = self._source.outline(place)
                places[key] = JournalRef(event.stream, event.seq, event.hash)
        told_by = [event for event in (*told.events, *(e for e, _ in told.later)) if self._header_of(event)]
        header_place = None
        if len({(e.stream, record_of(e).get("header")) for e in told_by}) == 1:
            event = self._source.outline(Place(told_by[0].stream, record_of(told_by[0])["header"]))
            header_place = JournalRef(event.stream, event.seq, event.hash)
        return Heard(facts, self._header(told), places, header_place, [m.span for m in told.members])

    def recovered(
        self, model: Span, index: int, call_id: str, result: Json, seen_in: Span, *, contents: bool = True
    ) -> NodeIoRecord:
        """A tool call without a span, whose result was seen in the messages of a later model call."""
        ident, name = calls_of(model)[index]
        same = sum(other == ident for other, _ in calls_of(model)[:index])  # some servers use one id for several calls
        asked = self._pairing.asked_arguments(model) if contents else []
        run, turn = self._belonging.run(model), self._belonging.turn(model)
        event = self._source.outline(seen_in.place)
        arguments = asked[index] if index < len(asked) else None
        words = (run, call_id, record_id(model), *([str(same)] if same else []))
        own_id = str(uuid.uuid5(RECORD_NAMESPACE, "/".join(words)))
        return NodeIoRecord(
            record_id=own_id,
            node_type=NodeType.TOOL,
            node_id=node_id(NodeType.TOOL, run, turn, model.step, call_id, name),
            run_id=run,
            session_id=self._belonging.session(model),
            turn_id=turn,
            step=model.step,
            inputs={"name": name, "arguments": arguments, "callId": call_id},
            outputs=parsed(result) if contents else None,
            tool_name=name,
            tool_call_id=call_id,
            agent_name=self._belonging.agent_name(model),
            dialect="recovered",
            trace_id=model.trace or None,
            journal=JournalRef(event.stream, event.seq, event.hash),
            evaluations=self._evaluations.of_record(own_id, contents=contents),
        )

    def _model(self, told: Told, wires: list[Wire], contents: bool) -> dict[str, Any]:
        facts, header = told.facts, self._header(told) if contents else {}
        model = facts.get("model") or facts.get("responseModel")
        messages, raw = self._parsed(facts.get("outputMessages")), facts.get("outputRaw")
        if raw is None and contents:
            raw = payload_of(self._source, wires)
        text, reasoning = text_or_none(facts.get("outputText")), text_or_none(facts.get("reasoningText"))
        return {
            "model_id": model,
            "inputs": {
                "model": model,
                "messages": self._parsed(facts.get("messages")),
                "systemInstructions": header.get("instructions"),
                "tools": header.get("tools"),
                "parameters": header.get("parameters"),
            },
            "output_text": text if text is not None else text_in(messages),
            "outputs": messages if raw is None else raw,
            "reasoning_text": reasoning if reasoning is not None else reasoning_in(messages),
            "tool_calls": _tool_calls(messages, facts.get("calls")),
            "response_model": facts.get("responseModel"),
            "response_id": facts.get("responseId"),
            "finish_reasons": facts.get("finishReasons") or [],
            "streamed": facts.get("streamed"),
            "input_tokens": facts.get("inputTokens"),
            "output_tokens": facts.get("outputTokens"),
            "cache_read_tokens": facts.get("cacheReadTokens"),
            "cache_write_tokens": facts.get("cacheWriteTokens"),
            "reasoning_tokens": facts.get("reasoningTokens"),
            "other_tokens": facts.get("otherTokens"),
        }

    def _parsed(self, messages: Json) -> Json:
        return self._messages.map(messages) if isinstance(messages, list) else messages

    def _tool(self, s: Span, facts: dict[str, Json], flags: list[str]) -> dict[str, Any]:
        name, arguments, result = facts.get("toolName"), facts.get("arguments"), facts.get("result")
        call_id = facts.get("toolCallId") or self._pairing.implied_id(s)
        if is_cut(arguments):
            flags.append("input_truncated")
        if is_cut(result):
            flags.append("output_truncated")
        return {
            "inputs": {"name": name, "arguments": self._pairing.named_arguments(s, arguments), "callId": call_id},
            "outputs": parsed(result),
            "output_text": text_or_none(facts.get("outputText")),
            "tool_name": name,
            "tool_call_id": call_id,
        }

    def _header(self, told: Told) -> dict[str, Json]:
        """Instructions, tools and parameters of a model call, filled up from all its spans, outermost first.

        Instructions that one span tells apart may stand among the messages of another: then they are told once, there.
        """
        found: dict[str, Json] = {}
        told_by = [*zip(told.events, told.each, strict=True), *told.later]
        for event, _ in told_by:
            for key, value in self._header_of(event).items():
                if key == "parameters" and isinstance(value, dict):
                    found[key] = {**value, **found.get(key, {})}
                else:
                    found.setdefault(key, value)
        if len(told.members) > 1 and _has_instructions(told.facts.get("messages")):
            asking = next((facts for facts in told.each if facts.get("messages") is not None), None)
            apart = [self._header_of(event).get("instructions") for event, facts in told_by if facts is asking]
            found["instructions"] = next((told for told in apart if told is not None), None)
        return found

    def _header_of(self, event: Event) -> dict[str, Json]:
        """The payload of the REQUEST_HEADER that an event points at."""
        seq = record_of(event).get("header")
        if not isinstance(seq, int):
            return {}
        place = Place(event.stream, seq)
        if place not in self._headers:
            try:
                self._headers[place] = self._source.event(place).payload
            except LookupError:  # the header's line is damaged
                return {}
            if len(self._headers) > 16:
                self._headers.pop(next(iter(self._headers)))
        return self._headers[place]


def _keys(told: Json, wires: list[Wire]) -> dict[str, str]:
    """Content keys by scheme; ``wire``: of the last attempt that was seen."""
    keys = {scheme: key for scheme, key in told.items() if isinstance(key, str)} if isinstance(told, dict) else {}
    seen = next((wire.key for wire in reversed(wires) if wire.key is not None), None)
    return keys if seen is None else {"wire": seen, **keys}


def _tool_calls(messages: Json, calls: Json) -> list[dict[str, Json]] | None:
    """The calls that a model asked for: from its messages, else from the ids and names that the event tells."""
    said = calls_in(messages) if isinstance(messages, list) else []
    if said or not isinstance(calls, list) or not calls:
        return said if isinstance(messages, list) or isinstance(calls, list) else None
    return [{"id": c.get("id"), "name": c.get("name"), "arguments": None} for c in calls if isinstance(c, dict)]


def _has_instructions(messages: Json) -> bool:
    return isinstance(messages, list) and any(
        isinstance(m, dict) and m.get("role") in ("system", "developer") for m in messages
    )


def _parsed_message(message: Json) -> Json:
    """A message with the arguments of its tool calls parsed; everything else as it is, also the marker of a lost one."""
    parts = message.get("parts") if isinstance(message, dict) else None
    if not isinstance(parts, list) or not any(_has_call_text(p) for p in parts):
        return message
    return {**message, "parts": [{**p, "arguments": parsed(p["arguments"])} if _has_call_text(p) else p for p in parts]}


def _has_call_text(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_call" and isinstance(part.get("arguments"), str)

"""Events as capture would write them, made by hand."""

from __future__ import annotations

import itertools
from typing import Any

from otel_agentrec.journal.events import Event

MS = 1_000_000
T0 = 1_767_225_600_000 * MS


def ns(ms: float) -> str:
    return str(T0 + int(ms * MS))


class Telling:
    """Writes events one after the other into one stream."""

    def __init__(self, stream: str = "s1") -> None:
        self.stream = stream
        self.events: list[Event] = []
        self._seq = itertools.count()

    def tell(
        self, type_: str, payload: dict[str, Any], trace: dict[str, Any] | None = None, ts: int = 0, **envelope: Any
    ) -> Event:
        seq = next(self._seq)
        event = Event(
            id=f"{self.stream}-{seq}",
            stream=self.stream,
            seq=seq,
            ts=ts,
            type=type_,
            payload=payload,
            trace=trace,
            hash=f"{seq:064x}",
            **envelope,
        )
        self.events.append(event)
        return event

    def span(
        self,
        type_: str,
        span: str,
        *,
        kind: str | None = None,
        trace: str = "t1",
        parent: str | None = None,
        path: list[str] | None = None,
        at: tuple[float | None, float | None] = (0, 1),
        name: str = "",
        scope: str = "scope.a",
        facts: dict[str, Any] | None = None,
        header: int | None = None,
        **envelope: Any,
    ) -> Event:
        where: dict[str, Any] = {"traceId": trace, "spanId": span}
        if parent:
            where["parentSpanId"] = parent
        if path is not None:
            where["path"] = path
        payload: dict[str, Any] = {"name": name, "scope": scope, "facts": facts or {}}
        if kind:
            payload["kind" if type_.startswith("STEP") else "type"] = kind
        for key, ms in zip(("startedAt", "endedAt"), at, strict=True):
            if ms is not None:
                payload[key] = ns(ms)
        if header is not None:
            payload["header"] = header
        return self.tell(type_, payload, where, **envelope)

    def model(self, span: str, **more: Any) -> Event:
        return self.span("NODE_RECORDED", span, kind="MODEL", **more)

    def tool(self, span: str, **more: Any) -> Event:
        return self.span("NODE_RECORDED", span, kind="TOOL", **more)

    def agent(self, span: str, **more: Any) -> Event:
        return self.span("RUN_ENDED", span, **more)

    def log(
        self,
        facts: dict[str, Any],
        at: float,
        *,
        span: str | None = None,
        trace: str = "t1",
        scope: str = "scope.a",
        **more: Any,
    ) -> Event:
        """A log record that tells of some model call; ``span``: the one that it names."""
        where = {"traceId": trace, "spanId": span} if span else None
        payload = {"name": "gen_ai.choice", "scope": scope, "observedAt": ns(at), "facts": facts, **more}
        return self.tell("LOG_RECORDED", payload, where)


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def asks(*calls: tuple[str | None, str, Any]) -> dict[str, Any]:
    """Facts of a model call that asks for tool calls (id, name, arguments)."""
    parts = [{"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls]
    return {
        "model": "m",
        "outputMessages": [{"role": "assistant", "parts": parts}],
        "calls": [{"id": i, "name": n} for i, n, _ in calls],
    }


def answer(call_id: str, result: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": result}]}


def does(name: str, arguments: Any = None, result: Any = None, call_id: str | None = None) -> dict[str, Any]:
    """Facts of a tool call."""
    facts = {"toolName": name, "arguments": arguments, "result": result, "toolCallId": call_id}
    return {k: v for k, v in facts.items() if v is not None}

"""Which tools of the program a recorded answer asks for."""

from __future__ import annotations

from otel_agentrec.capture.wire.facts import answer_facts
from otel_agentrec.journal.facts import Facts
from otel_agentrec.nodes.exchange import RecordedResponse
from otel_agentrec.nodes.wire import WireRecord

__all__ = ["asked_tools"]


def asked_tools(told: WireRecord) -> list[str]:
    """Names of the tools that the program is to run, each once. Those that the provider runs itself are not told."""
    answer, facts = told.answer, Facts()
    response = RecordedResponse(told.status, end=str(told.payload.get("end") or "eof"))
    answer_facts(facts, response, answer.payload, answer.complete, answer.streamed)
    names = [call.get("name") for call in facts.calls or ()]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))

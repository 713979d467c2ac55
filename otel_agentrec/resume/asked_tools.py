"""Which tools of the program a recorded answer asks for, and whether somebody intercepts them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from otel_agentrec.capture.wire.facts import answer_facts
from otel_agentrec.errors import ToolNotIntercepted
from otel_agentrec.intercept.declared import is_declared
from otel_agentrec.intercept.install import covered_tools
from otel_agentrec.journal.facts import Facts
from otel_agentrec.nodes.exchange import RecordedResponse
from otel_agentrec.nodes.wire import WireRecord

__all__ = ["ALL", "asked_tools", "refuse_unseen"]

ALL = "all"
"""As the only name of ``rerun_tools``: any tool may run that nobody intercepts."""


def asked_tools(told: WireRecord) -> list[str]:
    """Names of the tools that the program is to run, each once. Those that the provider runs itself are not told."""
    answer, facts = told.answer, Facts()
    response = RecordedResponse(told.status, end=str(told.payload.get("end") or "eof"))
    answer_facts(facts, response, answer.payload, answer.complete, answer.streamed)
    names = [call.get("name") for call in facts.calls or ()]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def refuse_unseen(names: Iterable[str], rerun: Collection[str]) -> None:
    """Stop before an answer is handed out that asks for tools which would run unseen.

    Args:
        rerun: names of tools that may; or only ``all``.

    Raises:
        ToolNotIntercepted: one of them is not allowed.
    """
    unseen = [name for name in names if name not in rerun and not is_declared(name)]
    if unseen and set(rerun) != {ALL} and not covered_tools():
        raise ToolNotIntercepted(
            f"the recorded answer asks for the tool {unseen[0]}, which nobody intercepts: it would run for real once more",
            f"decorate it with @resumable_tool, or, where that does no harm, allow it: --rerun-tools {','.join(unseen)} "
            f"(or OTEL_AGENTREC_RERUN_TOOLS)",
        )

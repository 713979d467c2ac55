"""Which tools of the program a recorded answer asks for, and whether somebody intercepts them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from otel_agentrec.capture.wire.facts import answer_facts
from otel_agentrec.errors import ToolNotIntercepted
from otel_agentrec.intercept.declared import is_declared
from otel_agentrec.intercept.install import covered_tools
from otel_agentrec.journal.facts import Facts
from otel_agentrec.nodes.exchange import RecordedResponse
from otel_agentrec.nodes.wire import WireRecord
from otel_agentrec.records import NodeIoRecord, NodeType

__all__ = ["ALL", "asked_tools", "refuse_unseen", "told_tools"]

Json = Any
ALL = "all"
"""As the only name of ``rerun_tools``: any tool may run that nobody intercepts."""


def asked_tools(told: WireRecord) -> list[str]:
    """Names of the tools that the program is to run, each once. Those that the provider runs itself are not told."""
    answer, facts = told.answer, Facts()
    response = RecordedResponse(told.status, end=str(told.payload.get("end") or "eof"))
    answer_facts(facts, response, answer.payload, answer.complete, answer.streamed)
    return _names(facts.calls or ())


def told_tools(record: NodeIoRecord) -> list[str]:
    """The same of a model call that ended well, as its telemetry tells it."""
    is_answer = record.node_type is NodeType.MODEL and record.status == "ok"
    return _names(record.tool_calls or () if is_answer else ())


def refuse_unseen(
    names: Iterable[str], rerun: Collection[str], what: str = "the recorded answer asks for the tool"
) -> None:
    """Stop before tools would run unseen that a recorded answer had asked for.

    Args:
        rerun: names of tools that may; or only ``all``.
        what: how the answer asks, for the message.

    Raises:
        ToolNotIntercepted: one of them is not allowed.
    """
    unseen = [name for name in names if name not in rerun and not is_declared(name)]
    if unseen and set(rerun) != {ALL} and not covered_tools():
        raise ToolNotIntercepted(
            f"{what} {unseen[0]}, which nobody intercepts: it would run for real once more",
            f"decorate it with @resumable_tool, or, where that does no harm, allow it: --rerun-tools {','.join(unseen)} "
            f"(or OTEL_AGENTREC_RERUN_TOOLS)",
        )


def _names(calls: Iterable[Json]) -> list[str]:
    names = [call.get("name") for call in calls if isinstance(call, dict)]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))

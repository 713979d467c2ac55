"""``python -m tests.frameworks.tool_agents.cases FRAMEWORK MODE[,MODE] FILE``: all that the agents of a framework do with tools.

The module of the framework has ``build`` and ``ask`` (two tools side by side, whole and streamed, and a tool that fails),
and ``CASES``: name → function of the model's address, which gives what the agent said. Modes:

* ``keep``: all tools run, and their outcomes go to FILE; its first agent is built before the framework is patched;
* ``answer``: all are answered from FILE, as a resumed run does;
* ``inner``: an agent that is a tool runs again, other tools are answered, as a replay does;
* ``stop``: nobody knows what became of ``weather``; all other tools run.

Prints one line of JSON: by mode and case what it gave, which tools really ran, the calls that were seen, those cut off, the
number of spans.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import UnknownOutcomeError
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.install import install
from otel_agentrec.intercept.protocol import PASS, Pass, ToolCall, ToolOutcome
from tests.frameworks.tool_agents import stage

EXPERT = "You are the expert."
COUNT = "Count the trains."
ASK_EXPERT = "Ask the expert about Finse."
ASK_FERRY = "Tell of Finse and of the ferry."
INNER = "Is it wet in Finse?"
EXPERT_CALL = Call("expert", {"input": INNER}, id="call-5")
FERRY_CALL = Call("ferry", {"place": "Bergen"}, id="call-6")
WEATHER_CALL = Call("weather", {"place": "Finse"}, id="call-7")
CALLS = {
    COUNT: [Call("counting", {"start": "Finse", "to": "Oslo"}, id="call-8")],
    EXPERT: [WEATHER_CALL],
    ASK_EXPERT: [EXPERT_CALL],
    ASK_FERRY: [FERRY_CALL, WEATHER_CALL],
}
SPANS = InMemorySpanExporter()
SLOW = 0.3
"""Seconds that the ferry takes: longer than it takes to refuse the tool beside it."""


SCRIPT = [
    *(Turn(tool_calls=calls, when=When(any=text, step=1), times=0) for text, calls in CALLS.items()),
    *stage.SCRIPT,
]


async def ferry(place: str) -> str:
    """Whether the ferry goes."""
    await asyncio.sleep(SLOW)
    stage.RAN.append("ferry")
    return f"the ferry to {place} goes"


def ferry_now(place: str) -> str:
    """Whether the ferry goes."""
    time.sleep(SLOW)
    stage.RAN.append("ferry")
    return f"the ferry to {place} goes"


class Answerer:
    """Of one mode; see above."""

    def __init__(self, mode: str, file: Path) -> None:
        self.mode = mode
        self.calls: list[ToolCall] = []
        self.cut: list[str] = []
        self.case = ""
        self.kept: dict[str, dict[str, Any]] = json.loads(file.read_text()) if mode in ("answer", "inner") else {}

    def answer(self, call: ToolCall) -> ToolOutcome | ToolCall | Pass:
        self.calls.append(call)
        if self.mode == "stop" and call.name.endswith("weather"):
            raise UnknownOutcomeError(f"nobody knows whether {call.name} happened")
        if self.mode == "answer" or (self.mode == "inner" and call.name != "expert"):
            return ToolOutcome(**self.kept[self.case][stage.key(call)])
        return PASS

    def returned(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self.kept.setdefault(self.case, {})[stage.key(call)] = {
            "value": outcome.value,
            "codec": outcome.codec,
            "error": outcome.error,
        }

    def cancelled(self, call: ToolCall, error: BaseException) -> None:
        if not isinstance(error, UnknownOutcomeError):
            self.cut.append(f"{call.name}: {error!r}")


def tried(case: Callable[[str], Any], address: str) -> str:
    try:
        return f"gave {case(address)}"
    except BaseException as error:
        while getattr(error, "exceptions", None):
            error = error.exceptions[0]  # type: ignore[attr-defined]
        return f"raised {type(error).__name__}: {error}"


def main(framework: str, modes: str, file: Path) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(SPANS))
    trace.set_tracer_provider(provider)
    module = importlib.import_module(f"tests.frameworks.tool_agents.{framework}")
    with ScriptedServer(getattr(module, "CASES_SCRIPT", SCRIPT), seed="tools") as server:
        if modes != "keep":
            install()
        cases = {**own(module, server.base_url), **module.CASES}
        install()
        print(json.dumps({mode: played(cases, server.base_url, mode, file) for mode in modes.split(",")}), flush=True)


def played(cases: dict[str, Callable[[str], Any]], address: str, mode: str, file: Path) -> dict[str, Any]:
    answerer = Answerer(mode, file)
    done: dict[str, Any] = {}
    for name, case in cases.items():
        stage.RAN.clear()
        SPANS.clear()
        answerer.case, answerer.calls, answerer.cut = name, [], []
        with using(tools=answerer):
            said = tried(case, address)
        calls = [[call.hook, call.name, call.arguments, call.call_id] for call in answerer.calls]
        done[name] = {
            "said": said,
            "ran": sorted(stage.RAN),
            "calls": sorted(calls, key=json.dumps),
            "containers": [call.name for call in answerer.calls if call.kind == "container"],
            "with span": all(call.span is not None for call in answerer.calls),
            "cut": answerer.cut,
            "spans": len(SPANS.get_finished_spans()),
        }
    if mode == "keep":
        file.write_text(json.dumps(answerer.kept))
    return done


def own(module: Any, address: str) -> dict[str, Callable[[str], Any]]:
    """What every agent does."""
    if not hasattr(module, "build"):
        return {}
    agent = module.build(address)
    return {
        "whole": lambda _: module.ask(agent, stage.QUESTION, stream=False),
        "streamed": lambda _: module.ask(agent, stage.QUESTION, stream=True),
        "trouble": lambda _: module.ask(agent, stage.TROUBLE, stream=False),
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

"""``python -m tests.frameworks.tool_agents FRAMEWORK keep|answer FILE``: run the agent of a framework through all cases.

Prints one line of JSON: what each case gave, how many tools really ran, which calls were seen, and the number of spans.
With ``keep`` the agent is built before its framework is patched, with ``answer`` after.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.intercept.active import using
from tests.frameworks.tool_agents import stage


def tried(function: Callable[[], Any]) -> str:
    """What it gave or raised, whatever that is."""
    try:
        return f"gave {function()}"
    except BaseException as error:
        while getattr(error, "exceptions", None):
            error = error.exceptions[0]
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return f"raised {type(error).__module__}.{type(error).__qualname__}: {error}"


def main(framework: str, mode: str, file: Path) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    module = importlib.import_module(f"tests.frameworks.tool_agents.{framework}")
    streamed = getattr(module, "STREAMED", stage.QUESTION)
    answerer = stage.Keeping() if mode == "keep" else stage.FromFile(file)
    from otel_agentrec.intercept.install import install

    if mode == "answer":
        install()
    with ScriptedServer(stage.SCRIPT, seed="tools") as server:
        agent = module.build(server.base_url)
        if mode == "keep":
            install()
        done: dict[str, Any] = {}
        with using(tools=answerer):
            done["whole"] = tried(lambda: module.ask(agent, stage.QUESTION, stream=False))
            done["streamed"] = tried(lambda: module.ask(agent, streamed, stream=True))
            done["trouble"] = tried(lambda: module.ask(agent, stage.TROUBLE, stream=False))
            done["by hand"] = tried(lambda: module.use(agent, "Nowhere"))
        counted = dict(Counter(span.name for span in spans.get_finished_spans()))
        asked = len(server.requests)
        if mode == "answer":
            stopping = stage.Stopping()
            with using(tools=stopping):
                done["stopped"] = tried(lambda: module.ask(agent, stage.QUESTION, stream=False))
                done["stopped streamed"] = tried(lambda: module.ask(agent, streamed, stream=True))
            done["stopped requests"] = len(server.requests) - asked
    if mode == "keep":
        file.write_text(json.dumps(answerer.outcomes))
    calls = [{k: v for k, v in asdict(call).items() if k not in ("span", "token")} for call in answerer.calls]
    print(json.dumps({"done": done, "ran": stage.RAN, "calls": calls, "spans": counted, "requests": asked}), flush=True)


main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

"""``python -m tests.frameworks.tool_agents.unchanged FRAMEWORK BASE [bare]``: an agent that knows nothing of a recording.

It is asked twice, whole and streamed. The last line on stdout is JSON: what it said, and which tools really ran. ``bare``:
the framework's own telemetry is off.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from tests.frameworks.tool_agents import stage


def main(framework: str, base_url: str, bare: str = "") -> None:
    module: Any = importlib.import_module(f"tests.frameworks.tool_agents.{framework}")
    if bare:
        module.Agent.instrument_all(False)
    question = getattr(module, "QUESTION", stage.QUESTION)
    agent = module.build(base_url)
    whole = module.ask(agent, question, stream=False)
    streamed = module.ask(agent, getattr(module, "STREAMED", question), stream=True)
    print(json.dumps({"whole": whole, "streamed": streamed, "ran": sorted(stage.RAN)}), flush=True)


main(*sys.argv[1:])

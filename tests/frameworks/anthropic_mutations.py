"""``python -m tests.frameworks.anthropic_mutations FOLDER``: record one request of the Anthropic SDK, then send mutations of it.

Says in one line of JSON: ``{tried, answered, unnamed: [[place, path]], renamed}``, the last one the answer to the recorded
request with other ids of its tool uses.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

from anthropic import Anthropic

from otel_agentrec import configure, replaying
from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.install import install
from otel_agentrec.replay.answering import Replay
from otel_agentrec.replay.recorded_run import load
from tests.replay.mutating import mutations, names_it

Json = Any
KEPT = ("model", "max_tokens", "messages")
BODY: dict[str, Json] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief. One  line.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Which day?"}, {"type": "text", "text": "And why?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {
                    "type": "tool_use",
                    "id": "toolu_a",
                    "name": "search",
                    "input": {"date": "2026-11-30", "n": 1, "x": None},
                },
                {
                    "type": "tool_use",
                    "id": "toolu_b",
                    "name": "search",
                    "input": {"date": "2026-12-01", "n": 2, "x": False},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_a", "content": "Monday"},
                {"type": "tool_result", "tool_use_id": "toolu_b", "content": "Tuesday", "is_error": False},
            ],
        },
    ],
    "tools": [
        {
            "name": name,
            "description": f"{name} something",
            "input_schema": {
                "type": "object",
                "properties": {"date": {"type": "string"}, "n": {"type": "integer", "minimum": 0, "default": None}},
                "required": ["date", "n"],
                "additionalProperties": False,
            },
        }
        for name in ("search", "book", "cancel")
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
    "temperature": 0.5,
    "top_k": 40,
    "stop_sequences": ["END", "STOP"],
    "metadata": {"user_id": "a"},
}


def ask(client: Anthropic, body: Json) -> str:
    body = copy.deepcopy(body)
    given = {name: body.pop(name) for name in KEPT}
    return "".join(block.text for block in client.messages.create(**given, extra_body=body).content)


def with_other_ids() -> Json:
    return json.loads(json.dumps(BODY).replace("toolu_", "other-"))


def main(folder: Path) -> None:
    with ScriptedServer([Turn("Monday.", times=0)]) as server, configure(folder / "rec", wire=True):
        client = Anthropic(base_url=server.base_url.removesuffix("/v1"), api_key="none", max_retries=2)
        ask(client, BODY)
    run, recorder = load(folder / "rec"), configure(folder / "spans")
    install()
    tried, answered, unnamed = 0, 0, []
    for at, body in mutations(BODY, KEPT):
        replay = Replay(run, recorder)
        with using(models=replay.models, forbid_unknown=True):
            try:
                ask(client, body)
            except ReplayDivergence:
                pass
        tried += 1
        answered += replay.report.models
        told = replay.report.divergence
        if told is None or not names_it(at, told["path"]):
            unnamed.append([at, told and told["path"]])
    recorder.shutdown()
    with replaying(folder / "rec"):
        renamed = ask(client, with_other_ids())
    print(json.dumps({"tried": tried, "answered": answered, "unnamed": unnamed, "renamed": renamed}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

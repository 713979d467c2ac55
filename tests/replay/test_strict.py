"""Nothing but the recorded request gets its answer: mutations of it, and calls that cross each other."""

from __future__ import annotations

import asyncio
import copy
import random
import time
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, InternalServerError, OpenAI

from otel_agentrec import agent_run, configure, replaying
from otel_agentrec.demo.script import Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.errors import ReplayDivergence
from otel_agentrec.intercept.active import using
from otel_agentrec.intercept.install import install
from otel_agentrec.replay.answering import Replay
from otel_agentrec.replay.recorded_run import load

from .agent import client_of, recording
from .mutating import mutations, names_it

Json = Any
CALLS = [
    {"id": "call_a", "type": "function", "function": {"name": "search", "arguments": '{"date":"2026-11-30","n":1}'}},
    {"id": "call_b", "type": "function", "function": {"name": "search", "arguments": '{"date":"2026-12-01","n":2}'}},
]
BODY: dict[str, Json] = {
    "model": "gpt-5-mini",
    "messages": [
        {"role": "system", "content": "Be brief. Answer in one  line."},
        {"role": "user", "content": [{"type": "text", "text": "Which day?"}, {"type": "text", "text": "And why?"}]},
        {"role": "assistant", "content": None, "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "call_a", "content": "Monday"},
        {"role": "tool", "tool_call_id": "call_b", "content": "Tuesday"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": f"{name} something",
                "parameters": {
                    "type": "object",
                    "properties": {"date": {"type": "string"}, "n": {"type": "integer", "minimum": 0, "default": None}},
                    "required": ["date", "n"],
                    "additionalProperties": False,
                },
            },
        }
        for name in ("search", "book", "cancel")
    ],
    "tool_choice": "auto",
    "temperature": 0.5,
    "max_completion_tokens": 100,
    "stop": ["END", "STOP"],
    "metadata": {"team": "a", "empty": ""},
    "seed": 7,
}


def test_of_more_than_500_mutations_none_is_answered_and_each_is_named(tmp_path: Path) -> None:
    def ask(client: OpenAI, body: Json) -> str:
        body = copy.deepcopy(body)
        given = {name: body.pop(name) for name in ("model", "messages")}
        return client.chat.completions.create(**given, extra_body=body).choices[0].message.content or ""

    with recording(tmp_path / "rec", [Turn("Monday.", times=0)]) as client:
        answer = ask(client, BODY)
    tried, unnamed = 0, []
    run, recorder = load(tmp_path / "rec"), configure(tmp_path / "spans")
    install()
    for at, body in mutations(BODY, kept=("model", "messages")):
        replay = Replay(run, recorder)
        with using(models=replay.models, forbid_unknown=True), pytest.raises(ReplayDivergence):
            ask(client, body)
        tried += 1
        report = replay.report
        assert report.models == 0
        assert report.divergence is not None
        if not names_it(at, report.divergence["path"]):
            unnamed.append((at, report.divergence["path"]))
    assert tried >= 500
    assert not unnamed
    renamed = copy.deepcopy(BODY)
    for message in renamed["messages"]:
        if "tool_call_id" in message:
            message["tool_call_id"] = message["tool_call_id"].replace("call_", "other-")
        for call in message.get("tool_calls", ()):
            call["id"] = call["id"].replace("call_", "other-")
    with replaying(tmp_path / "rec"):
        assert ask(client, renamed) == answer, "tool-call ids that were made anew are no divergence"


WORKERS, TURNS = 4, 2


@pytest.mark.slow
def test_of_200_interleavings_each_caller_gets_its_own_answers(tmp_path: Path) -> None:
    """Four agents side by side ask the very same things; they differ by their lane only."""

    async def worker(client: AsyncOpenAI, n: int, order: random.Random) -> list[str]:
        got = []
        with agent_run(f"worker-{n}"):
            for turn in range(TURNS):
                for _ in range(order.randrange(4)):
                    await asyncio.sleep(0)
                answer = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": f"turn {turn}"}]
                )
                got.append(answer.choices[0].message.content or "")
        return got

    async def all_of(client: AsyncOpenAI, seed: int) -> list[list[str]]:
        order = random.Random(seed)
        starts = list(range(WORKERS))
        order.shuffle(starts)
        found = dict(zip(starts, await asyncio.gather(*(worker(client, n, order) for n in starts)), strict=True))
        return [found[n] for n in range(WORKERS)]

    answers = [Turn(f"answer {n}", when=When(api="chat")) for n in range(WORKERS * TURNS)]
    with recording(tmp_path / "rec", answers) as plain:
        client = AsyncOpenAI(base_url=plain.base_url, api_key="none")
        before = asyncio.run(all_of(client, 0))
    assert len({text for texts in before for text in texts}) == WORKERS * TURNS
    client = AsyncOpenAI(base_url=client.base_url, api_key="none")
    for seed in range(200):
        with replaying(tmp_path / "rec"):
            assert asyncio.run(all_of(client, seed)) == before, seed


def test_errors_and_refused_attempts_come_back_as_they_were(tmp_path: Path) -> None:
    script = [
        Turn(status=429, headers={"retry-after": "1"}),
        Turn("At last."),
        Turn(status=500, times=0),
    ]

    def ask(client: OpenAI) -> str:
        asked: Json = {"model": "m", "messages": [{"role": "user", "content": "Now?"}]}
        said = client.chat.completions.create(**asked).choices[0].message.content
        with pytest.raises(InternalServerError):
            client.with_options(max_retries=0).chat.completions.create(**asked)
        return said or ""

    with ScriptedServer(script) as server, configure(tmp_path / "rec", wire=True):
        client = client_of(server.base_url)
        assert ask(client) == "At last."
    for retries, models in (("replay", 3), ("collapse", 2)):
        begun = time.monotonic()
        with replaying(tmp_path / "rec", retries=retries) as report:
            assert ask(client) == "At last."
        assert report.models == models
        assert (time.monotonic() - begun >= 1) == (retries == "replay")

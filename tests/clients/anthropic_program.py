"""Run in an environment that has the ``anthropic`` SDK: what its two clients give, printed as JSON. See test_anthropic_sdk.py."""

import asyncio
import json
import sys

import anthropic

from otel_agentrec.clients.ready import AnthropicClient, AsyncAnthropicClient
from otel_agentrec.demo.script import Turn, When
from otel_agentrec.demo.server import ScriptedServer
from otel_agentrec.prompts import AgentModelResult, AgentPrompt
from tests.clients.scenes import PROMPT, SCRIPT, Ear, assert_heard, next_prompt, told

OPTIONS = AgentPrompt(
    "m",
    "Hello",
    temperature=0.5,
    top_p=0.9,
    reasoning={"type": "enabled", "budget_tokens": 1024},
    extra_body={"top_k": 3, "stop_sequences": ["."], "new_option": {"a": 1}},
)


async def main(is_async: bool) -> dict[str, object]:
    failing = [Turn("no", status=status, when=When(last=f"FAIL {status}"), times=0) for status in (429, 529)]
    with ScriptedServer([*failing, *SCRIPT], seed="s") as server:
        options = {"base_url": server.url, "api_key": "none", "max_retries": 0}
        loop = AsyncAnthropicClient(anthropic.AsyncAnthropic(**options))
        threads = AnthropicClient(anthropic.Anthropic(**options))

        async def ask(prompt: AgentPrompt) -> AgentModelResult:
            return await loop.create(prompt) if is_async else threads.create(prompt)

        async def stream(prompt: AgentPrompt, ear: Ear) -> AgentModelResult:
            return await loop.create_stream(prompt, ear) if is_async else threads.create_stream(prompt, ear)

        ear = Ear()
        whole, streamed = await ask(PROMPT), await stream(PROMPT, ear)
        assert_heard(ear, streamed)
        await ask(OPTIONS)
        options_sent = server.requests[-1].body
        answer = await ask(next_prompt(whole))
        errors = []
        for status in (429, 529):
            try:
                await ask(AgentPrompt("m", f"FAIL {status}"))
            except anthropic.APIStatusError as error:
                errors.append([type(error).__name__, error.status_code])
        return {
            "whole": told(whole),
            "streamed": told(streamed),
            "usage": [whole.usage, streamed.usage],
            "finish": [whole.finish_reasons, streamed.finish_reasons],
            "options": options_sent,
            "answer": answer.output_text,
            "errors": errors,
        }


json.dump(asyncio.run(main(sys.argv[1] == "loop")), sys.stdout)

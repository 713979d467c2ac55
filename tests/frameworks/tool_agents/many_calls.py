"""``python -m tests.frameworks.tool_agents.many_calls BASE COUNT``: model calls of LangChain side by side, on threads and tasks.

Half of them ask the same. Each has its number in its metadata. The last line on stdout is JSON: number -> the id of the
answer that it got.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_openai import ChatOpenAI


def main(base_url: str, count: int) -> None:
    model = ChatOpenAI(model="gpt-4.1-mini", base_url=base_url, api_key="none", max_retries=0)

    def asked(number: int) -> tuple[str, Any]:
        question = "Hello?" if number % 2 else f"Hello, {number}?"
        return question, {"metadata": {"number": number}}

    def ask(number: int) -> str:
        question, config = asked(number)
        return str(model.invoke(question, config).response_metadata["id"])

    async def ask_too(number: int) -> str:
        question, config = asked(number)
        return str((await model.ainvoke(question, config)).response_metadata["id"])

    async def all_of(numbers: range) -> list[str]:
        return await asyncio.gather(*map(ask_too, numbers))

    half = range(count // 2)
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(ask, half))
    ids += asyncio.run(all_of(range(count // 2, count)))
    print(json.dumps(dict(enumerate(ids))), flush=True)


main(sys.argv[1], int(sys.argv[2]))

"""An MCP client without a framework, and one inside a framework's tool."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.frameworks.tool_agents import stage

SERVER = ["-m", "tests.frameworks.tool_agents.mcp_server"]


@contextmanager
def server() -> Iterator[dict[str, Any]]:
    """What starts a server; what its tool ran is in :data:`stage.RAN` afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        runs.touch()
        yield {"command": sys.executable, "args": SERVER, "env": {**os.environ, "TOOL_RUNS": str(runs)}}
        stage.RAN.extend(runs.read_text().split())


def with_session(use: Callable[[ClientSession], Awaitable[Any]]) -> str:
    async def run(how: dict[str, Any]) -> str:
        async with stdio_client(StdioServerParameters(**how)) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return str(await use(session))

    with server() as how:
        return stage.LOOP.run_until_complete(run(how))


def called(base_url: str) -> str:
    """A call, and one that fails."""

    async def use(session: ClientSession) -> Any:
        given = [await session.call_tool("weather", {"place": place}) for place in ("Finse", "Nowhere")]
        return [result.model_dump() for result in given]

    return with_session(use)


CASES = {"called": called}

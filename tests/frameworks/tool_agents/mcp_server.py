"""An MCP server over stdin and stdout with one tool, which writes a line into the file that ``TOOL_RUNS`` names."""

from __future__ import annotations

import os
from pathlib import Path

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:  # before version 2
    from mcp.server.fastmcp import FastMCP as Server

server = Server("weather")


@server.tool()
def weather(place: str) -> str:
    """The forecast of a place."""
    with Path(os.environ["TOOL_RUNS"]).open("a") as runs:
        runs.write("weather\n")
    if place == "Nowhere":
        raise ValueError("there is no weather")
    return f"{place}: light rain from 15:00"


if __name__ == "__main__":
    server.run("stdio")

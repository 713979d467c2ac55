"""Transports for httpx and httpx2 that record and answer what goes through them, for programs that pass their own.

Needed where clients are not patched, or where only some of them are to be recorded::

    client = OpenAI(http_client=httpx2.Client(transport=AgentRecTransport()))

Who watches and answers is the same as everywhere in the process. A call that passes both such a transport and a patched
client is recorded once.
"""

from __future__ import annotations

import sys
from typing import Any

from otel_agentrec.intercept.httpx_points import async_send, library_of, send

__all__ = ["AgentRecTransport", "AsyncAgentRecTransport"]


class AgentRecTransport:
    """Args:
    transport: what sends requests: any synchronous transport of httpx or httpx2. Default: the ``HTTPTransport`` of the
        library that the first request comes from, with that library's default settings.
    """

    def __init__(self, transport: Any = None) -> None:
        self._transport = transport

    def handle_request(self, request: Any) -> Any:
        """Answer a request, or send it. Raises what the transport raises, and ``RunStopped`` when it is refused."""
        if self._transport is None:
            self._transport = sys.modules[library_of(request)].HTTPTransport()
        return send(self._transport.handle_request, request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def __enter__(self) -> AgentRecTransport:
        if self._transport is not None:
            self._transport.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._transport is not None:
            self._transport.__exit__(*error)


class AsyncAgentRecTransport:
    """:class:`AgentRecTransport` for asynchronous clients; the default is ``AsyncHTTPTransport``."""

    def __init__(self, transport: Any = None) -> None:
        self._transport = transport

    async def handle_async_request(self, request: Any) -> Any:
        """Answer a request, or send it. Raises what the transport raises, and ``RunStopped`` when it is refused."""
        if self._transport is None:
            self._transport = sys.modules[library_of(request)].AsyncHTTPTransport()
        return await async_send(self._transport.handle_async_request, request)

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def __aenter__(self) -> AsyncAgentRecTransport:
        if self._transport is not None:
            await self._transport.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        if self._transport is not None:
            await self._transport.__aexit__(*error)

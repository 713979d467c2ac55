"""The clients: a provider's API over the SDK client that a program already has, one for threads and one for event loops.

    model = OpenAIChatClient(OpenAI())
    result = model.create(AgentPrompt("gpt-5", "What is up?"))

They hold nothing of their own and are as safe for threads as the SDK client is. What the SDK raises reaches the caller as
it is. An option that an SDK's version does not know goes into its ``extra_body``, so that a prompt means the same with any.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from otel_agentrec.clients.anthropic import AnthropicWire
from otel_agentrec.clients.chat import ChatWire
from otel_agentrec.clients.responses import ResponsesWire
from otel_agentrec.clients.wire import Wire
from otel_agentrec.errors import UsageError
from otel_agentrec.prompts import AgentModelChunk, AgentModelResult, AgentPrompt, ModelStreamListener

__all__ = [
    "AnthropicClient",
    "AsyncAnthropicClient",
    "AsyncOpenAIChatClient",
    "AsyncOpenAIResponsesClient",
    "OpenAIChatClient",
    "OpenAIResponsesClient",
]

Json = Any


class _Client:
    def __init__(self, wire: Wire, create: Callable[[], Callable[..., Any]]) -> None:
        self._wire = wire
        self._create = create  # looked up at every call: an instrumentation may come after the client

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        """The whole answer."""
        return self._wire.result(plain(self._ask(prompt, stream=False)))

    def create_stream(self, prompt: AgentPrompt, listener: ModelStreamListener | None = None) -> AgentModelResult:
        """The answer as a stream: ``listener`` hears each piece; the merged answer is returned, its pieces in ``chunks``."""
        events = self._ask(prompt, stream=True)
        merging, chunks = self._wire.merging(), []
        try:
            for event in events:
                for chunk in merging.add(plain(event)):
                    chunks.append(chunk)
                    if listener is not None:
                        listener.on_chunk(chunk)
        finally:
            close = getattr(events, "close", None)
            if close is not None:
                close()
        return _streamed(self._wire.result(merging.whole()), chunks)

    def _ask(self, prompt: AgentPrompt, *, stream: bool) -> Any:
        answer = _called(self._create(), self._wire.request(prompt, stream=stream))
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise UsageError(
                f"{type(self).__name__} was given an SDK client for event loops", f"use Async{type(self).__name__}"
            )
        return answer


class _AsyncClient:
    def __init__(self, wire: Wire, create: Callable[[], Callable[..., Any]]) -> None:
        self._wire = wire
        self._create = create  # looked up at every call: an instrumentation may come after the client

    async def create(self, prompt: AgentPrompt) -> AgentModelResult:
        """The whole answer."""
        return self._wire.result(plain(await self._ask(prompt, stream=False)))

    async def create_stream(self, prompt: AgentPrompt, listener: ModelStreamListener | None = None) -> AgentModelResult:
        """The answer as a stream: ``listener`` hears each piece; the merged answer is returned, its pieces in ``chunks``."""
        events = await self._ask(prompt, stream=True)
        merging, chunks = self._wire.merging(), []
        try:
            async for event in events:
                for chunk in merging.add(plain(event)):
                    chunks.append(chunk)
                    if listener is not None:
                        heard = listener.on_chunk(chunk)
                        if inspect.isawaitable(heard):
                            await heard
        finally:
            close = getattr(events, "close", None) or getattr(events, "aclose", None)
            if close is not None:
                await close()
        return _streamed(self._wire.result(merging.whole()), chunks)

    async def _ask(self, prompt: AgentPrompt, *, stream: bool) -> Any:
        answer = _called(self._create(), self._wire.request(prompt, stream=stream))
        if not inspect.isawaitable(answer):
            name = type(self).__name__
            raise UsageError(f"{name} was given an SDK client for threads", f"use {name.removeprefix('Async')}")
        return await answer


class OpenAIChatClient(_Client):
    """OpenAI's chat completions, and all servers that speak them.

    Args:
        client: an ``openai.OpenAI`` or anything with its ``chat.completions.create``.
        system_role: role of the messages that hold system prompt and instructions; some models want ``developer``.
        max_tokens_name: how the limit of the answer is called; older servers know ``max_tokens``.
    """

    def __init__(
        self, client: Any, *, system_role: str = "system", max_tokens_name: str = "max_completion_tokens"
    ) -> None:
        super().__init__(ChatWire(system_role, max_tokens_name), lambda: client.chat.completions.create)


class AsyncOpenAIChatClient(_AsyncClient):
    """:class:`OpenAIChatClient` over an ``openai.AsyncOpenAI``."""

    def __init__(
        self, client: Any, *, system_role: str = "system", max_tokens_name: str = "max_completion_tokens"
    ) -> None:
        super().__init__(ChatWire(system_role, max_tokens_name), lambda: client.chat.completions.create)


class OpenAIResponsesClient(_Client):
    """OpenAI's Responses over an ``openai.OpenAI``."""

    def __init__(self, client: Any) -> None:
        super().__init__(ResponsesWire(), lambda: client.responses.create)


class AsyncOpenAIResponsesClient(_AsyncClient):
    """:class:`OpenAIResponsesClient` over an ``openai.AsyncOpenAI``."""

    def __init__(self, client: Any) -> None:
        super().__init__(ResponsesWire(), lambda: client.responses.create)


class AnthropicClient(_Client):
    """Anthropic's messages over an ``anthropic.Anthropic`` (or ``AnthropicBedrock``, ``AnthropicVertex``).

    Args:
        max_tokens: the limit of an answer where the prompt gives none: the API wants one.
    """

    def __init__(self, client: Any, *, max_tokens: int = 4096) -> None:
        super().__init__(AnthropicWire(max_tokens), lambda: client.messages.create)


class AsyncAnthropicClient(_AsyncClient):
    """:class:`AnthropicClient` over an ``anthropic.AsyncAnthropic``."""

    def __init__(self, client: Any, *, max_tokens: int = 4096) -> None:
        super().__init__(AnthropicWire(max_tokens), lambda: client.messages.create)


def plain(answer: Any) -> Json:
    """An object of an SDK as the JSON that came: what the server did not send is not in it."""
    if isinstance(answer, Mapping):
        return answer
    if hasattr(answer, "to_dict"):
        return answer.to_dict(mode="json")
    if hasattr(answer, "model_dump"):
        return answer.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return answer


def _called(create: Callable[..., Any], body: dict[str, Json]) -> Any:
    """Call the SDK: what it has a parameter for by name, so that instrumentations see it; the rest in ``extra_body``."""
    try:
        known = inspect.signature(create).parameters
    except (TypeError, ValueError):
        return create(**body)
    if "extra_body" not in known or any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return create(**body)
    named = {name: value for name, value in body.items() if name in known and not name.startswith("extra_")}
    extra = {name: value for name, value in body.items() if name not in named}
    return create(**named, **({"extra_body": extra} if extra else {}))


def _streamed(result: AgentModelResult, chunks: list[AgentModelChunk]) -> AgentModelResult:
    return dataclasses.replace(result, chunks=chunks)

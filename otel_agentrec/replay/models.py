"""Models that are asked live, chosen by words: ``gpt-5-mini``, ``b=gpt-5-mini``, ``c=anthropic:claude-haiku-4-5``.

The SDK of the provider is imported when it is needed; address and key come from its own environment (``OPENAI_API_KEY``,
``OPENAI_BASE_URL``, ``ANTHROPIC_API_KEY`` …).
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from otel_agentrec.clients.answers import wire_of
from otel_agentrec.clients.ready import AnthropicClient, OpenAIChatClient, OpenAIResponsesClient
from otel_agentrec.clients.responses import ResponsesWire
from otel_agentrec.errors import UsageError
from otel_agentrec.nodes.keys import split_key
from otel_agentrec.prompts import AgentModelResult, AgentPrompt, ModelClient, ModelStreamListener
from otel_agentrec.records import NodeIoRecord

__all__ = ["CLIENTS", "Chosen", "LiveModels", "chosen_models"]

CLIENTS = ("openai", "openai-responses", "anthropic")
"""Names of the clients: OpenAI's chat completions (and whatever speaks them), OpenAI's responses, Anthropic's messages."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One model to ask. ``label`` names it in what is printed; ``client`` None: the client of the recorded call."""

    label: str
    model: str
    client: str | None = None


def chosen_models(words: Iterable[str]) -> list[Chosen]:
    """The models that these words name: ``[LABEL=][CLIENT:]MODEL``.

    Raises:
        UsageError: a word names no model, or two have one label.
    """
    found: list[Chosen] = []
    for word in words:
        label, sign, rest = word.partition("=")
        rest = rest if sign else word
        client, colon, model = rest.partition(":")
        if not colon or client not in CLIENTS:  # names of models may have colons of their own
            client, model = "", rest
        if not model.strip() or (sign and not label.strip()):
            raise UsageError(f"{word!r} names no model", "give MODEL, LABEL=MODEL or LABEL=CLIENT:MODEL")
        found.append(Chosen(label.strip() if sign else rest, model.strip(), client or None))
    labels = [one.label for one in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UsageError(f"two models are called {twice!r}", "give each a label of its own: a=MODEL b=MODEL")
    return found


class LiveModels:
    """Makes clients, one of each kind for all calls.

    Args:
        client: a name of :data:`CLIENTS` for calls whose record does not tell which API they used, or to use another one.
    """

    def __init__(self, client: str | None = None) -> None:
        self._client = client
        self._made: dict[str, ModelClient] = {}
        self._addresses: dict[str, str] = {}

    def of(self, record: NodeIoRecord, chosen: Chosen) -> ModelClient:
        """A client that asks the chosen model whatever the prompt names.

        Raises:
            UsageError: the record's provider is none that there is a client for, or the SDK is not installed or has no key.
        """
        name = self.name(record, chosen)
        if name not in self._made:
            made, sdk = _MAKERS[name]()
            self._made[name] = made
            self._addresses[name] = str(getattr(sdk, "base_url", "") or "")
        return _Asking(self._made[name], chosen.model)

    def name(self, record: NodeIoRecord, chosen: Chosen) -> str:
        """Which of :data:`CLIENTS` asks. Raises as :meth:`of`."""
        name = chosen.client or self._client or _client_of(record)
        if name is None:
            raise UsageError(
                f"there is no client for {record.provider or 'an unknown provider'} ({record.node_id})",
                f"name one that speaks its API: --client {'|'.join(CLIENTS)}",
            )
        return name

    def provider(self, record: NodeIoRecord, chosen: Chosen) -> str:
        """The provider that a client's price list is looked up under: the recorded one while its API is used."""
        if chosen.client is None and self._client is None and record.provider:
            return record.provider
        return self.name(record, chosen).partition("-")[0]

    def addresses(self) -> list[str]:
        """Where the clients that were made send their requests."""
        return list(dict.fromkeys(self._addresses.values()))


class _Asking:
    """A client that asks one model."""

    def __init__(self, client: ModelClient, model: str) -> None:
        self._client, self._model = client, model

    def create(self, prompt: AgentPrompt) -> AgentModelResult:
        return self._client.create(dataclasses.replace(prompt, model=self._model))

    def create_stream(self, prompt: AgentPrompt, listener: ModelStreamListener | None = None) -> AgentModelResult:
        return self._client.create_stream(dataclasses.replace(prompt, model=self._model), listener)


def _client_of(record: NodeIoRecord) -> str | None:
    """The client for the API that a recorded call used: as the wire or its answer tells, else its provider's usual one."""
    for key in (record.keys or {}).values():
        api = split_key(key).scheme.partition("[")[0]
        if api in _BY_API:
            return _BY_API[api]
    if isinstance(wire_of(record.outputs), ResponsesWire):
        return "openai-responses"
    provider = (record.provider or "").lower()
    if "anthropic" in provider:
        return "anthropic"
    return "openai" if "openai" in provider else None


_BY_API = {
    "wire/openai.chat": "openai",
    "wire/openai.responses": "openai-responses",
    "wire/anthropic.messages": "anthropic",
}


def _openai() -> Any:
    return _sdk("openai", "OpenAI", "OPENAI_API_KEY")


def _anthropic() -> Any:
    return _sdk("anthropic", "Anthropic", "ANTHROPIC_API_KEY")


def _sdk(module: str, name: str, key: str) -> Any:
    try:
        make = getattr(importlib.import_module(module), name)
    except ImportError:
        raise UsageError(f"asking this model needs the package {module}", f"pip install {module}") from None
    try:
        return make()
    except Exception as error:  # the SDK has an error of its own for a missing key
        raise UsageError(f"{module} can't be used: {error}", f"set {key}, as for any program that uses it") from error


def _over(sdk: Any, client: Callable[[Any], ModelClient]) -> tuple[ModelClient, Any]:
    return client(sdk), sdk


_MAKERS: dict[str, Callable[[], tuple[ModelClient, Any]]] = {
    "openai": lambda: _over(_openai(), OpenAIChatClient),
    "openai-responses": lambda: _over(_openai(), OpenAIResponsesClient),
    "anthropic": lambda: _over(_anthropic(), AnthropicClient),
}
"""Name -> the client, and the SDK's own below it."""

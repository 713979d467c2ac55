"""How each SDK is asked: whole, as a stream, and both of them asynchronously. One function per SDK, which makes its clients."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

QUESTION = "Will it rain?"
MESSAGES = [{"role": "user", "content": QUESTION}]
OPENAI = {"model": "gpt-5-mini", "messages": MESSAGES}
CLAUDE = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": MESSAGES}


@dataclass(frozen=True)
class Asks:
    """``text`` of a whole answer, ``piece`` of an item of a stream. An asynchronous call may be missing."""

    whole: Callable[[], Any]
    stream: Callable[[], Any]
    text: Callable[[Any], str]
    piece: Callable[[Any], str]
    whole_async: Callable[[], Any] | None = None
    stream_async: Callable[[], Any] | None = None


def _message(reply: Any) -> str:
    return str(reply.choices[0].message.content)


def _delta(chunk: Any) -> str:
    return (chunk.choices[0].delta.content or "") if chunk.choices else ""


def openai_chat(base: str, retries: int) -> Asks:
    import openai

    options: Any = {"base_url": f"{base}/v1", "api_key": "none", "max_retries": retries}
    create = openai.OpenAI(**options).chat.completions.create
    later = openai.AsyncOpenAI(**options).chat.completions.create
    return Asks(
        lambda: create(**OPENAI),
        lambda: create(**OPENAI, stream=True),
        _message,
        _delta,
        lambda: later(**OPENAI),
        lambda: later(**OPENAI, stream=True),
    )


def openai_responses(base: str, retries: int) -> Asks:
    import openai

    options: Any = {"base_url": f"{base}/v1", "api_key": "none", "max_retries": retries}
    create = openai.OpenAI(**options).responses.create
    later = openai.AsyncOpenAI(**options).responses.create
    ask = {"model": "gpt-5-mini", "input": QUESTION}
    return Asks(
        lambda: create(**ask),
        lambda: create(**ask, stream=True),
        lambda reply: reply.output_text,
        lambda event: event.delta if event.type == "response.output_text.delta" else "",
        lambda: later(**ask),
        lambda: later(**ask, stream=True),
    )


def anthropic(base: str, retries: int) -> Asks:
    import anthropic

    options: Any = {"base_url": base, "api_key": "none", "max_retries": retries}
    create = anthropic.Anthropic(**options).messages.create
    later = anthropic.AsyncAnthropic(**options).messages.create
    return Asks(
        lambda: create(**CLAUDE),
        lambda: create(**CLAUDE, stream=True),
        lambda reply: reply.content[0].text,
        lambda event: getattr(event.delta, "text", "") if event.type == "content_block_delta" else "",
        lambda: later(**CLAUDE),
        lambda: later(**CLAUDE, stream=True),
    )


def google_genai(base: str, retries: int) -> Asks:
    from google import genai
    from google.genai import types

    again = types.HttpRetryOptions(attempts=retries + 1, initial_delay=0.01, max_delay=0.02)
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=base, retry_options=again))
    ask = {"model": "gemini-2.5-flash", "contents": QUESTION}
    return Asks(
        lambda: client.models.generate_content(**ask),
        lambda: client.models.generate_content_stream(**ask),
        lambda reply: reply.text,
        lambda reply: reply.text or "",
        lambda: client.aio.models.generate_content(**ask),
        lambda: client.aio.models.generate_content_stream(**ask),
    )


def mistral(base: str, retries: int) -> Asks:
    from mistralai.client import Mistral
    from mistralai.client.utils import BackoffStrategy, RetryConfig

    again = RetryConfig("backoff", BackoffStrategy(10, 20, 1.5, 500), True) if retries else None
    chat = Mistral(api_key="none", server_url=base, retry_config=again).chat
    ask: Any = {"model": "mistral-small-latest", "messages": MESSAGES}
    return Asks(
        lambda: chat.complete(**ask),
        lambda: chat.stream(**ask),
        _message,
        lambda event: _delta(event.data),
        lambda: chat.complete_async(**ask),
        lambda: chat.stream_async(**ask),
    )


def groq(base: str, retries: int) -> Asks:
    import groq

    options: Any = {"base_url": base, "api_key": "none", "max_retries": retries}
    create = groq.Groq(**options).chat.completions.create
    later = groq.AsyncGroq(**options).chat.completions.create
    return Asks(
        lambda: create(**OPENAI),
        lambda: create(**OPENAI, stream=True),
        _message,
        _delta,
        lambda: later(**OPENAI),
        lambda: later(**OPENAI, stream=True),
    )


def huggingface(base: str, retries: int) -> Asks:
    """It tries no second time."""
    from huggingface_hub import AsyncInferenceClient, InferenceClient

    create = InferenceClient(base_url=f"{base}/v1", api_key="none").chat_completion
    later = AsyncInferenceClient(base_url=f"{base}/v1", api_key="none").chat_completion
    return Asks(
        lambda: create(MESSAGES),
        lambda: create(MESSAGES, stream=True),
        _message,
        _delta,
        lambda: later(MESSAGES),
        lambda: later(MESSAGES, stream=True),
    )


def litellm(base: str, retries: int) -> Asks:
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    ask: Any = {"model": "openai/gpt-5-mini", "messages": MESSAGES, "api_base": f"{base}/v1", "api_key": "none"}
    ask["max_retries"] = retries
    return Asks(
        lambda: litellm.completion(**ask),
        lambda: litellm.completion(**ask, stream=True),
        _message,
        _delta,
        lambda: litellm.acompletion(**ask),
        lambda: litellm.acompletion(**ask, stream=True),
    )


def litellm_anthropic(base: str, retries: int) -> Asks:
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    ask: Any = {**CLAUDE, "model": "anthropic/claude-sonnet-4-5", "api_base": base, "api_key": "none"}
    ask["num_retries"] = retries
    return Asks(
        lambda: litellm.completion(**ask),
        lambda: litellm.completion(**ask, stream=True),
        _message,
        _delta,
        lambda: litellm.acompletion(**ask),
        lambda: litellm.acompletion(**ask, stream=True),
    )


def bedrock(base: str, retries: int) -> Asks:
    """``converse`` and ``converse_stream``; the AWS SDK for Python has no asynchronous client."""
    import boto3
    from botocore.config import Config

    os.environ.update(AWS_ACCESS_KEY_ID="none", AWS_SECRET_ACCESS_KEY="none", AWS_EC2_METADATA_DISABLED="true")
    again = Config(retries={"total_max_attempts": retries + 1, "mode": "standard"})
    client = boto3.client("bedrock-runtime", region_name="eu-north-1", endpoint_url=base, config=again)
    ask: Any = {
        "modelId": "anthropic.claude-sonnet",
        "messages": [{"role": "user", "content": [{"text": QUESTION}]}],
    }
    return Asks(
        lambda: client.converse(**ask),
        lambda: client.converse_stream(**ask)["stream"],
        lambda reply: reply["output"]["message"]["content"][0]["text"],
        lambda event: event.get("contentBlockDelta", {}).get("delta", {}).get("text", ""),
    )


def requests(base: str, retries: int) -> Asks:
    import json

    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    session = requests.Session()
    again = Retry(total=retries, status_forcelist=[429], allowed_methods=None, raise_on_status=False)
    session.mount("http://", HTTPAdapter(max_retries=again))
    url = f"{base}/v1/chat/completions"

    def checked(**more: Any) -> Any:
        reply = session.post(url, json={**OPENAI, "stream": bool(more)}, **more)
        reply.raise_for_status()
        return reply

    def piece(line: bytes) -> str:
        if not line.startswith(b"data: {"):
            return ""
        return str(json.loads(line[6:])["choices"][0]["delta"].get("content") or "")

    class Lines:
        def __init__(self) -> None:
            self.reply = checked(stream=True)

        def __iter__(self) -> Any:
            return self.reply.iter_lines(chunk_size=None)

        def close(self) -> None:
            self.reply.close()

    return Asks(checked, Lines, lambda reply: reply.json()["choices"][0]["message"]["content"], piece)

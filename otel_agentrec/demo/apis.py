"""The APIs that the scripted model speaks, each with the paths by which it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from otel_agentrec.demo import anthropic, bedrock, chat, embeddings, gemini, responses
from otel_agentrec.demo.script import Asked, Turn

__all__ = ["Api", "api_of"]

Json = Any
Request = Mapping[str, Json]


@dataclass(frozen=True)
class Api:
    """One way to ask.

    Args:
        name: what ``When.api`` calls it.
        prefix: what ids of answers begin with.
        read: (request, model as the path names it) -> what is asked.
        whole: (turn, asked, id, time, request) -> the body of the answer.
        stream: the same -> the streamed answer, piece by piece; each is one event.
        error: (status, message) -> the body of a failure, and headers that go with it.
        streams: (path, request) -> whether the answer is to be streamed.
        content_type: of a stream.
    """

    name: str
    prefix: str
    read: Callable[[Request, str], Asked]
    whole: Callable[[Turn, Asked, str, int, Request], dict[str, Json]]
    stream: Callable[[Turn, Asked, str, int, Request], Iterator[bytes]]
    error: Callable[[int, str], tuple[dict[str, Json], dict[str, str]]]
    streams: Callable[[str, Request], bool]
    content_type: str = "text/event-stream; charset=utf-8"


def api_of(path: str, agent: str = "") -> tuple[Api, str] | None:
    """(the API of a path without its query, the model that the path names or ""); None when it is no API's.

    ``agent``: the client's ``user-agent``: Mistral's path is OpenAI's.
    """
    for ending, api in _BY_ENDING.items():
        if path.endswith(ending):
            return (MISTRAL if api is CHAT and agent.startswith("mistral-client") else api), ""
    head, _, last = path.rpartition("/")
    if head.endswith("/models") or "/models/" in path:
        model, _, verb = path.rpartition("/models/")[2].partition(":")
        if verb in ("generateContent", "streamGenerateContent"):
            return GEMINI, unquote(model)
    before, _, model = head.rpartition("/model/")
    if model and not before:
        for ending, api in _BY_VERB.items():
            if last == ending:
                return api, unquote(model)
    return None


def openai_error(status: int, message: str) -> tuple[dict[str, Json], dict[str, str]]:
    kind = {429: "rate_limit_exceeded"}.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}, {}


def _wants_stream(path: str, request: Request) -> bool:
    return bool(request.get("stream"))


def _chat_stream(turn: Turn, asked: Asked, answer_id: str, created: int, request: Request) -> Iterator[bytes]:
    options = request.get("stream_options")
    include_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    yield from map(chat.sse, chat.events(turn, asked, answer_id, created, include_usage=include_usage))
    yield chat.SSE_END


def _mistral_stream(turn: Turn, asked: Asked, answer_id: str, created: int, request: Request) -> Iterator[bytes]:
    """Mistral tells the usage unasked, together with the end; its SDK reads no parts of calls."""
    *chunks, last, usage = chat.events(turn, asked, answer_id, created, include_usage=True, whole_calls=True)
    yield from map(chat.sse, [*chunks, {**last, "usage": usage["usage"]}])
    yield chat.SSE_END


CHAT = Api(
    "chat",
    "chatcmpl-",
    lambda request, _: chat.read(request),
    lambda turn, asked, answer_id, created, _: chat.body(turn, asked, answer_id, created),
    _chat_stream,
    openai_error,
    _wants_stream,
)
MISTRAL = replace(CHAT, stream=_mistral_stream)
RESPONSES = Api(
    "responses",
    "resp-",
    lambda request, _: responses.read(request)[0],
    lambda turn, asked, answer_id, created, _: responses.body(turn, asked, answer_id, created),
    lambda turn, asked, answer_id, created, _: map(responses.sse, responses.events(turn, asked, answer_id, created)),
    openai_error,
    _wants_stream,
)
EMBEDDINGS = Api(
    "embeddings",
    "emb-",
    lambda request, _: embeddings.read(request),
    lambda turn, asked, _id, _created, request: embeddings.body(turn, asked, request),
    lambda *_: iter(()),
    openai_error,
    lambda path, request: False,
)
ANTHROPIC = Api(
    "anthropic",
    anthropic.PREFIX,
    anthropic.read,
    lambda turn, asked, answer_id, _, request: anthropic.body(turn, asked, answer_id),
    lambda turn, asked, answer_id, _, request: map(anthropic.sse, anthropic.events(turn, asked, answer_id)),
    lambda status, message: (anthropic.error(status, message), {}),
    _wants_stream,
)
GEMINI = Api(
    "gemini",
    "gem-",
    gemini.read,
    lambda turn, asked, answer_id, _, request: gemini.body(turn, asked, answer_id),
    lambda turn, asked, answer_id, _, request: map(gemini.sse, gemini.events(turn, asked, answer_id)),
    lambda status, message: (gemini.error(status, message), {}),
    lambda path, request: path.endswith(":streamGenerateContent"),
)


def _bedrock_error(status: int, message: str) -> tuple[dict[str, Json], dict[str, str]]:
    return bedrock.error(status, message), {"x-amzn-errortype": bedrock.error_type(status)}


CONVERSE = Api(
    "bedrock",
    "bdr-",
    bedrock.read,
    lambda turn, asked, answer_id, _, request: bedrock.body(turn, asked, answer_id),
    lambda turn, asked, answer_id, _, request: (
        bedrock.frame(kind, payload) for kind, payload in bedrock.events(turn, asked, answer_id)
    ),
    _bedrock_error,
    lambda path, request: path.endswith("/converse-stream"),
    "application/vnd.amazon.eventstream",
)
INVOKE = Api(
    "anthropic",
    anthropic.PREFIX,
    anthropic.read,
    lambda turn, asked, answer_id, _, request: anthropic.body(turn, asked, answer_id),
    lambda turn, asked, answer_id, _, request: map(bedrock.chunk, anthropic.events(turn, asked, answer_id)),
    _bedrock_error,
    lambda path, request: path.endswith("/invoke-with-response-stream"),
    "application/vnd.amazon.eventstream",
)
_BY_ENDING = {
    "/chat/completions": CHAT,
    "/responses": RESPONSES,
    "/embeddings": EMBEDDINGS,
    "/messages": ANTHROPIC,
}
_BY_VERB = {"converse": CONVERSE, "converse-stream": CONVERSE, "invoke": INVOKE, "invoke-with-response-stream": INVOKE}

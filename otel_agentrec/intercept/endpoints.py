"""Which HTTP requests are model calls, and what of their heads is kept.

A model call is told by the end of its path, never by its host: gateways, proxies and local servers speak the providers'
APIs under names of their own.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import parse_qsl

__all__ = [
    "APIS",
    "ASIDE",
    "REQUEST_HEADERS",
    "add_paths",
    "api_of",
    "kept_request_headers",
    "query_names",
    "set_paths",
]

APIS: tuple[tuple[str, str], ...] = (
    ("openai.chat", r"/chat/completions"),
    ("openai.responses", r"/responses(?:/compact)?"),
    ("ollama.chat", r"/api/chat"),
    ("ollama.generate", r"/api/generate"),
    ("ollama.embeddings", r"/api/(?:embed|embeddings)"),
    ("openai.embeddings", r"/embeddings"),
    ("mistral.fim", r"/fim/completions"),
    ("mistral.agents", r"/agents/completions"),
    ("mistral.conversations", r"/conversations(?:/[^/]+)?"),
    ("openai.completions", r"/completions"),
    ("openai.images", r"/images/(?:generations|edits|variations)"),
    ("openai.audio", r"/audio/(?:speech|transcriptions|translations)"),
    ("openai.moderations", r"/moderations"),
    ("anthropic.messages", r"/messages"),
    ("", r"/threads/[^/]+/messages"),
    ("anthropic.count_tokens", r"/messages/count_tokens"),
    ("google.generate", r":(?:generateContent|streamGenerateContent)"),
    ("google.embed", r":(?:embedContent|batchEmbedContents)"),
    ("google.count_tokens", r":countTokens"),
    ("vertex.predict", r":(?:rawPredict|streamRawPredict|predict|serverStreamingPredict)"),
    ("bedrock.converse", r"/model/[^/]+/converse(?:-stream)?"),
    ("bedrock.invoke", r"/model/[^/]+/invoke(?:-with-response-stream)?"),
    ("cohere.chat", r"/v[12]/chat"),
    ("cohere.embed", r"/v[12]/embed"),
    ("cohere.rerank", r"/rerank"),
)
"""Name of the API and how its paths end (a regular expression). Of several that fit, the longest counts; without a name it is no model call."""

ASIDE = ("/api/agent-harnesses", "/v1/traces/ingest")
"""Ends of paths that SDKs ask by themselves and do without when they can't be reached: a list of agents (huggingface_hub),
the traces that the OpenAI Agents SDK uploads. In a replay they find no network, and the run goes on."""

REQUEST_HEADERS = frozenset(
    {
        "accept",
        "amz-sdk-request",
        "anthropic-beta",
        "anthropic-version",
        "content-encoding",
        "content-type",
        "openai-beta",
        "user-agent",
        "x-goog-api-client",
        "x-stainless-lang",
        "x-stainless-package-version",
        "x-stainless-retry-count",
    }
)
"""Request headers that are kept; all others may hold credentials."""

_ENDS = re.compile("(?:" + "|".join(f"(?P<a{at}>{path})" for at, (_, path) in enumerate(APIS)) + ")/*$")
_user: list[tuple[str, re.Pattern[str]]] = []


def set_paths(paths: str | Iterable[str] | None) -> None:
    """Take these globs, and no others, for model calls beside the known ones.

    Args:
        paths: globs of whole paths (``/llm/*/ask``), in a list or with commas between them. ``NAME=GLOB`` names the API
            whose form the bodies have (``openai.chat=/gateway/*``); without a name it is ``custom``.
    """
    _user.clear()
    add_paths(paths)


def add_paths(paths: str | Iterable[str] | None) -> None:
    """As :func:`set_paths`, beside those that were given before."""
    for word in paths.split(",") if isinstance(paths, str) else paths or ():
        name, equals, glob = word.strip().rpartition("=")
        if glob:
            row = (name.strip() if equals else "custom", re.compile(fnmatch.translate(glob.strip())))
            if row not in _user:
                _user.append(row)
    api_of.cache_clear()


@lru_cache(maxsize=1024)
def api_of(method: str, path: str) -> str | None:
    """The name of the API that a request speaks; None when it is no model call.

    Args:
        method: in upper case.
        path: without host and query, percent-encoded as it is sent.
    """
    for name, pattern in _user:
        if pattern.match(path):
            return name
    if method != "POST":
        return None
    found = _ENDS.search(path)
    return None if found is None or found.lastgroup is None else APIS[int(found.lastgroup[1:])][0] or None


def query_names(query: str) -> tuple[str, ...]:
    """The names of a query's parameters, in order; their values may be keys."""
    return tuple(name for name, _ in parse_qsl(query, keep_blank_values=True)) if query else ()


def kept_request_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those of :data:`REQUEST_HEADERS`, names in lower case; of several of a name the last."""
    return {name: value for key, value in headers if (name := key.lower()) in REQUEST_HEADERS}

"""A model call is told by the end of its path."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from otel_agentrec.intercept import endpoints


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/chat/completions", "openai.chat"),
        ("/openai/deployments/gpt-5/chat/completions", "openai.chat"),
        ("/chat/completions/", "openai.chat"),
        ("/v1/responses", "openai.responses"),
        ("/v1/completions", "openai.completions"),
        ("/v1/embeddings", "openai.embeddings"),
        ("/v1/messages", "anthropic.messages"),
        ("/v1/messages/count_tokens", "anthropic.count_tokens"),
        ("/v1beta/models/gemini-3:generateContent", "google.generate"),
        ("/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent", "google.generate"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict", "vertex.predict"),
        ("/model/anthropic.claude-4%3A0/converse", "bedrock.converse"),
        ("/model/arn%3Aaws%3Abedrock/converse-stream", "bedrock.converse"),
        ("/model/m/invoke-with-response-stream", "bedrock.invoke"),
        ("/v1/fim/completions", "mistral.fim"),
        ("/api/chat", "ollama.chat"),
        ("/api/embeddings", "ollama.embeddings"),
        ("/v2/chat", "cohere.chat"),
    ],
)
def test_the_providers_paths_are_known(path: str, api: str) -> None:
    assert endpoints.api_of("POST", path) == api
    assert endpoints.api_of("GET", path) is None


@pytest.mark.parametrize(
    "path",
    [
        "/v1/files",
        "/v1/threads/t1/messages",
        "/v1/traces",
        "/v1/responses/r1",
        "/v1/xresponses",
        "/invoke",
        "/chat",
        "/",
    ],
)
def test_other_paths_are_not(path: str) -> None:
    assert endpoints.api_of("POST", path) is None


@pytest.fixture
def no_paths_left() -> Iterator[None]:
    yield
    endpoints.set_paths(None)


def test_users_name_paths_of_their_own(no_paths_left: None) -> None:
    endpoints.set_paths("/ask/*, openai.chat=/gateway/*/complete,")
    assert endpoints.api_of("GET", "/ask/me") == "custom"
    assert endpoints.api_of("POST", "/gateway/eu/complete") == "openai.chat"
    endpoints.set_paths(["/other"])
    assert endpoints.api_of("GET", "/ask/me") is None


def test_of_a_request_s_head_only_what_is_no_secret_is_kept() -> None:
    asked = [("Authorization", "s"), ("X-Api-Key", "s"), ("Cookie", "s"), ("Anthropic-Version", "1"), ("api-key", "s")]
    assert endpoints.kept_request_headers(asked) == {"anthropic-version": "1"}
    assert endpoints.query_names("key=s&alt=sse&flag") == ("key", "alt", "flag")

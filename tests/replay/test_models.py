"""Models that are asked live, chosen by words, and the client that fits a recorded call."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.errors import UsageError
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.replay.compare import word_diff
from otel_agentrec.replay.models import Chosen, LiveModels, chosen_models


def record(**more: Any) -> NodeIoRecord:
    return NodeIoRecord("r1", NodeType.MODEL, "model@run|turn|1", **more)


@pytest.mark.parametrize(
    ("word", "chosen"),
    [
        ("gpt-5", Chosen("gpt-5", "gpt-5")),
        ("a=gpt-5", Chosen("a", "gpt-5")),
        ("a=anthropic:claude", Chosen("a", "claude", "anthropic")),
        ("openai-responses:gpt-5", Chosen("openai-responses:gpt-5", "gpt-5", "openai-responses")),
        ("llama3:8b", Chosen("llama3:8b", "llama3:8b")),
        ("a=llama3:8b", Chosen("a", "llama3:8b")),
    ],
)
def test_words_name_models(word: str, chosen: Chosen) -> None:
    assert chosen_models([word]) == [chosen]


@pytest.mark.parametrize(
    ("told", "client"),
    [
        ({"keys": {"wire": "wire/openai.chat:k.d"}, "provider": "somebody"}, "openai"),
        ({"keys": {"wire": "wire/openai.responses[$.user]:k.d"}, "provider": "openai"}, "openai-responses"),
        ({"provider": "openai"}, "openai"),
        ({"provider": "openai", "outputs": {"object": "response", "output": []}}, "openai-responses"),
        ({"provider": "azure.ai.openai"}, "openai"),
        ({"provider": "anthropic"}, "anthropic"),
    ],
)
def test_the_client_is_that_of_the_recorded_api(told: dict[str, Any], client: str) -> None:
    assert LiveModels().name(record(**told), Chosen("a", "m")) == client
    assert LiveModels("openai").name(record(**told), Chosen("a", "m")) == "openai"
    assert LiveModels("openai").name(record(**told), Chosen("a", "m", "anthropic")) == "anthropic"


def test_without_a_client_for_the_provider_one_must_be_named() -> None:
    with pytest.raises(UsageError, match="no client for bedrock") as raised:
        LiveModels().name(record(provider="bedrock"), Chosen("a", "m"))
    assert "--client openai|openai-responses|anthropic" in raised.value.hint


@pytest.mark.parametrize(("a", "b"), [("one two  three", "one 2\nthree"), (None, "new"), ("old", ""), ("é, ü", "é; ü")])
def test_a_word_diff_holds_both_texts(a: str | None, b: str) -> None:
    parts = list(word_diff(a, b))
    assert "".join(text for sign, text in parts if sign != "+") == (a or "")
    assert "".join(text for sign, text in parts if sign != "-") == b

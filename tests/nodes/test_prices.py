"""What calls cost: list prices of the model that answered, and nothing where nothing is known."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import pytest

from otel_agentrec.errors import ExtraMissing
from otel_agentrec.nodes.prices import Prices
from otel_agentrec.records import NodeIoRecord, NodeType

AT = 1_767_225_600_000


def call(**facts: Any) -> NodeIoRecord:
    told = {"input_tokens": 1_000_000, "output_tokens": 1_000_000, "started_at_epoch_ms": AT, **facts}
    return NodeIoRecord("r", NodeType.MODEL, "n", **told)


@pytest.fixture(scope="module")
def prices() -> Prices:
    pytest.importorskip("genai_prices")
    return Prices()


def test_list_prices(prices: Prices) -> None:
    assert prices.of(call(model_id="gpt-4o-mini", provider="openai")) == Decimal("0.75")
    assert prices.of(call(model_id="gpt-4o-mini")) == Decimal("0.75"), "without a provider the model's own"


def test_what_came_from_a_cache_is_cheaper(prices: Prices) -> None:
    cached = call(model_id="gpt-4o-mini", provider="openai", cache_read_tokens=1_000_000)
    assert prices.of(cached) == Decimal("0.675")


def test_the_model_that_answered_counts(prices: Prices) -> None:
    assert prices.of(call(model_id="my-alias", response_model="gpt-4o-mini", provider="openai")) == Decimal("0.75")
    assert prices.of(call(model_id="gpt-4o-mini", response_model="?", provider="openai")) == Decimal("0.75")


@pytest.mark.parametrize(
    "facts",
    [
        {"model_id": "home-made", "provider": "openai"},
        {"model_id": "gpt-4o-mini", "provider": "my-own-server"},
        {"model_id": "gpt-4o-mini", "provider": "openai", "input_tokens": None},
        {"model_id": "gpt-4o-mini", "provider": "openai", "output_tokens": None},
        {"model_id": "gpt-4o-mini", "provider": "openai", "input_tokens": 1, "cache_read_tokens": 9},
        {"model_id": "gpt-4o-mini", "provider": "openai", "input_tokens": -1},
        {"model_id": "gpt-4o-mini", "provider": "openai", "started_at_epoch_ms": 10**18},
        {},
    ],
    ids=["model", "provider", "no input", "no output", "more cached than sent", "negative", "no such time", "no model"],
)
def test_nothing_is_guessed(prices: Prices, facts: dict[str, Any]) -> None:
    assert prices.of(call(**facts)) is None
    assert prices.of(call(**facts)) is None, "also when it is asked again"


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(ExtraMissing) as missing:
        Prices()
    assert missing.value.hint == "pip install 'otel-agentrec[prices]'"

"""Token counts in all their spellings."""

from __future__ import annotations

import math
from typing import Any

import pytest

from otel_agentrec.capture.dialects.tokens import SPELLINGS, USAGE_KEYS, count, first, take
from otel_agentrec.journal.facts import Facts


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (12, 12),
        (0, 0),
        (12.0, 12),
        ("12", 12),
        (" 12 ", 12),
        ("12.0", 12),
        (None, None),
        (-1, None),
        (-1.0, None),
        (True, None),
        (1.5, None),
        ("1.5", None),
        ("twelve", None),
        ("", None),
        ("9" * 30, None),
        (math.nan, None),
        (math.inf, None),
        ([12], None),
        ({}, None),
    ],
)
def test_what_counts_as_a_count(told: Any, expected: int | None) -> None:
    assert count(told) == expected
    assert type(count(told)) is type(expected)


@pytest.mark.parametrize(("fact", "key"), [(fact, key) for fact, keys in SPELLINGS.items() for key in keys])
def test_every_spelling_is_read_and_claimed(fact: str, key: str) -> None:
    facts, rest = Facts(), {key: "7", "other": 1}
    take(rest, facts)
    assert getattr(facts, fact) == 7
    assert rest == {"other": 1}


def test_no_spelling_means_two_things() -> None:
    keys = [key for keys in SPELLINGS.values() for key in keys]
    assert len(keys) == len(set(keys))


def test_two_spellings_of_one_fact_count_once_and_the_current_one_wins() -> None:
    facts = Facts()
    rest: dict[str, Any] = {"gen_ai.usage.prompt_tokens": 9, "gen_ai.usage.input_tokens": 5}
    take(rest, facts)
    assert (facts.input_tokens, facts.other_tokens, rest) == (5, None, {})


def test_a_value_that_is_no_count_gives_way_and_is_kept() -> None:
    facts = Facts()
    rest: dict[str, Any] = {"gen_ai.usage.input_tokens": -1, "gen_ai.usage.prompt_tokens": 5}
    take(rest, facts)
    assert facts.input_tokens == 5
    assert rest == {"gen_ai.usage.input_tokens": -1}


def test_counts_without_a_fact_keep_their_names() -> None:
    facts, rest = Facts(), {"gen_ai.usage.audio.input_tokens": 3, "gen_ai.usage.total_tokens": 0}
    take(rest, facts)
    assert facts.other_tokens == {"audio.input_tokens": 3, "total_tokens": 0}
    assert rest == {}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 3}, (12, 3)),
        ({"promptTokens": 12, "completionTokens": 3}, (12, 3)),
        ({"input": 12, "output": 3}, (12, 3)),
        ({"input_tokens": 12, "output_tokens": 3}, (12, 3)),
        ({"prompt_tokens": 0, "input_tokens": 5}, (0, None)),
        ({"prompt_tokens": None, "input_tokens": 5}, (5, None)),
    ],
)
def test_usage_blocks_of_providers_in_the_order_of_the_seed(
    block: dict[str, Any], expected: tuple[int | None, int | None]
) -> None:
    assert tuple(first(block, USAGE_KEYS[fact]) for fact in ("input_tokens", "output_tokens")) == expected

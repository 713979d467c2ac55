"""Flattened keys become lists and objects again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.capture.dialects.flattened import take


def test_lists_in_lists_and_what_stays() -> None:
    rest = {
        "p.1.message.role": "user",
        "p.0.message.role": "system",
        "p.1.message.calls.10.id": "c10",
        "p.1.message.calls.2.id": "c2",
        "p.model": "m",
        "pp.0.x": 1,
    }
    assert take(rest, "p") == [
        {"message": {"role": "system"}},
        {"message": {"role": "user", "calls": [{"id": "c2"}, {"id": "c10"}]}},
    ]
    assert rest == {"p.model": "m", "pp.0.x": 1}


def test_gaps_are_closed() -> None:
    assert take({"p.7.a": 1, "p.9.a": 2}, "p") == [{"a": 1}, {"a": 2}]


def test_values_of_elements_and_keys_that_begin_others() -> None:
    assert take({"p.0": "text", "p.1.a": {"b": {"0": 1}}}, "p") == ["text", {"a": {"b": {"0": 1}}}]
    assert take({"p.0.a": "leaf", "p.0.a.b": 1}, "p") == [{"a": {"": "leaf", "b": 1}}]
    assert take({"p.0.a.b": 1, "p.0.a": "leaf"}, "p") == [{"a": {"": "leaf", "b": 1}}]


def test_nothing_there() -> None:
    rest: dict[str, Any] = {"p.x": 1, "p": [1], "p.²": 1}
    assert take(rest, "p") is None
    assert len(rest) == 3


@given(
    st.dictionaries(
        st.lists(st.sampled_from(["0", "1", "a", "9" * 400]), min_size=1, max_size=40).map(".".join), st.integers()
    )
)
def test_no_key_makes_it_fail_or_lose_a_value(keys: dict[str, int]) -> None:
    rest: dict[str, Any] = {f"p.{key}": value for key, value in keys.items()}
    taken = take(rest, "p")

    def leaves(value: Any) -> list[int]:
        if isinstance(value, list):
            return [x for v in value for x in leaves(v)]
        if isinstance(value, dict):
            return [x for v in value.values() for x in leaves(v)]
        return [value]

    left = [] if taken is None else leaves(taken)
    assert sorted([*left, *rest.values()]) == sorted(keys.values())

"""JSON text from outside is read without loss."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.journal.jsontext import MAX_DEPTH, parse, parse_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_what_python_writes_is_read_back(value: Any, indent: int | None, ascii_only: bool) -> None:
    assert parse(json.dumps(value, indent=indent, ensure_ascii=ascii_only)) == value


def test_integers_are_exact() -> None:
    assert parse("[9007199254740993, 18446744073709551617]") == [9007199254740993, 18446744073709551617]


def test_numbers_beyond_a_double_stay_text() -> None:
    assert parse('{"rate": 1E400, "tiny": -1e-999, "zero": 0e5}') == {"rate": "1E400", "tiny": "-1e-999", "zero": 0.0}


def test_an_integer_of_thousands_of_digits_stays_text() -> None:
    digits = "1" + "0" * 5000
    assert parse(f'{{"a": [{digits}, 7]}}') == {"a": [digits, 7]}


def test_a_lone_surrogate_a_double_key_and_nan_are_read() -> None:
    assert parse('["\\ud800"]') == ["\ud800"]
    assert parse('{"a": 1, "a": 2}') == {"a": 2}
    assert math.isnan(parse("[NaN]")[0])


def nested(value: Any) -> tuple[int, Any]:
    depth = 0
    while isinstance(value, (list, dict)) and value:
        value, depth = next(iter(value.values() if isinstance(value, dict) else value)), depth + 1
    return depth, value


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a\\"]": ', "}]")])
def test_any_depth_is_read_and_what_lies_too_deep_stays_text(opening: str, closing: str) -> None:
    levels = 10_000
    text = opening * levels + ' "x]" ' + closing * levels
    depth, rest = nested(parse(text))
    assert depth == MAX_DEPTH
    assert isinstance(rest, str)
    assert '"x]"' in rest
    assert text.count(rest) == 1


def test_values_beside_a_deep_one_are_kept() -> None:
    deep = "[" * 5000 + "]" * 5000
    value = parse(f' {{"a": [1, {{"k": {deep}}}, "two"], "b": {{}}, "c": [], "d": null}} ')
    assert (value["a"][0], value["a"][2], value["b"], value["c"], value["d"]) == (1, "two", {}, [], None)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nope", '{"a" 1}', "[1] 2", "{1: 2}"])
@pytest.mark.parametrize("depth", [0, 5000])
def test_what_is_no_json_is_refused(text: str, depth: int) -> None:
    if depth:  # the same fault outside the deep part
        text = "[" + "[" * depth + "]" * depth + "," + text + "]"
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_text_that_ends_in_the_deep_part_is_refused() -> None:
    with pytest.raises(ValueError, match="Unterminated"):
        parse("[" * 5000)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=5), st.sampled_from([None, 1]))
def test_the_members_of_an_object_and_where_their_text_stands(value: dict[str, object], indent: int | None) -> None:
    text = f" {json.dumps(value, indent=indent)}\n"
    values, places = parse_members(text)
    assert values == parse(text)
    assert {key: parse(f"[{text[start:end]}]") for key, (start, end) in places.items()} == {
        k: [v] for k, v in values.items()
    }


@pytest.mark.parametrize(
    "text", ["", "[1]", "7", "{", '{"a"', '{"a":1', '{"a":1,}', '{"a" 1}', "{1:2}", '{"a":1} x', '{"a":' + "[" * 9999]
)
def test_what_is_no_object_has_no_members(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_members(text)


def test_the_last_of_two_equal_keys_counts() -> None:
    assert parse_members('{"a":1,"a":[2]}') == ({"a": [2]}, {"a": (11, 14)})

"""The normal form: nothing lost, nothing raised, nothing forged."""

from __future__ import annotations

import enum
import json
import math
import sys
import threading
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from opentelemetry.attributes import BoundedAttributes

from otel_agentrec.journal.canonical import (
    MAX_BYTES,
    MAX_DEPTH,
    canonical,
    canonical_any,
    denormalise,
    normalise,
    restore,
)
from otel_agentrec.journal.jcs import MAX_INT

# Any code unit, also a surrogate without its other half, and the names that the normal form uses itself.
TEXT = (
    st.text(st.characters())
    | st.text("$a😂\ud83d\ude02\ue000", max_size=4)
    | st.sampled_from(["$int", "$f64", "$b64", "$u16", "$map", "$cut", "$", "$$", "$c"])
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(2**70), 2**70) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


def units(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def meaning(value: Any) -> Any:
    """A JSON value in a form that can be compared: numbers by value, strings by code unit, nothing equal across types."""
    if isinstance(value, (bool, type(None))):
        return ("literal", value)
    if isinstance(value, float) and (value != value or str(value) == "-0.0"):
        return ("number", str(value))
    if isinstance(value, (int, float)):
        return ("number", value)
    if isinstance(value, str):
        return ("string", units(value))
    if isinstance(value, list):
        return ("list", [meaning(x) for x in value])
    assume(len({units(key) for key in value}) == len(value))  # two spellings of one JSON key
    return ("object", {units(key): meaning(x) for key, x in value.items()})


def on_disk(value: object, **options: Any) -> Any:
    """The normal form as a reader parses it."""
    return orjson.loads(canonical(normalise(value, **options)))


# --- laws -------------------------------------------------------------------------------------------------------------


@given(JSON)
@example({"$int": "1"})
@example({"\ud800": 1, "$a": {"$$b": 2}})
@example([2**63 * 1.0, 1e22, 1e16, 2**63, -0.0, 0, 0.0])
@example({"$map": [[1, 2]]})
def test_what_was_written_is_read_back(value: Any) -> None:
    """So no two JSON values share a normal form."""
    assert meaning(denormalise(on_disk(value))) == meaning(value)


@given(JSON)
def test_one_walk_or_two_write_the_same(value: Any) -> None:
    assert canonical_any(value) == canonical(normalise(value))


@given(JSON)
def test_a_value_read_back_has_the_same_normal_form(value: Any) -> None:
    once = canonical_any(value)
    assert canonical_any(denormalise(orjson.loads(once))) == once


def test_minus_zero_is_json_and_comes_back_as_it_was() -> None:
    assert json.dumps(restore(on_disk({"x": [-0.0, 0.5]}))) == '{"x": [-0.0, 0.5]}'


@given(JSON)
def test_what_is_restored_is_json_and_keeps_what_json_can_say(value: Any) -> None:
    restored = restore(on_disk(value))
    assert json.loads(json.dumps(restored, allow_nan=False)) == restored
    if not odd(value):
        assert meaning(restored) == meaning(value)


def odd(value: Any) -> bool:
    """Whether it holds something that JSON can't say."""
    if isinstance(value, list):
        return any(map(odd, value))
    if isinstance(value, dict):
        return any(map(odd, value)) or any(map(odd, value.values()))
    if isinstance(value, str):
        return any("\ud800" <= c <= "\udfff" for c in value)
    return isinstance(value, float) and (not math.isfinite(value) or str(value) == "-0.0")


@given(st.dictionaries(st.integers() | st.text() | st.none() | st.binary(), st.integers(0, 9)), st.randoms())
def test_a_mapping_has_one_normal_form_whatever_its_order(value: dict[Any, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert canonical_any(dict(items)) == canonical_any(value)
    assert denormalise(on_disk(value)) == value


@given(st.sets(st.integers() | st.text() | st.tuples(st.integers())))
def test_a_set_has_one_normal_form(value: set[Any]) -> None:
    assert canonical_any(value) == canonical_any(frozenset(sorted(value, key=repr)))
    assert len(normalise(value)) == len(value)


# --- forms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (MAX_INT, MAX_INT),
        (MAX_INT + 1, {"$int": "9007199254740992"}),
        (-MAX_INT - 1, {"$int": "-9007199254740992"}),
        (1 << 2048, {"$int": "0x1" + "0" * 512}),
        (-(1 << 2048), {"$int": "-0x1" + "0" * 512}),
        (1.0, 1),
        (1e300, 1e300),
        (math.nan, {"$f64": "nan"}),
        (math.inf, {"$f64": "inf"}),
        (-math.inf, {"$f64": "-inf"}),
        (-0.0, {"$f64": "-0"}),
        (b"\x00\xff", {"$b64": "AP8="}),
        (bytearray(b"a"), {"$b64": "YQ=="}),
        (memoryview(b"abcd")[::2], {"$b64": "YWM="}),
        ("a\ud800", {"$u16": "AGHYAA=="}),
        ("\ud83d\ude02", "😂"),
        ({"\ud83d\ude02": 1}, {"😂": 1}),
        ({"\ud83d\ude02": 1, "😂": 2}, {"$map": [["😂", 1], ["😂", 2]]}),
        ({"$int": "1", "$$": 2}, {"$$int": "1", "$$$": 2}),
        ({"\udfff": 1}, {"$map": [[{"$u16": "3/8="}, 1]]}),
        ({2: "b", "2": "c", None: "a"}, {"$map": [["2", "c"], [2, "b"], [None, "a"]]}),
        ({(1, (2, b"x")): {"$": 1}}, {"$map": [[[1, [2, {"$b64": "eA=="}]], {"$$": 1}]]}),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({3, 1, 2}, [1, 2, 3]),
        (MappingProxyType({"a": (1.0,)}), {"a": [1]}),
        (BoundedAttributes(attributes={"a": ("x", "y"), "b": 2.0}), {"a": ["x", "y"], "b": 2}),
    ],
    ids=lambda x: repr(x)[:40].split(" at 0x")[0],  # no address: parallel runs must see the same names
)
def test_forms(value: Any, form: Any) -> None:
    assert normalise(value) == form
    assert type(normalise(value)) is type(form)


def test_no_unicode_normalisation() -> None:
    assert canonical_any("é") != canonical_any("e\u0301")


def test_minus_zero_can_be_written_as_zero() -> None:
    assert canonical_any([-0.0], signed_zero=False) == b"[0]"


def test_an_integer_longer_than_python_prints_is_exact() -> None:
    n = 10**5000 + 1
    assert denormalise(on_disk(n)) == n


def test_the_normal_form_shares_nothing_with_the_value() -> None:
    value = {"a": [{"b": 1}], "f": 1.0}
    form = normalise(value)
    value["a"][0]["b"] = 2
    assert form == {"a": [{"b": 1}], "f": 1}


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"$cut": {"bytes": 3}},
        {"$c": "00", "bytes": 2},
        {"$off": {"bytes": 1}},
        {"$int": 5},
        {"$int": "five"},
        {"$int": "1" * 5000},
        {"$f64": "NaN"},
        {"$f64": ["nan"]},
        {"$b64": "A"},
        {"$u16": "QQ=="},
        {"$map": [1]},
        {"$map": None},
        {"$new": {"$$a": 1}},
        {"$int": "1", "b": 2},
    ],
    ids=repr,
)
def test_what_no_normaliser_wrote_stays_as_it_is(value: Any) -> None:
    assert denormalise([value]) == [value]
    assert restore([value]) == [value]


def test_keys_that_cannot_be_keys_give_pairs() -> None:
    assert denormalise({"$map": [[{"a": 1}, 2]]}) == [[{"a": 1}, 2]]
    assert denormalise({"$map": [[1, 2], [1, 3]]}) == [[1, 2], [1, 3]]


def test_a_file_nested_without_end_is_read() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert levels(denormalise(deep)) == (100_000, [])


# --- limits -----------------------------------------------------------------------------------------------------------


def nest(depth: int, inner: Any = None) -> Any:
    """``depth`` lists inside one another."""
    for _ in range(depth):
        inner = [] if inner is None else [inner]
    return inner


def test_what_is_deeper_than_the_limit_is_cut() -> None:
    assert normalise(nest(MAX_DEPTH)) == nest(MAX_DEPTH)
    form = normalise({"a": nest(3, 7), "b": 1.0}, max_depth=3)
    assert form == {"a": [[{"$cut": {"bytes": 3}}]], "b": 1}


def levels(form: Any) -> tuple[int, Any]:
    """How many lists lie inside one another, and what lies in the innermost."""
    depth = 0
    while isinstance(form, list) and form:
        (form,), depth = form, depth + 1
    return depth, form


@pytest.mark.parametrize("inner", [0.5, 1.0], ids=["copied at speed", "walked"])
def test_the_limit_is_the_same_on_both_ways(inner: float) -> None:
    assert levels(normalise(nest(MAX_DEPTH, [inner])[0])) == (MAX_DEPTH, inner)
    depth, cut = levels(normalise(nest(MAX_DEPTH, [inner])))
    assert (depth, list(cut)) == (MAX_DEPTH, ["$cut"])


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 10_000, 100_000])
def test_any_depth_is_survived(depth: int) -> None:
    at, form = levels(normalise(nest(depth)))
    assert at == MAX_DEPTH
    if depth <= 10_000:
        assert form == {"$cut": {"bytes": 2 * (depth - MAX_DEPTH)}}


def test_a_cell_keeps_the_digest_of_what_is_cut() -> None:
    inner = {"b": [1.0], "a": "é"}
    data = '{"a":"é","b":[1]}'.encode()
    cut = {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    assert normalise([inner], max_depth=1, cell=True) == [{"$cut": cut}]
    assert normalise([inner], max_depth=1) == [{"$cut": {"bytes": len(data)}}]


def test_the_smallest_part_that_is_too_large_is_cut() -> None:
    big, small = "x" * 200, "y" * 90
    value = {"keep": 1, "big": big, "list": [small] * 2, "few": [small]}
    assert normalise(value, max_bytes=169) == {"$cut": {"bytes": 170}}
    assert normalise(value, max_bytes=170) == {
        "keep": 1,
        "big": {"$cut": {"bytes": 202}},
        "list": {"$cut": {"bytes": 187}},
        "few": [small],
    }


ANY_KEYS = st.recursive(
    JSON | st.binary(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=12)
        | st.dictionaries(
            st.none() | st.floats() | st.binary(max_size=9) | TEXT | st.tuples(st.floats()), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(ANY_KEYS, st.integers(40, 400))
@example({"\ud800": -10_000_000_000}, 40)
@example({-1.2345678901234567e-300: -1.2345678901234567e-300}, 40)
@example([{(): None}] * 3, 100)
@example("😂😂😂😂😂\ud83d", 40)
def test_the_limit_in_bytes_holds(value: Any, limit: int) -> None:
    assert len(canonical(normalise(value, max_bytes=limit, cell=False))) <= limit


@given(ANY_KEYS, st.integers(110, 400), st.integers(1, 4))
@example(["x" * 500] * 5, 200, 4)
@example([[]] * 5, 200, 1)
def test_the_limit_in_bytes_holds_for_cuts_with_their_digests(value: Any, limit: int, depth: int) -> None:
    assert len(canonical(normalise(value, max_bytes=limit, max_depth=depth, cell=True))) <= limit


def test_a_value_over_32_mib_is_cut() -> None:
    large = "x" * (MAX_BYTES + 1)
    assert orjson.loads(canonical_any({"a": [large, large], "b": 1})) == {
        "a": [{"$cut": {"bytes": MAX_BYTES + 3}}] * 2,
        "b": 1,
    }


def test_control_characters_count_as_what_they_take() -> None:
    assert normalise(["\x00" * 20], max_bytes=121) == [{"$cut": {"bytes": 122}}]
    assert normalise(["\x00" * 20], max_bytes=124) == ["\x00" * 20]


def test_keys_count_too() -> None:
    assert normalise([{"k" * 1000: 1}, 2.0], max_bytes=500) == [{"$cut": {"bytes": 1006}}, 2]
    assert normalise([{"k" * 1000: 1, 2: 3}], max_bytes=500) == [{"$map": [[2, 3], [{"$cut": {"bytes": 1002}}, 1]]}]


def test_a_cycle_is_cut() -> None:
    loop: dict[str, Any] = {"a": 1.0}
    loop["self"] = [loop]
    assert normalise(loop) == {"a": 1, "self": [{"$cut": {"bytes": None}}]}


def test_the_same_list_twice_is_no_cycle() -> None:
    once = [1.0]
    assert normalise({"a": once, "b": [once, once]}) == {"a": [1], "b": [[1], [1]]}


def test_a_list_that_unfolds_without_end_is_cut() -> None:
    bomb: Any = ["x"]
    for _ in range(64):
        bomb = [bomb, bomb]
    assert normalise(bomb, max_bytes=100_000) == {"$cut": {"bytes": None}}


def test_one_text_in_very_many_places_is_cut() -> None:
    text = "x" * 1_000_000
    assert normalise([text] * 100_000) == {"$cut": {"bytes": None}}
    assert normalise([text] * 9) == [text] * 9
    assert normalise([text] * 40) == {"$cut": {"bytes": 40 * 1_000_003 + 1}}


def test_a_range_without_end_costs_only_itself() -> None:
    assert normalise({"a": range(10**15), "b": 1}) == {"a": {"$cut": {"bytes": None}}, "b": 1}


def test_no_stack_left() -> None:
    """Called by code that has used up the stack itself: no RecursionError, and the same bytes where possible."""
    results: list[bytes] = []

    def sink() -> None:
        try:
            sink()
        except RecursionError:
            results.append(canonical_any({"a": [1.0, {"$b": (2,)}]}))

    sink()
    assert results
    assert set(results) <= {b'{"a":[1,{"$$b":[2]}]}', b'{"$cut":{"bytes":null}}'}


def test_a_dict_that_another_thread_changes_is_survived() -> None:
    shared: dict[str, Any] = {str(i): float(i) for i in range(200)}
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            shared["x"] = 1
            del shared["x"]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            assert set(normalise(shared)) - {"x"} == {str(i) for i in range(200)}
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


# --- plain forms reach every depth ------------------------------------------------------------------------------------


class Colour(str, enum.Enum):
    RED = "red"


def test_objects_inside_containers_get_their_plain_form() -> None:
    value = {Colour.RED: Colour.RED, "list": [Colour.RED, {Colour.RED}]}
    assert normalise(value) == {"red": "red", "list": ["red", ["red"]]}

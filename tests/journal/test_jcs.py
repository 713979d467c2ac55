"""RFC 8785: the published vectors, and the proof that the fast path writes the same bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from otel_agentrec.journal.canonical import canonical, canonical_any, canonical_each, fast_path_taken
from otel_agentrec.journal.jcs import MAX_INT, spell

JCS = Path(__file__).parent.parent / "data" / "jcs"

# Characters on both sides of every border that a canonicaliser can get wrong.
TEXT = st.text('\x00\x08\x1f "$/\\az~\x7f\x80é\u07ff\u2028\u2029\ud7ff\ue000\uffff\U00010000😂\U0010ffff') | st.text()
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = (
    st.integers(-MAX_INT, MAX_INT)
    | FLOATS
    | st.builds(lambda digits, e: float(f"{digits}e{e}"), st.integers(-99999, 99999), st.integers(-12, 25))
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)


# --- published vectors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_published_files(name: str) -> None:
    data = canonical(json.loads((JCS / "input" / f"{name}.json").read_text(encoding="utf-8")))
    assert data == (JCS / "output" / f"{name}.json").read_bytes()
    assert data == bytes.fromhex((JCS / "outhex" / f"{name}.txt").read_text(encoding="ascii"))


def es6_floats(static: list[str]) -> Iterator[float]:
    """The endless series of doubles of the published test: edge cases, a run of neighbours, then hash output."""
    for bits in static:
        yield struct.unpack(">d", bytes.fromhex(bits))[0]
    for i in range(2000):
        yield struct.unpack(">d", (0x0010000000000000 + i).to_bytes(8, "big"))[0]
    block = bytes(32)
    while True:
        block = sha256(block).digest()
        yield from (f for f in struct.unpack("<4d", block) if f == f and abs(f) != float("inf") and f != 0)


def test_published_number_checksums() -> None:
    vectors = json.loads((JCS / "es6_numbers.json").read_text(encoding="utf-8"))
    wanted = {int(n): digest for n, digest in vectors["sha256_of_first_n_lines"].items() if int(n) <= 100_000}
    running, fast, size = sha256(), 0, 0
    for n, f in enumerate(es6_floats(vectors["static_u64_hex"]), 1):
        (bits,) = struct.unpack(">Q", struct.pack(">d", f))
        fast += fast_path_taken(f) if n % 10 == 0 else 0
        line = b"%x,%b\n" % (bits, canonical(f))
        running.update(line)
        size += len(line)
        if n in wanted:
            assert size == vectors["bytes_of_first_n_lines"][str(n)]
            assert running.hexdigest() == wanted[n], f"the first {n} numbers"
        if n == max(wanted):
            break
    assert max(wanted) == 100_000
    assert fast > 100, "the fast path was tested too"


def test_published_sample_lines() -> None:
    for line in (JCS / "es6_sample_lines.txt").read_text(encoding="ascii").split():
        bits, _, text = line.partition(",")
        assert canonical(struct.unpack(">d", int(bits, 16).to_bytes(8, "big"))[0]) == text.encode()


# --- the fast path ----------------------------------------------------------------------------------------------------


@given(JSON)
@example({"\ue000": 1, "😂": 2})
@example([1e16, 1e-5, 1e-6, 1e-7, 0.1, -0.0, 1.0, 2.0**53, 1e21, 5e-324, 9007199254740991.0, 4503599627370495.5])
@example('\x7f\u2028\x00\x1f\b\f\n\r\t"\\/')
def test_both_paths_write_what_the_reference_writes(value: Any) -> None:
    expected = rfc8785.dumps(value)
    assert canonical(value) == expected
    assert b"".join(spell(value)) == expected


@given(st.floats(1e-5, 2.0**53) | st.floats(-(2.0**53), -1e-5))
def test_floats_of_the_fast_path(f: float) -> None:
    assert canonical(f) == rfc8785.dumps(f)
    assert fast_path_taken(f) is not f.is_integer()


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        -0.0,
        1e-6,
        1e-7,
        1e16,
        float(2**53),
        1e21,
        {"\ue000": 1, "😂": 2},
        {"ｑ": 1},
        [{"a": [1.0]}],
    ],
    ids=repr,
)
def test_where_orjson_may_differ_it_is_not_used(value: Any) -> None:
    assert not fast_path_taken(value)
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value", [0.5, 0.7, 1e-5, MAX_INT, -MAX_INT, {"é": 1, "日本": 2}, "😂\ue000", {"a": ("b", None)}], ids=repr
)
def test_ordinary_values_are_fast(value: Any) -> None:
    assert fast_path_taken(value)
    assert canonical(value) == rfc8785.dumps(value)


def test_a_subclass_is_never_asked_for_its_own_idea() -> None:
    class Loud(str):
        def __str__(self) -> str:
            return "other"

    assert not fast_path_taken(Loud("a"))
    assert canonical(Loud("a")) == canonical_any(Loud("a")) == b'"a"'
    assert canonical_any({Loud("a"): Loud("b")}) == b'{"a":"b"}'


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53, -(2**53), "\ud800", {"\ud800": 1}, {1: 2}, {1, 2}, object(), b"x"],
    ids=lambda x: "object" if type(x) is object else repr(x),  # no address: parallel runs must see the same names
)
def test_what_is_no_normal_form_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        canonical([value])


def test_a_cycle_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        canonical(loop)


def test_any_depth_can_be_written() -> None:
    value: Any = []
    for _ in range(10_000):
        value = [value]
    assert canonical(value) == b"[" * 10_001 + b"]" * 10_001


@given(st.lists(JSON | st.just({"$x": 1}) | st.just("\ud800") | st.just(float("nan")), max_size=4))
def test_many_at_once_are_the_same_as_each(values: list[Any]) -> None:
    assert canonical_each(values) == [canonical_any(v, cell=True) for v in values]

"""Words of models and tools on a terminal, and JSON on stdout."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.cli.terminal import UNSAFE, plain, print_json


@given(st.text())
def test_plain_text_can_not_steer_a_terminal(text: str) -> None:
    assert not UNSAFE.search(plain(text))
    plain(text).encode("utf-8")


@given(st.text(), st.integers(1, 30))
def test_plain_text_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(plain(text, limit)) <= limit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\tand  space", "two lines and space"),
        ("\x1b]0;title\x07red\x1b[31m", "\\x1b]0;title\\x07red\\x1b[31m"),
        ("abc\u202edcba", "abc\\u202edcba"),
        ("naïve 🌧", "naïve 🌧"),
        ("\ud800", "\\ud800"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_long_text_is_cut_with_a_mark() -> None:
    assert plain("x" * 1000, 10) == "x" * 9 + "…"
    assert plain(" " * 1000 + "x", 10) == "…"


@pytest.mark.parametrize("value", [{"a": "ü🌧"}, 2**70, [1.5, None, True], "\u2028", {"n": -(2**63)}])
def test_json_is_exact(value: object, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    print_json(value)
    out = capsysbinary.readouterr().out
    assert out.count(b"\n") == 1
    assert json.loads(out) == value


@pytest.mark.parametrize("value", [math.nan, {"x": math.inf}, {"b": b"bytes"}, "\ud800", {1: 2}])
def test_what_json_can_not_say_is_still_json(value: object, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    print_json(value)
    json.loads(capsysbinary.readouterr().out, parse_constant=lambda name: pytest.fail(name))

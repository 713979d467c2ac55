"""Repr text where JSON should be: read without running anything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec.capture.dialects.pythonrepr import parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': [1, -2.5, None], \"it's\": (True,)}", {"a": [1, -2.5, None], "it's": [True]}),
        ("ChatMessage(role=<MessageRole.USER: 'user'>, content='hi')", {"role": "user", "content": "hi"}),
        ("datetime.datetime(2024, 1, 2)", {"args": [2024, 1, 2]}),
        ("f(1, x=Tool(name='t'))", {"args": [1], "x": {"name": "t"}}),
        (
            "[<function f at 0x7f>, <a.b.<locals>.T object at 0x1>]",
            ["<function f at 0x7f>", "<a.b.<locals>.T object at 0x1>"],
        ),
        ("{1, 2}", [1, 2]),
        ("{}", {}),
        ("()", []),
        ("{1: 'a', (2,): 'b'}", {"1": "a", "[2]": "b"}),
        ("'\\x41\\u6771\\U0001f600\\n\\q'", "A東😀\n\\q"),
        ("r'\\n'", "\\n"),
        ("b'\\xff'", b"\xff"),
        ("1e999", "1e999"),
        ("nan", "nan"),
        ("Role.USER", "Role.USER"),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text", ["", "{'a': 'cut", "f(x=1", "[1 2]", "1 + 1", "<never closed", "[" * 500, "{'a': }", "f(x=)"]
)
def test_what_is_no_repr_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@given(plain)
def test_the_repr_of_any_plain_value_is_that_value(value: Any) -> None:
    assert parse(repr(value)) == value


@given(st.text(alphabet="{}[]()<>'\"\\,:= abx1.-", max_size=30))
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    try:
        parse(text)
    except ValueError:
        pass

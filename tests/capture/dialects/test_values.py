"""What attribute values mean."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects.values import loaded, text, texts, was_cut


@pytest.mark.parametrize(
    ("value", "expected"), [("a", "a"), ("", None), (7, "7"), (True, "True"), (None, None), (["a"], None), (b"a", None)]
)
def test_text(value: Any, expected: str | None) -> None:
    assert text(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [('["stop"]', ["stop"]), ("stop", ["stop"]), (("a", None, 1), ["a", "1"]), (7, []), ("", [])]
)
def test_texts(value: Any, expected: list[str]) -> None:
    assert texts(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(' {"a": 1}', {"a": 1}), ("42", "42"), ('"a"', '"a"'), ("[cut", "[cut"), (None, None)]
)
def test_only_objects_and_arrays_are_loaded(value: Any, expected: Any) -> None:
    assert loaded(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"a": "b', True),
        ('{"a": "b"}', False),
        ("[not json", False),
        ('["a', True),
        (" plain {", False),
        ("{'a': [1", False),
        ("[{'a': 1", False),
        ("{", True),
        (3, False),
    ],
)
def test_cut_json(value: Any, expected: bool) -> None:
    assert was_cut(value) is expected
    assert was_cut(' {"' + "x" * (1 << 16)) is True

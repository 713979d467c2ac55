"""Arguments of recorded Python calls, by name."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agentrec.capture.dialects.pythoncall import by_name

SCHEMA = '{"properties": {"city": {}, "unit": {}}}'
INPUTS = {"city": {"type": "string"}, "unit": {"type": "string"}}


@pytest.mark.parametrize(
    ("call", "schema", "arguments"),
    [
        ({"args": [], "kwargs": {"city": "A"}}, None, {"city": "A"}),
        ({"kwargs": {}}, None, {}),
        ({"args": [], "sanitize_inputs_outputs": True, "kwargs": {"a": 1}}, None, {"a": 1}),
        ({"args": ["A"], "kwargs": {"unit": "C"}}, SCHEMA, {"city": "A", "unit": "C"}),
        ({"args": ["A"], "kwargs": {"city": "B"}}, INPUTS, {"unit": "A", "city": "B"}),
        ({"args": ["A"], "kwargs": {}}, None, {"args": ["A"], "kwargs": {}}),
        ({"city": "A"}, SCHEMA, None),
        ({"args": [1]}, None, None),
        ({"args": [], "kwargs": {}, "other": 1}, None, None),
        ({"kwargs": {"a": 1}}, {"properties": {"kwargs": {}}}, None),
        ({"kwargs": "text"}, None, None),
        ("text", None, None),
    ],
)
def test_by_name(call: Any, schema: Any, arguments: Any) -> None:
    assert by_name(call, schema) == arguments

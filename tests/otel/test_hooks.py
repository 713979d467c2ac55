"""What OpenTelemetry loads by name: it exists, does nothing without a path, and asks for content in time."""

from __future__ import annotations

import os
from importlib import import_module

import pytest

from otel_agentrec import otel
from tests.test_project import PYPROJECT

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def test_every_entry_point_leads_to_something() -> None:
    seen = 0
    for group, points in PYPROJECT["project"]["entry-points"].items():
        for value in points.values():
            module, _, name = value.partition(":")
            thing = import_module(module)
            assert not name or callable(getattr(thing, name)), f"{group}: {value}"
            seen += 1
    assert seen


def test_nothing_happens_without_a_path() -> None:
    before = dict(os.environ)
    otel.pre_instrument()
    otel.post_instrument()
    assert dict(os.environ) == before


def test_content_is_asked_for_before_the_instrumentations_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_PATH", "somewhere")
    otel.pre_instrument()
    assert os.environ[CONTENT] == "SPAN_ONLY"


@pytest.mark.parametrize(("name", "value"), [("CONTENT", "off"), ("ENABLED", "false"), ("CONTENT", "no such mode")])
def test_content_is_not_asked_for_when_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("OTEL_AGENTREC_PATH", "somewhere")
    monkeypatch.setenv(f"OTEL_AGENTREC_{name}", value)
    otel.pre_instrument()
    assert CONTENT not in os.environ

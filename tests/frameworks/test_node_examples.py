"""The example in Node: its spans come to ``otel-agentrec serve`` over OTLP."""

from __future__ import annotations

from pathlib import Path

import pytest

from .playing import TIMEOUT, assert_recorded, run_all, run_example

pytestmark = [pytest.mark.languages, pytest.mark.timeout(TIMEOUT)]


@pytest.mark.skipif(not run_all.has_node(), reason="Node and npm are not installed")
def test_an_agent_of_the_vercel_ai_sdk_is_recorded_by_the_receiver(tmp_path: Path) -> None:
    last = assert_recorded(tmp_path / "rec", run_example("vercel_ai", tmp_path / "rec"))
    assert (last.model_id, last.provider) == ("gpt-5-mini", "openai")

"""The examples in Python: real frameworks and their real telemetry, recorded as they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from .playing import TIMEOUT, assert_recorded, run_all, run_example

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(TIMEOUT)]

MODELS = {
    "anthropic_sdk": "claude-sonnet-4-5",
    "langgraph_agent": "gpt-5-mini",
    "openai_agents": "gpt-5-mini",
    "openinference_openai": "gpt-5-mini",
    "openllmetry_openai": "gpt-5-mini",
    "opentelemetry_openai": "gpt-5-mini",
    "pydantic_ai_agent": "gpt-5-mini",
}
SAY_STREAMED = {"anthropic_sdk", "openinference_openai", "openllmetry_openai", "opentelemetry_openai"}
TELL_WHAT_IS_NEW = {"anthropic_sdk"}
"""Its tool runner puts only the messages since the last answer on a span."""


def test_every_example_is_run_by_a_test() -> None:
    assert sorted([*MODELS, *run_all.NODE]) == run_all.NAMES


@pytest.mark.parametrize("name", MODELS)
def test_an_example_is_recorded_as_the_script_has_it(tmp_path: Path, name: str) -> None:
    out = run_example(name, tmp_path / "rec")
    last = assert_recorded(tmp_path / "rec", out, whole=name not in TELL_WHAT_IS_NEW)
    assert last.model_id == MODELS[name]
    assert last.streamed or name not in SAY_STREAMED

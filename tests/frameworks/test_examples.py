"""The examples in Python: real frameworks and their real telemetry, recorded as they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from .playing import TIMEOUT, assert_recorded, run_all, run_example

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(TIMEOUT)]

MODELS = {
    "langgraph_agent": "gpt-5-mini",
    "openai_agents": "gpt-5-mini",
    "openinference_openai": "gpt-5-mini",
    "openllmetry_openai": "gpt-5-mini",
    "opentelemetry_openai": "gpt-5-mini",
    "pydantic_ai_agent": "gpt-5-mini",
}
SAY_STREAMED = {"openinference_openai", "openllmetry_openai", "opentelemetry_openai"}


def test_every_example_is_run_by_a_test() -> None:
    assert sorted([*MODELS, *run_all.NODE]) == run_all.NAMES


@pytest.mark.parametrize("name", MODELS)
def test_an_example_is_recorded_as_the_script_has_it(tmp_path: Path, name: str) -> None:
    last = assert_recorded(tmp_path / "rec", run_example(name, tmp_path / "rec"))
    assert last.model_id == MODELS[name]
    assert last.streamed or name not in SAY_STREAMED

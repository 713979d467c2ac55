"""The examples in Python: real frameworks and their real telemetry, recorded as they run."""

from __future__ import annotations

from fnmatch import fnmatch
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
SAYS = {
    "bisect_a_prompt": ["exit 0", "exit 1", "* is the first bad commit", "    Friendlier words"],
    "regression_test": [
        "1 passed in *",
        "*differs from its recording at step 1, $.messages[[]0].content",
        "1 failed in *",
    ],
    "combos/compare_models": ["a *as recorded *", "b *differs *"],
    "combos/compliance_audit": ["*first_broken_index=-1)", "*first_broken_index=4)"],
    "combos/crash_and_rerun": ["*ended with -9", "tools: 2 results from the cache, 0 calls made"],
    "combos/local_debugging": ["* the model asked for weather(*", "*weather gave 'Finse: light rain from 15:00'"],
    "combos/long_task": ["*ended with -9", "restored: 10 events*", "From platform 3."],
    "combos/production": ["*ended with -9", "model: 1 hit, 1 asked; tools: 2 hits, 0 made", "recording: *"],
    **{
        f"resume/{agent}": [
            "-> killed while*",
            "-> went on*",
            "-> stopped*",
            "3 answers of the model, each given once; 3 effects, each happened once",
        ]
        for agent in ("anthropic_sdk", "langgraph_agent", "openai_agents", "openai_sdk", "pydantic_ai_agent")
    },
    "forward_to_otlp": [
        "2 calls recorded; spans sent: 0, lost: 3",
        "3 spans sent in 1 batch",
        "nothing new to send",
        "*tool  weather * light rain from 15:00",
    ],
    "kept_elsewhere": [
        "  compared    3 stamps, 1 checkpoint in *",
        "INTACT  *",
        "CONTRADICTED  *(history_rewritten)",
        "  differs     *event 5: hash is *, kept was * (evidence.pb, message 1)*",
    ],
    "two_models": ['  b: $.toolCalls[[]1].arguments.to: "Oslo" -> "Bergen"', "a  large      4          4 of 4 *"],
}
"""Examples that tell something else than what they recorded: lines that they print."""


def test_every_example_is_run_by_a_test() -> None:
    chats = run_all.TYPED  # tests/session plays those that read what a user types
    assert sorted([*MODELS, *SAYS, *run_all.NODE, *chats]) == run_all.NAMES


@pytest.mark.parametrize("name", MODELS)
def test_an_example_is_recorded_as_the_script_has_it(tmp_path: Path, name: str) -> None:
    out = run_example(name, tmp_path / "rec")
    last = assert_recorded(tmp_path / "rec", out, whole=name not in TELL_WHAT_IS_NEW)
    assert last.model_id == MODELS[name]
    assert last.streamed or name not in SAY_STREAMED


@pytest.mark.parametrize("name", SAYS)
def test_an_example_says_what_it_is_there_to_show(tmp_path: Path, name: str) -> None:
    lines = run_example(name, tmp_path / "rec").splitlines()
    for wanted in SAYS[name]:
        assert any(fnmatch(line, wanted) for line in lines), wanted

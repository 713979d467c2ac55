"""Agents of frameworks, killed and resumed: no effect twice, no finished model call asked again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.resume.running import CALLS, EACH_ONCE, MODEL_CALLS, shop

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

PROGRAM = Path(__file__).with_name("resumed_agents.py")
FRAMEWORKS = ["openai-agents", "pydantic-ai", "langgraph"]
WINDOW = [f"{moment}:{call}" for call in CALLS for moment in ("inside", "after")]

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + 600)]


@pytest.mark.parametrize("words", ["", "stream"], ids=["whole", "stream"])
@pytest.mark.parametrize("kill_at", WINDOW)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_killed_in_the_window_it_stops_and_then_finishes(
    tmp_path: Path, framework: str, kill_at: str, words: str
) -> None:
    with shop(tmp_path, framework, *words.split()) as it:
        it.launcher = str(environments.python())
        it.program = [it.launcher, str(PROGRAM)]
        it.start(kill_at)
        before = it.effects()
        stopped = it.resume()
        assert stopped.returncode == 75, stopped.stderr
        assert it.effects() == before
        it.settle()
        it.finish()
        assert it.effects() == EACH_ONCE
        assert len(it.model.requests) == MODEL_CALLS

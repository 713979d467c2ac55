"""Agents of frameworks, killed and resumed: no effect twice, no finished model call asked again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold
from tests.resume.running import CALLS, EACH_ONCE, MODEL_CALLS, Shop, shop

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

PROGRAM = Path(__file__).with_name("resumed_agents.py")
FRAMEWORKS = ["openai-agents", "pydantic-ai", "langgraph"]
WINDOW = [f"{moment}:{call}" for call in CALLS for moment in ("inside", "after")]
BOUNDARIES = [f"model:{n}" for n in range(1, MODEL_CALLS + 1)]

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + 600)]


@pytest.fixture(params=FRAMEWORKS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with shop(tmp_path, request.param) as it:
        it.launcher = str(environments.python())
        it.program = [it.launcher, str(PROGRAM)]
        yield it


def test_killed_in_the_window_it_stops_and_then_finishes(agent: Shop) -> None:
    agent.start("after:s3")
    before = agent.effects()
    stopped = agent.resume()
    assert stopped.returncode == 75, stopped.stderr
    assert agent.effects() == before
    agent.settle()
    agent.resume(kill_at="model:6")
    agent.finish()
    assert agent.effects() == EACH_ONCE
    assert len(agent.model.requests) == MODEL_CALLS + 1, "the call that was under way when it died is made again"
    assert len({run.root for run in fold(Recording(agent.recording)).runs if run.attempt > 1}) == 1
    again = agent.resume()
    assert (again.returncode, again.stdout) == (2, "")


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["stream"]], ids=["whole", "stream"])
@pytest.mark.parametrize("kill_at", [*BOUNDARIES, *WINDOW])
def test_killed_anywhere(agent: Shop, kill_at: str, words: list[str]) -> None:
    agent.words += words
    agent.start(kill_at)
    agent.finish()
    assert agent.effects() == EACH_ONCE
    assert len(agent.model.requests) == MODEL_CALLS + kill_at.startswith("model")


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("again", [*BOUNDARIES[2:], *WINDOW[4:]])
def test_killed_again_while_it_is_resumed(agent: Shop, again: str) -> None:
    agent.start("model:2")
    agent.resume(kill_at=again)
    agent.finish()
    assert agent.effects() == EACH_ONCE
    assert len(agent.model.requests) == MODEL_CALLS + 1 + again.startswith("model")

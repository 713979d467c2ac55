"""A regression test of the agent. Its recording stands in ``recordings/test_agent/test_trip``."""

import agent
import pytest


@pytest.mark.agentrec
def test_trip() -> None:
    answer = agent.plan("I want to go walking near Finse. Will it rain, and when does the last train to Oslo go?")
    assert "15:00" in answer and "21:42" in answer

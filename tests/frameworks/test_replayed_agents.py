"""Agents of frameworks, recorded once and replayed in a namespace without a network: the same output, no effect.

What is streamed is printed piece by piece, so equal output is the same pieces in the same order.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.resume.running import ANSWER, EACH_ONCE, shop

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

PROGRAM = Path(__file__).with_name("resumed_agents.py")
NO_NETWORK = ["unshare", "--user", "--map-root-user", "--net"]

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + 600)]


@pytest.mark.parametrize("words", ["", "stream"], ids=["whole", "stream"])
@pytest.mark.parametrize("framework", ["openai-agents", "pydantic-ai", "langgraph", "anthropic"])
def test_it_is_the_same_without_a_network(tmp_path: Path, framework: str, words: str) -> None:
    python = str(environments.python())
    with shop(tmp_path, framework, *words.split()) as it:
        it.launcher, it.program = python, [python, str(PROGRAM)]
        recorded = it.start()
        assert recorded.stdout.endswith(f"{ANSWER}\n")
        assert not words or len(recorded.stdout.splitlines()) > len(ANSWER.split()), "it comes in pieces"
        url = it.model.base_url
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_"))}
    environ = {
        **kept,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "none",
        "OTEL_METRICS_EXPORTER": "none",
    }
    program = [python, str(PROGRAM), str(tmp_path / "effects"), "never", framework, *words.split()]
    replay = [python, "-m", "otel_agentrec", "replay", str(it.recording), "--", *program]
    done = subprocess.run([*NO_NETWORK, *replay], env=environ, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, recorded.stdout), done.stderr
    assert it.effects() == EACH_ONCE, "those of the recorded run"

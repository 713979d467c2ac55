"""Anthropic's messages through the real SDK, in an environment that has it, against the scripted model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ..frameworks.playing import TIMEOUT, run_all
from .scenes import EXPECTED

ROOT = Path(__file__).parents[2]
environments = run_all.environments

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(TIMEOUT)]


@pytest.mark.parametrize("kind", ["threads", "loop"])
def test_the_real_sdk_is_asked_and_heard_in_full(kind: str) -> None:
    words = [environments.python(), "-W", "error", "-m", "tests.clients.anthropic_program", kind]
    done = subprocess.run(words, cwd=ROOT, env=environments.environment(), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    expected = json.loads(json.dumps(EXPECTED))
    assert (said["whole"], said["streamed"]) == (expected, expected)
    assert said["usage"][0]["cache_read_input_tokens"] == 5
    assert said["usage"][0] == said["usage"][1]
    assert said["finish"] == [["tool_use"], ["tool_use"]]
    assert said["answer"] == 'Rain: yes; {"at": 9}'
    assert said["errors"] == [["RateLimitError", 429], ["OverloadedError", 529]]
    sent = said["options"]
    assert {
        key: sent[key] for key in ("temperature", "top_p", "thinking", "top_k", "stop_sequences", "new_option")
    } == {
        "temperature": 0.5,
        "top_p": 0.9,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "top_k": 3,
        "stop_sequences": ["."],
        "new_option": {"a": 1},
    }

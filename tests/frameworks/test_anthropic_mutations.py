"""Nothing but the recorded request gets its answer, over the transport of the Anthropic SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

HERE = Path(__file__).parent
SECONDS = 300

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(environments.SETUP_SECONDS + 2 * SECONDS)]


@pytest.mark.parametrize("requirements", ["sdks-newest", "sdks-earlier"])
def test_of_more_than_500_mutations_none_is_answered_and_each_is_named(tmp_path: Path, requirements: str) -> None:
    python = environments.python_with(HERE / "requirements" / f"{requirements}.txt")
    done = subprocess.run(
        [python, "-m", "tests.frameworks.anthropic_mutations", tmp_path],
        env=environments.environment(),
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["tried"] >= 500
    assert (said["answered"], said["unnamed"]) == (0, [])
    assert said["renamed"] == "Monday.", "ids of tool uses that were made anew are no divergence"

"""The tests of the HTTP points, with all clients at their newest and at the oldest versions that are covered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import environments

HERE = Path(__file__).parent
SECONDS = 300
EVERYWHERE = ["test_httpx.py", "test_transports.py", "test_urllib3.py", "test_botocore.py"]
NEWEST = ["test_aiohttp.py", "test_http2.py", "test_neighbours.py", "test_respx.py"]


@pytest.mark.frameworks
@pytest.mark.timeout(environments.SETUP_SECONDS + SECONDS)
@pytest.mark.parametrize(
    ("requirements", "files"), [("http-clients", EVERYWHERE + NEWEST), ("http-clients-old", EVERYWHERE)]
)
def test_the_points_hold_with_these_clients(requirements: str, files: list[str]) -> None:
    python = environments.python_with(HERE / "requirements" / f"{requirements}.txt")
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/intercept/{name}" for name in files)],
        env=environments.environment(AGENTREC_REQUIRE="frameworks"),  # a library that is missing is a failure
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout

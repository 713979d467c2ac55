"""Makes the pictures of docs/viewers.md anew: ``python -m tests.servers.pictures [FOLDER]``, by default ``docs/pictures``.

The demo's agent is recorded, exported into a Phoenix of its own, and headless Chromium (Debian: ``chromium``) takes the pictures.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from otel_agentrec.demo import stage
from tests.servers.feeding import export
from tests.servers.phoenix import Phoenix

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SIZE = "1400,800"
MOST_BYTES = 150_000
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
PATIENCE_MS = 15_000
"""Of the page's own clock, which runs as fast as it can: for what its scripts fetch and draw."""


def picture(url: str, file: Path, size: str = SIZE) -> None:
    """What a browser shows of a page, as a PNG.

    Raises:
        SystemExit: there is no Chromium, or the picture is too large to stand in a repository.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        words = [browser, *QUIET, f"--user-data-dir={profile}", f"--window-size={size}"]
        words += [f"--virtual-time-budget={PATIENCE_MS}", f"--screenshot={file}", url]
        subprocess.run(words, check=True, capture_output=True, timeout=180)
    if (bytes_ := file.stat().st_size) > MOST_BYTES:
        sys.exit(f"{file} has {bytes_} bytes, more than {MOST_BYTES}")
    print(f"{file}  {bytes_} bytes", flush=True)


def of_phoenix(recording: Path, scratch: Path, out: Path) -> None:
    """A run with its agent chosen, and with its first model call, which asks for two tools."""
    phoenix = Phoenix(scratch / "phoenix")
    phoenix.start()
    try:
        spans = phoenix.wait_for(export(recording, phoenix.url))
        spans.sort(key=lambda span: str(span["start_time"]))
        page = f"{phoenix.url}/projects/{phoenix.project_id()}"
        trace = f"{page}/traces/{spans[0]['context']['trace_id']}?selectedSpanNodeId="
        (root,) = [span for span in spans if span["parent_id"] is None]
        asks, *_ = [span for span in spans if span["span_kind"] == "LLM"]
        picture(trace + root["id"], out / "phoenix-run.png")
        picture(trace + asks["id"], out / "phoenix-model.png", "1300,1130")
    finally:
        phoenix.stop()


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        recording = Path(scratch) / "demo"
        stage.record(recording, stage.ANSWER, stage.QUESTION, lambda piece: None)
        of_phoenix(recording, Path(scratch), out)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)

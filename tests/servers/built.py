"""Programs that tests of servers need and no package has: built once, from their released sources, into a cache.

The cache is ``$XDG_CACHE_HOME/otel-agentrec/servers`` (``~/.cache/...``); what stands there is keyed on what it was made from,
so that other versions make another. It can be deleted at any time. ``python -m tests.servers.built`` makes all of it now.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CONFIGS = Path(__file__).parents[2] / "collector-config"
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.161.0"
JAEGER = "github.com/jaegertracing/jaeger/cmd/jaeger@v1.76.0"
POM = Path(__file__).parent / "kafka.pom.xml"
BUILD_SECONDS = 2400
"""For one program, on a machine of two processors that has never built it and does other things besides."""


def collector() -> Path:
    """The Collector that ``collector-config/builder.yaml`` describes, built by the OpenTelemetry Collector Builder."""
    recipe = CONFIGS / "builder.yaml"

    def build(place: Path) -> None:
        _go(place, "run", BUILDER, "--config", str(recipe))
        (place / "build" / "otelcol-agentrec").rename(place / "otelcol-agentrec")
        shutil.rmtree(place / "build")

    return _made("collector", [BUILDER, recipe.read_text("utf-8"), _go_version()], build) / "otelcol-agentrec"


def jaeger() -> Path:
    """Jaeger 2, without the pages of its user interface: those are not part of the Go module."""

    def build(place: Path) -> None:
        (place / "go.mod").write_text("module agentrec/jaeger\n\ngo 1.25\n", encoding="utf-8")
        _go(place, "get", "-tool", JAEGER)
        _go(place, "build", "-trimpath", "-ldflags", "-s -w", "-o", "jaeger", JAEGER.partition("@")[0])

    return _made("jaeger", [JAEGER, _go_version()], build) / "jaeger"


def kafka() -> Path:
    """The folder with Apache Kafka's jars and those they need, as ``kafka.pom.xml`` names them."""
    if not (shutil.which("java") and shutil.which("mvn")):
        pytest.skip("Java and Maven are not installed")

    def fetch(place: Path) -> None:
        shutil.copy(POM, place / "pom.xml")
        words = ["mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
        _run([*words, "-DincludeScope=runtime"], place, {})

    return _made("kafka", [POM.read_text("utf-8")], fetch) / "jars"


def _go_version() -> str:
    if not shutil.which("go"):
        pytest.skip("Go is not installed")
    return subprocess.run(["go", "version"], capture_output=True, text=True, check=True, timeout=60).stdout


def _go(place: Path, *words: str) -> None:
    # the modules' sums are not kept here, so go may write them down
    _run(["go", *words], place, {"GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off"})


def _run(words: list[str], place: Path, more: dict[str, str]) -> None:
    done = subprocess.run(
        words, cwd=place, env={**os.environ, **more}, capture_output=True, text=True, timeout=BUILD_SECONDS
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {(done.stdout + done.stderr)[-4000:]}")


def _made(kind: str, made_from: list[str], make: Callable[[Path], None]) -> Path:
    """The folder that ``make`` filled from these, now or earlier; a half-filled one is never seen."""
    key = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otel-agentrec" / "servers"
    home.mkdir(parents=True, exist_ok=True)
    place = home / f"{kind}-{key}"
    if not place.exists():
        with _alone(home / "lock"):
            if not place.exists():
                print(f"making {kind} in {place} (once)", file=sys.stderr, flush=True)
                scratch = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=home))
                try:
                    make(scratch)
                    scratch.rename(place)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
    return place


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time builds, as each build takes every processor; the others wait and find it done."""
    import fcntl

    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for one in (collector, jaeger, kafka):
        began = time.monotonic()
        try:
            print(f"{one()}  {time.monotonic() - began:.0f} s", flush=True)
        except pytest.skip.Exception as why:
            print(f"{one.__name__}: {why}", flush=True)

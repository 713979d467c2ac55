"""What OpenTelemetry loads by name in every program of an environment harms none of them, whole or broken."""

from __future__ import annotations

import os
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.capture.shell import INSTRUMENT, ROOT, Shell, as_installed
from tests.test_project import PYPROJECT

POINTS = [
    EntryPoint(name, value, group)
    for group, points in PYPROJECT["project"]["entry-points"].items()
    if group.startswith("opentelemetry_")
    for name, value in points.items()
]

OTHER_HOOKS = """
[opentelemetry_pre_instrument]
other = other_package:pre
[opentelemetry_post_instrument]
other = other_package:post
[opentelemetry_instrumentor]
other = other_package:Instrumentor
"""
OTHER = """
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

def pre():
    print("other pre")

def post():
    print("other post")

class Instrumentor(BaseInstrumentor):
    def instrumentation_dependencies(self):
        return []

    def _instrument(self, **kwargs):
        print("other instrumentor")

    def _uninstrument(self, **kwargs):
        pass
"""
APP = """
from opentelemetry import _logs, trace
with trace.get_tracer("app").start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
    _logs.get_logger("app").emit(_logs.LogRecord(event_name="happened"))
    print("the program ran")
"""
ON = {
    "OTEL_PYTHON_TRACER_PROVIDER": "agentrec",
    "OTEL_PYTHON_LOGGER_PROVIDER": "agentrec",
    "OTEL_TRACES_EXPORTER": "console,agentrec",
    "OTEL_LOGS_EXPORTER": "agentrec",
    "OTEL_METRICS_EXPORTER": "none",
}
LOAD = f"""
from importlib.metadata import EntryPoint
for name, value, group in {[(p.name, p.value, p.group) for p in POINTS]!r}:
    thing = EntryPoint(name, value, group).load()
    if group == "opentelemetry_instrumentor":
        thing().instrument()
        thing().instrument(path="elsewhere")
    elif group.endswith("_exporter"):
        for exporter in (thing(), thing(path="elsewhere")):
            assert exporter.export([]).name == "SUCCESS"
            assert exporter.force_flush()
            exporter.shutdown()
    elif group.endswith("_provider"):
        provider = thing()
        assert hasattr(provider, "get_tracer") or hasattr(provider, "get_logger")
    elif callable(thing):
        thing()
print("all loaded")
"""


def broken(where: Path, how: str) -> Path:
    """A directory for PYTHONPATH in which something that we need is missing."""
    where.mkdir()
    if how == "no orjson":
        (where / "orjson.py").write_text("raise ModuleNotFoundError('orjson is not installed')")
    else:
        package = where / "otel_agentrec"
        (package / "capture").mkdir(parents=True)
        for name in ("__init__.py", "otel", "settings.py", "errors.py"):
            (package / name).symlink_to(ROOT / "otel_agentrec" / name)
        (package / "capture" / "__init__.py").write_text("raise SystemError('half of the files are gone')")
    return where


@pytest.fixture(params=["no orjson", "files are missing"])
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Shell:
    shell = Shell(tmp_path, "")
    places = [broken(tmp_path / "broken", request.param), ROOT, as_installed(tmp_path / "site")]
    shell.env["PYTHONPATH"] = os.pathsep.join(map(str, places))
    return shell


@pytest.mark.parametrize("path", [None, "rec"])
def test_each_loads_and_does_its_part_in_a_broken_install(shell: Shell, path: str | None) -> None:
    if path is not None:
        shell.env["OTEL_AGENTREC_PATH"] = path
    done = shell.plain(sys.executable, "-c", LOAD)
    assert (done.returncode, done.stdout) == (0, "all loaded\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert all(line.startswith("otel-agentrec: ") for line in done.stderr.splitlines()), done.stderr
    assert not (shell.path / "rec").exists()


def test_the_hooks_of_others_and_the_program_run_though_ours_are_broken(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "site" / "other_package-1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1\n")
    (other / "entry_points.txt").write_text(OTHER_HOOKS)
    (tmp_path / "site" / "other_package.py").write_text(OTHER)
    shell.env.update(ON, OTEL_AGENTREC_PATH="rec")
    done = shell.plain(*INSTRUMENT, sys.executable, "-c", APP)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith(("other", "the program"))]
    assert said == ["other pre", "other instrumentor", "other post", "the program ran"]
    assert '"name": "chat m"' in done.stdout, "the program's own exporter got its span"
    assert "Traceback" not in done.stderr, done.stderr
    assert "otel-agentrec: not recording: " in done.stderr


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.group)
def test_each_is_there_and_does_nothing_when_nothing_is_asked_for(
    point: EntryPoint, capsys: pytest.CaptureFixture[str], otel_globals: None
) -> None:
    thing = point.load()
    if point.group in ("opentelemetry_pre_instrument", "opentelemetry_post_instrument"):
        thing()
    elif point.group == "opentelemetry_instrumentor":
        instrumentor = thing()
        instrumentor.instrument()
        instrumentor.instrument(skip_dep_check=True)
        assert not instrumentor.is_instrumented_by_opentelemetry
    from opentelemetry import trace

    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    assert capsys.readouterr().err == ""

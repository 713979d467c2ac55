"""What every test can count on: no settings of the user's shell, no network but loopback, OTel's globals as new.

Markers: a test marked ``slow``, ``frameworks``, ``servers`` or ``languages`` is skipped with that reason unless ``--all`` is given.
``AGENTREC_REQUIRE=frameworks,servers`` names what the caller has set up: a skip of a test so marked is then a failure, as
is a module that names the marker and skips itself as a whole.

A test marked ``matrix`` is one cell of a large product (each way to kill it × each way to run it): ``--all`` runs every eighth
of them, always the same ones, ``--matrix`` all.

A test marked ``alone`` measures time or loads the machine: when tests run in several processes, nothing runs beside it.
"""

from __future__ import annotations

import ipaddress
import os
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # an environment with other versions of HTTP clients, which runs only the tests of their points
    pass
else:
    # How long an example takes is the machine's affair: other tests run beside it. The gate gives one answer to one tree;
    # developers' runs look for more.
    settings.register_profile(
        "any machine",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize="AGENTREC_REQUIRE" in os.environ,
    )
    settings.load_profile("any machine")

MARKERS = {
    "slow": "takes more than a few seconds",
    "frameworks": "drives a real agent framework",
    "servers": "needs a server",
    "languages": "needs Node or Go",
}
REQUIRED = frozenset(filter(None, os.environ.get("AGENTREC_REQUIRE", "").split(",")))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--matrix", action="store_true", help="also every test marked matrix, which takes an hour; use it with --all"
    )
    parser.addoption("--all", action="store_true", help=f"also run the tests marked {', '.join(MARKERS)}")


def pytest_configure(config: pytest.Config) -> None:
    unknown = REQUIRED - MARKERS.keys()
    if unknown:
        raise pytest.UsageError(f"AGENTREC_REQUIRE names no marker: {', '.join(sorted(unknown))}")
    for marker, what in MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: {what}; runs with --all")
    config.addinivalue_line("markers", "matrix: one cell of a large product; --all runs some, --matrix all")
    config.addinivalue_line("markers", "alone: measures time or loads the machine; no other test runs beside it")
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            del os.environ[name]
    # pytest-xdist tells its workers how wide the terminal is; what programs print into a pipe has no such width
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    # `python` and `otel-agentrec` are those of this environment; Debian has no `python` of its own
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--matrix"):
        left_out = [
            item for item in items if item.get_closest_marker("matrix") and zlib.crc32(item.nodeid.encode()) % 8
        ]
        config.hook.pytest_deselected(items=left_out)
        gone = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in gone]
    for item in items:
        slow = any(item.get_closest_marker(marker) for marker in MARKERS)
        if slow and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))
    if config.getoption("--all"):
        return
    for item in items:
        for marker, what in MARKERS.items():
            if item.get_closest_marker(marker) and marker not in REQUIRED:
                item.add_marker(pytest.mark.skip(reason=f"{marker}: {what}; make test-all runs it"))


def _must_not_skip(report: pytest.TestReport | pytest.CollectReport, markers: frozenset[str]) -> None:
    if report.skipped and markers and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped though AGENTREC_REQUIRE names {', '.join(sorted(markers))}: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    report = yield
    _must_not_skip(report, REQUIRED & {mark.name for mark in item.iter_markers()})
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    report = yield
    if isinstance(collector, pytest.Module) and report.skipped:
        # A module that skips itself never shows its markers, so its text is asked. One without any runs where what it
        # needs is installed: those of single HTTP clients do so in environments that tests marked frameworks make.
        text = collector.path.read_text(encoding="utf-8")
        _must_not_skip(report, frozenset(marker for marker in REQUIRED if f"pytest.mark.{marker}" in text))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest-timeout: waiting is not the test's time
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    import fcntl

    # One lock for the room, shared by all tests but those that need it alone; a turnstile before it, where a test that
    # needs the room alone waits with nobody passing it. Any two files of this checkout will do.
    here = Path(__file__)
    room, turnstile = (os.open(path, os.O_RDONLY) for path in (here, here.parent))
    try:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        return (yield)
    finally:
        fcntl.flock(room, fcntl.LOCK_UN)  # also for children that a test forked
        os.close(room)
        os.close(turnstile)


def _loopback_only(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook: no test of this process reaches another machine, whatever library it drives."""
    if event != "socket.connect":
        return
    address = args[1]
    if isinstance(address, tuple) and address[0] != "localhost":
        try:
            allowed = ipaddress.ip_address(address[0]).is_loopback
        except ValueError:
            allowed = False
        if not allowed:
            raise ConnectionRefusedError(f"tests stay on loopback; not connecting to {address[0]}")


sys.addaudithook(_loopback_only)


def _open_recorders() -> list[Any]:
    recorders = sys.modules.get("otel_agentrec.capture.recorders")
    return recorders.open_recorders() if recorders is not None else []


@pytest.fixture(autouse=True)
def as_in_a_new_process() -> Iterator[None]:
    """Nothing that one test leaves in this process is seen by the next, also what the code under test set: variables of
    OpenTelemetry, what was swallowed and said, patched HTTP clients."""
    guard = sys.modules.get("otel_agentrec.capture.guard")
    if guard is not None:
        guard.PROCESS.counters, guard.PROCESS.notices = guard.Counters(), guard.Notices()
    known = _open_recorders()
    yield
    for recorder in _open_recorders():
        if (
            recorder not in known
        ):  # who records nothing asks an open one for its rules, and those may let secrets through
            recorder.shutdown()
    sealed = sys.modules.get("otel_agentrec.capture.forward.sealed")
    if sealed is not None:
        sealed._wanted_of_all = False
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            del os.environ[name]
    # One that is not shut down records the model calls of every later test as well.
    for thread in threading.enumerate():
        if thread.name == "otel-agentrec-wire":
            thread.join(5)
            assert not thread.is_alive(), "a recorder that watches the wire was not shut down"
    install = sys.modules.get("otel_agentrec.intercept.install")
    if install is not None and install.is_installed():
        install.uninstall()


@pytest.fixture
def otel_globals() -> Iterator[None]:
    """OTel's global providers as in a new process, and as they were before once the test is over."""
    from opentelemetry import trace
    from opentelemetry._logs import _internal as logs
    from opentelemetry.metrics import _internal as metrics

    places = [
        (trace, "_TRACER_PROVIDER"),
        (logs, "_LOGGER_PROVIDER"),
        (metrics, "_METER_PROVIDER"),
    ]
    saved: list[tuple[Any, str, Any]] = []
    for module, name in places:
        for attribute in (name, f"{name}_SET_ONCE"):
            saved.append((module, attribute, getattr(module, attribute)))
        setattr(module, name, None)
        once = getattr(module, f"{name}_SET_ONCE")
        setattr(module, f"{name}_SET_ONCE", type(once)())
    yield
    for module, attribute, value in saved:
        setattr(module, attribute, value)

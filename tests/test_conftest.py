"""The rules for marked tests, each run in a pytest of its own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

MARKED = """
import pytest

@pytest.mark.servers
def test_server():
    pytest.skip("no collector here")

@pytest.mark.slow
def test_slow():
    pass

def test_plain():
    pytest.skip("for a reason of its own")
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("AGENTREC_REQUIRE", raising=False)
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text())
    pytester.makepyfile(MARKED)
    return pytester


def test_marked_tests_skip_with_their_reason(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-rs", "--strict-markers")
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["*servers: needs a server; make test-all runs it*"])


def test_all_runs_them_and_they_may_skip_themselves(project: pytest.Pytester) -> None:
    project.runpytest_subprocess("--all").assert_outcomes(passed=1, skipped=2)


def test_a_skip_of_a_required_marker_is_a_failure(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTREC_REQUIRE", "servers")
    result = project.runpytest_subprocess("--all")
    result.assert_outcomes(passed=1, skipped=1, failed=1)
    result.stdout.fnmatch_lines(["*AGENTREC_REQUIRE names servers: *no collector here*"])


def test_a_module_that_skips_itself_is_a_failure_too(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTREC_REQUIRE", "frameworks")
    without = "import pytest\npytest.importorskip('no_such_package')\n"
    project.makepyfile(test_whole=without, test_with=f"{without}pytestmark = pytest.mark.frameworks")
    result = project.runpytest_subprocess("--all")
    assert result.ret != 0
    result.stdout.fnmatch_lines(
        ["*ERROR collecting test_with.py*", "*AGENTREC_REQUIRE names frameworks: *no_such_package*"]
    )
    assert "ERROR test_whole.py" not in result.stdout.str(), "nothing marks it"


def test_an_unknown_marker_is_refused(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTREC_REQUIRE", "server")
    result = project.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*AGENTREC_REQUIRE names no marker: server*"])


@pytest.mark.slow
def test_nothing_runs_beside_a_test_that_is_to_be_alone(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_together="""
        import time
        import pytest

        def note(what):
            with open("log", "a") as log:
                log.write(what + "\\n")

        @pytest.mark.parametrize("n", range(12))
        def test_shared(n):
            note("in")
            time.sleep(0.02)
            note("out")

        @pytest.mark.alone
        @pytest.mark.parametrize("n", range(3))
        def test_alone(n):
            note("alone in")
            time.sleep(0.05)
            note("alone out")
        """
    )
    result = project.runpytest_subprocess("-n", "3", "--dist", "worksteal", "--strict-markers", "test_together.py")
    result.assert_outcomes(passed=15)
    inside = 0
    log = (project.path / "log").read_text().splitlines()
    for here, after in zip(log, [*log[1:], ""], strict=True):
        inside += {"in": 1, "out": -1}.get(here, 0)
        if here == "alone in":
            assert (inside, after) == (0, "alone out")
    assert log.count("alone in") == 3


def test_tests_stay_on_loopback() -> None:
    with pytest.raises(ConnectionRefusedError, match="stay on loopback"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


def test_otel_globals_are_new_and_come_back(otel_globals: None) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    mine = TracerProvider()
    trace.set_tracer_provider(mine)
    assert trace.get_tracer_provider() is mine

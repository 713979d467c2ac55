"""pytest plugin: a test of an agent, answered from a recording that stands beside it. ``docs/pytest.md`` tells how to use it.

    def test_refund(agentrec_recording):          # or: @pytest.mark.agentrec
        assert "refunded" in my_agent("Refund order 7.")

``pytest --agentrec=record`` makes real calls and records them; ``pytest`` answers all of them from the recording, without a
network, and fails where the agent asks for anything else; ``pytest --agentrec=refresh`` records anew what differs.

pytest loads this module in every run, so it imports nothing but pytest; all else comes when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from otel_agentrec.pytest_plugin.playing import AgentRecording

__all__ = ["agentrec_recording"]

MODES = ("record", "replay", "refresh")
FIXTURE = "agentrec_recording"
MARKER = (
    "agentrec(path=None, run=None, inert=(), rerun_tools=(), allow_hosts=(), retries='replay'): answer all model and tool "
    "calls of the test from its recording (otel-agentrec); path: where it stands, seen from the test's folder"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("agentrec", "recorded runs of agents (otel-agentrec)")
    group.addoption(
        "--agentrec",
        choices=MODES,
        default="replay",
        help="tests of agents: record = real calls, real money; replay (default) = answered from the recording; "
        "refresh = replayed, and recorded anew where that differs",
    )
    parser.addini(
        "agentrec_dir", "folder of the recordings, seen from rootdir; default: recordings beside each test file"
    )
    parser.addini(
        "agentrec_strict", "fail when recorded calls are left that nobody asked for", type="bool", default=False
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(tryfirst=True)  # before others take items out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if FIXTURE in getattr(item, "fixturenames", ()) or _is_marked(item)]
    for item in ours:
        _let_it_begin(item)
    if ours:
        from otel_agentrec.pytest_plugin.summary import summary_of

        summary_of(config).collected(ours)


@pytest.fixture
def agentrec_recording(request: pytest.FixtureRequest) -> Generator[AgentRecording, None, None]:
    """All model and tool calls of the test are recorded, or answered from its recording: see ``pytest --agentrec``."""
    from otel_agentrec.pytest_plugin.playing import play

    played = play(request.node)
    yield played.recording
    played.end()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    if FIXTURE in getattr(item, "fixturenames", ()):
        from otel_agentrec.pytest_plugin.playing import seen

        seen(item, call, outcome.get_result())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if item.config.getoption("agentrec") != "refresh" or FIXTURE not in getattr(item, "fixturenames", ()):
        return None
    from otel_agentrec.pytest_plugin.refreshing import refresh

    refresh(item, nextitem)
    return True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    from otel_agentrec.pytest_plugin import summary  # only plain Python

    summary.hand_over(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A process of pytest-xdist has ended."""
    told = getattr(node, "workeroutput", {}).get("agentrec")
    if told is not None:
        from otel_agentrec.pytest_plugin.summary import summary_of

        summary_of(node.config).add(told)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    from otel_agentrec.pytest_plugin import summary

    summary.write(terminalreporter, config)


def _is_marked(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and item.get_closest_marker("agentrec") is not None


def _let_it_begin(item: pytest.Item) -> None:
    """Our fixture comes before all others that are made for each test, so that what those ask is recorded, too."""
    names: list[str] = item.fixturenames  # type: ignore[attr-defined]
    if FIXTURE in names:
        names.remove(FIXTURE)
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    wider = [at for at, name in enumerate(names) if name in known and known[name][-1].scope != "function"]
    names.insert(wider[-1] + 1 if wider else 0, FIXTURE)

"""``--agentrec=refresh``: a test is replayed; when that differs from its recording, it is run once more and recorded."""

from __future__ import annotations

import pytest

from otel_agentrec.pytest_plugin.answering import Answering
from otel_agentrec.pytest_plugin.place import place_of
from otel_agentrec.pytest_plugin.playing import MODE, PLAYED

__all__ = ["refresh"]


def refresh(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run one test, twice where that is needed, and report the last run of it. A recording that holds is not touched."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = _run(item, nextitem, "replay") if place_of(item).exists() else None
    by = item.stash.get(PLAYED, None)
    if reports is None or (isinstance(by, Answering) and by.differs):
        reports = _run(item, nextitem, "record")
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _run(item: pytest.Item, nextitem: pytest.Item | None, mode: str) -> list[pytest.TestReport]:
    from _pytest.runner import runtestprotocol  # pytest has no public name for it; what reruns tests uses this one

    item.stash[MODE] = mode
    if PLAYED in item.stash:
        del item.stash[PLAYED]
    return runtestprotocol(item, nextitem=nextitem, log=False)

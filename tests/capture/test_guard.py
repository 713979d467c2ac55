"""The guard: what OTel calls never raises into the program, and nothing that went wrong is silent."""

from __future__ import annotations

import sys

import pytest

from otel_agentrec.capture.guard import Counters, Guard, Notices


@pytest.fixture
def guard() -> Guard:
    return Guard(Counters(), Notices())


def raising(error: BaseException) -> object:
    raise error


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError(), MemoryError(), OSError(28, "No space left")])
def test_exceptions_are_swallowed_counted_and_said_once_per_kind(
    guard: Guard, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    on_end = guard.wrap("on_end", raising, fallback="nothing")
    assert [on_end(error) for _ in range(3)] == ["nothing"] * 3
    assert guard.counters.as_dict() == {"swallowed": 3, "swallowed.on_end": 3}
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert type(error).__name__ in said[0]
    assert "on_end" in said[0]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_the_wish_to_stop_passes(guard: Guard, stop: type[BaseException]) -> None:
    with pytest.raises(stop):
        guard.wrap("on_end", raising)(stop())
    assert guard.counters.as_dict() == {}


def test_an_endless_recursion_inside_is_swallowed(guard: Guard, capsys: pytest.CaptureFixture[str]) -> None:
    def deeper() -> None:
        deeper()

    guard.wrap("on_end", deeper)()
    assert guard.counters.as_dict()["swallowed"] == 1
    assert "RecursionError" in capsys.readouterr().err


def test_nothing_gets_out_even_with_no_stack_left(guard: Guard) -> None:
    on_end = guard.wrap("on_end", raising)

    def at_the_edge() -> None:
        try:
            at_the_edge()
        except RecursionError:
            pass
        else:
            on_end(ValueError())  # on the way back there is a little more room at every level

    at_the_edge()
    assert guard.counters.as_dict()["swallowed"] >= 1


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even a message")


def test_an_error_without_a_readable_message_is_still_named(guard: Guard, capsys: pytest.CaptureFixture[str]) -> None:
    guard.run("on_end", raising, Unspeakable())
    assert "Unspeakable in on_end" in capsys.readouterr().err


class ClosedStream:
    def write(self, text: str) -> int:
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("stderr", [None, ClosedStream()])
def test_a_missing_or_closed_stderr_hurts_nobody(guard: Guard, monkeypatch: pytest.MonkeyPatch, stderr: object) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    guard.run("on_end", raising, ValueError())
    assert guard.counters.as_dict()["swallowed"] == 1


def test_what_was_counted_is_told_once() -> None:
    counters = Counters("a", "b", "nodes")
    counters.add("a", 2)
    counters.add("nodes")
    assert counters.untold("nodes") == {"a": 2}
    assert counters.untold("nodes") == {}
    counters.add("a")
    counters.add("new")
    assert counters.untold("nodes") == {"a": 1, "new": 1}
    counters.reset()
    counters.add("a")
    assert counters.untold("nodes") == {"a": 1}, "a forked child starts from 0"

"""The queue of deferred writing: in order, bounded, and at the end written or counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from otel_agentrec.capture import deferred
from otel_agentrec.capture.deferred import Deferred
from otel_agentrec.capture.guard import Counters, Guard, Notices


class Queue:
    def __init__(self, limit: int) -> None:
        self.dropped: list[tuple[int, str]] = []
        self.guard = Guard(Counters(), Notices())
        self.queue = Deferred(limit, self.guard, lambda count, reason: self.dropped.append((count, reason)))
        self.done: list[int] = []


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    monkeypatch.setattr(deferred, "LINGER", 0.001)
    yield Queue(1_000)


def test_calls_are_made_in_order_by_one_thread_at_a_time(made: Queue) -> None:
    for n in range(300):
        made.queue.put(made.done.append, n)
    made.queue.finish(5)
    assert made.done == list(range(300)) and not made.dropped


def test_a_full_queue_drops_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "LINGER", 60.0)
    made = Queue(3)
    for n in range(5):
        made.queue.put(made.done.append, n)
    made.queue.finish(1)
    assert made.done == [0, 1, 2] and [count for count, _ in made.dropped] == [1, 1]


def test_the_end_waits_as_long_as_something_moves(made: Queue) -> None:
    for _ in range(20):
        made.queue.put(time.sleep, 0.03)
        made.queue.put(made.done.append, 1)
    time.sleep(0.02)  # the thread is at work
    made.queue.finish(0.1)  # far less than all of it takes
    assert len(made.done) == 20 and not made.dropped


def test_what_is_stuck_at_the_end_is_counted(made: Queue) -> None:
    stuck = threading.Event()
    made.queue.put(stuck.wait, 20)
    time.sleep(0.1)
    for n in range(7):
        made.queue.put(made.done.append, n)
    made.queue.finish(0.05)
    stuck.set()
    assert made.dropped == [(7, "deferred writing was stuck at shutdown")]
    assert made.done == []


def test_an_error_costs_only_its_own_call(made: Queue) -> None:
    made.queue.put(int, "no number")
    made.queue.put(made.done.append, 1)
    made.queue.finish(5)
    assert made.done == [1] and made.guard.counters.as_dict()["swallowed"] == 1


def test_a_call_from_inside_the_work_does_not_wait_for_itself(made: Queue) -> None:
    made.queue.put(made.queue.drain, 20)
    made.queue.put(made.done.append, 1)
    start = time.monotonic()
    made.queue.finish(10)
    assert made.done == [1] and time.monotonic() - start < 5

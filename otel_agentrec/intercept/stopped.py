"""A run that was stopped stays stopped: every further call of it in this process is refused in the same way.

Frameworks catch what a tool raises, tell the model, and let it try again. ``RunStopped`` is no Exception, which gets through
most of them; what calls again all the same meets the same refusal here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from otel_agentrec.errors import RunStopped

__all__ = ["STOPPED", "Stopped"]

MAX_RUNS = 4_096


class Stopped:
    """The runs of this process that were stopped, by root."""

    def __init__(self) -> None:
        self._by_root: OrderedDict[str, RunStopped] = OrderedDict()
        self.first: RunStopped | None = None
        """What stopped the first of them."""
        self.on_stop: list[Callable[[RunStopped], None]] = []
        """Told of every run that is stopped, once."""

    def stop(self, root: str, error: RunStopped) -> RunStopped:
        """Remember why a run was stopped; the first reason counts. Returns what to raise."""
        first = self._by_root.setdefault(root, error)
        error.root = root
        if first is error:
            self.first = self.first or error
            for tell in self.on_stop:
                tell(error)
        while len(self._by_root) > MAX_RUNS:
            self._by_root.popitem(last=False)
        return error if first is error else self._again(first)

    def __contains__(self, root: str) -> bool:
        return root in self._by_root

    def check(self, root: str) -> None:
        """Raise again what stopped this run, if anything did."""
        first = self._by_root.get(root)
        if first is not None:
            raise self._again(first)

    def clear(self) -> None:
        """Forget all, as a new process would."""
        self._by_root.clear()
        self.first = None

    @staticmethod
    def _again(first: RunStopped) -> RunStopped:
        again = type(first).__new__(type(first))
        again.args = first.args
        again.__dict__.update(first.__dict__)
        again.__cause__ = first.__cause__
        return again


STOPPED = Stopped()

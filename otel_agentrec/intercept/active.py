"""Who answers and who watches in this process. Points read it on every call; nothing is kept by a point itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

from otel_agentrec.errors import RunStopped
from otel_agentrec.intercept.protocol import ModelAnswerer, ToolAnswerer, WireObserver

__all__ = ["ACTIVE", "Active", "refusal", "using"]


@dataclass(slots=True)
class Active:
    """``models`` and ``tools`` answer, ``wire`` watches; ``None``: nobody."""

    models: ModelAnswerer | None = None
    tools: ToolAnswerer | None = None
    wire: WireObserver | None = None
    forbid_unknown: bool = False
    """Refuse what no point knows as a model call (replay): any other request of a patched HTTP client."""
    allowed_hosts: frozenset[str] = frozenset()
    """Hosts (``name`` or ``name:port``) that are not refused."""
    refused: Callable[[RunStopped], RunStopped] | None = None
    """Is told what is refused that is no model call; gives what is raised."""


ACTIVE = Active()


@contextmanager
def using(
    *,
    models: ModelAnswerer | None = None,
    tools: ToolAnswerer | None = None,
    wire: WireObserver | None = None,
    forbid_unknown: bool = False,
    allowed_hosts: Iterable[str] = (),
    refused: Callable[[RunStopped], RunStopped] | None = None,
) -> Iterator[Active]:
    """Let these answer and watch until the block ends, in the whole process; then the former ones again."""
    before = replace(ACTIVE)
    _set(Active(models, tools, wire, forbid_unknown, frozenset(allowed_hosts), refused))
    try:
        yield ACTIVE
    finally:
        _set(before)


def refusal(error: RunStopped) -> RunStopped:
    """What to raise where something is refused that is no model call."""
    return error if ACTIVE.refused is None else ACTIVE.refused(error)


def _set(given: Active) -> None:
    for field in fields(Active):
        setattr(ACTIVE, field.name, getattr(given, field.name))

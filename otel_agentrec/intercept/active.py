"""Who answers and who watches in this process. Points read it on every call; nothing is kept by a point itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from otel_agentrec.intercept.protocol import ModelAnswerer, ToolAnswerer, WireObserver

__all__ = ["ACTIVE", "Active", "using"]


@dataclass(slots=True)
class Active:
    """``models`` and ``tools`` answer, ``wire`` watches; ``None``: nobody."""

    models: ModelAnswerer | None = None
    tools: ToolAnswerer | None = None
    wire: WireObserver | None = None
    forbid_unknown: bool = False
    """Refuse what no point knows as a model call (replay): any other request of a patched HTTP client."""


ACTIVE = Active()


@contextmanager
def using(
    *,
    models: ModelAnswerer | None = None,
    tools: ToolAnswerer | None = None,
    wire: WireObserver | None = None,
    forbid_unknown: bool = False,
) -> Iterator[Active]:
    """Let these answer and watch until the block ends, in the whole process; then the former ones again."""
    before = (ACTIVE.models, ACTIVE.tools, ACTIVE.wire, ACTIVE.forbid_unknown)
    ACTIVE.models, ACTIVE.tools, ACTIVE.wire, ACTIVE.forbid_unknown = models, tools, wire, forbid_unknown
    try:
        yield ACTIVE
    finally:
        ACTIVE.models, ACTIVE.tools, ACTIVE.wire, ACTIVE.forbid_unknown = before

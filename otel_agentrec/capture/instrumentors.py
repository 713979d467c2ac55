"""Starting the instrumentations that are installed, as ``opentelemetry-instrument`` does, but in the program's favour.

A program that starts an instrumentation itself, with a provider of its own, would find it started already and its provider
ignored. So its own call wins: ours is taken back first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from otel_agentrec.capture.guard import Guard, log

__all__ = ["start_instrumentors"]

OURS = "agentrec"
"""Our own entry point, which instruments nothing."""


def start_instrumentors(guard: Guard, provider_given: Callable[[Any], object]) -> list[str]:
    """Start every installed instrumentation whose library is there; the names of those that started.

    Args:
        provider_given: told each provider that the program itself gives an instrumentation.
    """
    try:
        from opentelemetry.instrumentation.dependencies import get_dist_dependency_conflicts
        from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]
        from opentelemetry.util._importlib_metadata import entry_points
    except ImportError:
        return []
    disabled = {name.strip() for name in os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")}
    started: list[str] = []
    ours: set[Any] = set()
    for entry_point in entry_points(group="opentelemetry_instrumentor"):
        if entry_point.name in disabled or "*" in disabled or entry_point.name == OURS:
            continue
        try:
            dist = getattr(entry_point, "dist", None)
            if dist is not None and get_dist_dependency_conflicts(dist):
                continue  # its library is not installed, or in a version that it does not know
            instrumentor = entry_point.load()()
            if instrumentor.is_instrumented_by_opentelemetry:
                continue
            instrumentor.instrument(skip_dep_check=True)
            ours.add(instrumentor)
            started.append(entry_point.name)
        except ModuleNotFoundError as error:
            log.debug("instrumentation %s skipped: %s", entry_point.name, error)
        except Exception as error:
            guard.swallow(f"the instrumentation {entry_point.name}", error)
    _let_the_program_win(BaseInstrumentor, ours, guard, provider_given)
    log.debug("instrumentations started: %s", ", ".join(started) or "none")
    return started


def _let_the_program_win(base: Any, ours: set[Any], guard: Guard, provider_given: Callable[[Any], object]) -> None:
    original = base.instrument

    def instrument(self: Any, **kwargs: Any) -> Any:
        for name in ("tracer_provider", "logger_provider"):
            if kwargs.get(name) is not None:
                guard.run("instrument", provider_given, kwargs[name])
        if self in ours:
            if not kwargs:
                return None
            ours.discard(self)
            guard.run("instrument", self.uninstrument)
        return original(self, **kwargs)

    base.instrument = instrument

"""Recording switched on by a declarative configuration file: ``instrumentation/development: {python: {agentrec: {…}}}``.

It instruments nothing. OTel's file configuration refuses span processors by name; but it calls the instrumentors that the
file names, with the options given there, when the providers are set: ours then adds its processors to them.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from otel_agentrec.otel import OTEL_AGENTREC_PATH, say

if TYPE_CHECKING:
    from otel_agentrec.capture.recorder import Recorder

__all__ = ["AgentRecInstrumentor"]


class AgentRecInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Adds the processors to the global providers. Options are settings by name."""

    _recorder: Recorder | None = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: it works in every program."""
        return []

    def instrument(self, **kwargs: Any) -> Any:
        """Start recording, if there is a path. Never raises.

        ``opentelemetry-instrument`` calls every instrumentor that is installed, without options, and says
        ``skip_dep_check``: recording is then for its own entry point to start. Whenever nothing is started, this does not count
        as instrumented, so that a later call still can.
        """
        options = {name: value for name, value in kwargs.items() if name not in _FOR_ALL}
        is_called_by_all = "skip_dep_check" in kwargs
        if options.get("path") is None and (is_called_by_all or not os.environ.get(OTEL_AGENTREC_PATH)):
            return None
        try:
            import otel_agentrec.otel.recording  # noqa: F401 - brings the points of interception
            from otel_agentrec.capture.configure import start_from_environment
            from otel_agentrec.capture.ways import INSTRUMENTOR

            self._recorder = start_from_environment(INSTRUMENTOR, **options)
        except Exception as error:
            say(f"the instrumentor agentrec records nothing: {error}", getattr(error, "hint", ""))
            return None
        return super().instrument(skip_dep_check=True) if self._recorder is not None else None

    def _instrument(self, **kwargs: Any) -> None:
        """All was done before."""

    def _uninstrument(self, **kwargs: Any) -> None:
        from otel_agentrec.capture.ways import INSTRUMENTOR

        if self._recorder is not None and self._recorder.way == INSTRUMENTOR:  # else it only joined in
            self._recorder.shutdown()


_FOR_ALL = ("skip_dep_check", "raise_exception_on_conflict", "tracer_provider", "logger_provider", "meter_provider")
"""Options that callers give to instrumentors of every kind."""

"""What writes a recording."""

from __future__ import annotations

import sys

from opentelemetry.sdk import version

from otel_agentrec._version import __version__

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """What writes the recording."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {"otel-agentrec": __version__, "opentelemetry-sdk": version.__version__, "python": python}

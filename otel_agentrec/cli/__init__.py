"""The command line. One module per command; :mod:`otel_agentrec.cli.app` finds them by name and turns errors into words."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of ``otel-agentrec``."""
    from otel_agentrec.cli.app import run

    sys.exit(run(sys.argv[1:]))

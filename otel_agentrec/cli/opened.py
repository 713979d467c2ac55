"""Open a recording for a command that reads its runs and records, and say on stderr where it can't be read on."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from otel_agentrec.cli.terminal import plain

if TYPE_CHECKING:
    from otel_agentrec.nodes.fold import View

__all__ = ["open_view"]


def open_view(path: str | Path) -> View:
    """The merged view of a recording. A damaged stream is read up to the damage, and a line on stderr says so.

    Raises:
        RecordingNotFound, RecordingUnreadable: there is no recording to look into.
    """
    from otel_agentrec.journal.reader import Recording
    from otel_agentrec.nodes.fold import fold

    recording = Recording(path)
    view = fold(recording)
    for stream in recording.streams():
        if stream.damaged_at is not None:
            where = f"{recording.relative(stream.path)}, line {stream.damaged_at + 1}"
            print(plain(f"damaged: {where}; what follows there is not shown"), file=sys.stderr)
            print(f"  otel-agentrec verify {plain(shlex.quote(str(path)))}", file=sys.stderr)
    return view

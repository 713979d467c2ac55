"""Reading a recording as node records."""

from __future__ import annotations

import os
from collections.abc import Iterator

from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold
from otel_agentrec.records import NodeIoRecord

__all__ = ["read_nodes"]


def read_nodes(recording: str | os.PathLike[str] | Recording, run: str | None = None) -> Iterator[NodeIoRecord]:
    """The node records of a recording in cause order, with all content. Yields as it reads.

    Args:
        recording: a recording directory, a single stream file, or an open Recording.
        run: only records of the run with this id.

    Raises:
        RecordingNotFound: there is no recording at that path.
        RecordingUnreadable: the path can't be read as a recording.
    """
    opened = recording if isinstance(recording, Recording) else Recording(recording)
    return fold(opened).records(run)

"""The events of a recording as OTLP log records, as they would have gone out live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opentelemetry.sdk._logs import ReadableLogRecord

from otel_agentrec.capture.forward.eventrecords import EventRecords
from otel_agentrec.journal.lines import lines, open_lines
from otel_agentrec.journal.reader import Recording, StreamFile, event_of

__all__ = ["ExportedEvents"]


class ExportedEvents:
    """The events of the processes' streams; those of sessions and of the index, which tell of these, are not among them.

    A line that does not fit the chain ends its stream here: what was changed is not passed on as what was recorded.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._records = EventRecords({"service.name": "otel-agentrec"})

    def __len__(self) -> int:
        """How many there are."""
        return sum(last.seq + 1 for stream in self.recording.streams() if (last := stream.last()) is not None)

    def records(self, after: Mapping[str, int] | None = None) -> Iterator[tuple[str, int, ReadableLogRecord]]:
        """(stream, seq, record), stream by stream in order.

        Args:
            after: stream -> seq of its last event that is not wanted any more.
        """
        for stream in self.recording.streams():
            yield from self._of(stream, (after or {}).get(stream.name, -1))

    def _of(self, stream: StreamFile, after: int) -> Iterator[tuple[str, int, ReadableLogRecord]]:
        prev = None
        with open_lines(stream.path) as file:
            for _, line in lines(file):
                event = event_of(line.removesuffix(b"\n")) if line.endswith(b"\n") else None
                if event is None or (prev is not None and event.prev_hash != prev):
                    return
                prev = event.hash
                if event.seq > after:
                    made = self._records.of_line(line, event.stream, event.seq, event.hash, event.prev_hash, event.ts)
                    yield stream.name, event.seq, made

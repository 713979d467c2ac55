"""Files of node records -> the stream that an ingest writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from otel_agentrec.capture.ingest_out import Out
from otel_agentrec.capture.ingest_report import IngestReport
from otel_agentrec.capture.jsonlines import lines
from otel_agentrec.capture.noderecords import DIALECT, NotARecord, Told, events_of, record_of
from otel_agentrec.capture.otlp import OtlpFile
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.redaction import Redactor

__all__ = ["RecordFiles"]

Advance = Callable[[int], None]


class RecordFiles:
    """Read twice: a record counts as it was told last, and one that was merged into another one later is gone."""

    def __init__(self, files: Sequence[OtlpFile], report: IngestReport, redactor: Redactor) -> None:
        self._files, self._report, self._redactor = files, report, redactor
        self._last: dict[str, tuple[int, int]] = {}
        self._merged: set[str] = set()
        self.faults = 0

    def survey(self, advance: Advance | None) -> None:
        """Pass 1: which lines count."""
        for place, record in self._records(advance, tell=True):
            self._last[record.record_id] = place
            self._merged.update(record.merged_span_ids)

    def write(self, out: Out, advance: Advance | None) -> None:
        """Pass 2.

        Raises:
            AgentRecError: the stream can't be written any more.
        """
        if self.faults:
            out.dropped(self.faults, "ingest: no readable node record")
        for place, record in self._records(advance):
            if self._last.get(record.record_id) != place or record.span_id in self._merged:
                continue
            told = Told(record)
            header = out.header(told.facts, DIALECT)
            if header is not None:
                told.event.payload["header"] = header
            out.append(told.event)
            for judged in events_of(record):
                out.append(judged)
            self._report.records += 1
            if record.node_type is NodeType.MODEL:
                self._report.models += 1
            else:
                self._report.tools += 1

    def _records(self, advance: Advance | None, tell: bool = False) -> Iterator[tuple[tuple[int, int], NodeIoRecord]]:
        for n, file in enumerate(self._files):
            for line in lines(file, advance):
                try:
                    yield (n, line.place), record_of(line)
                except NotARecord as e:
                    if tell:
                        self.faults += 1
                        self._report.quarantine(file.path, line.place, [self._redactor.text(str(e))])

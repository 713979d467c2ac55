"""Files -> a recording. What live capture writes as it happens is written here from OTLP files, as one new stream. Node
records go into the same stream, event logs of sessions into streams of their own.

Two passes: the first learns who stands above whom and sets log records aside for their spans, the second writes. Memory
grows with the number of spans, not with what they say.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from otel_agentrec.capture import dialects, evaluations
from otel_agentrec.capture.ambient import session_in
from otel_agentrec.capture.conversations.book import Book
from otel_agentrec.capture.conversations.recorded import write_sessions
from otel_agentrec.capture.ingest_out import Out
from otel_agentrec.capture.ingest_records import RecordFiles
from otel_agentrec.capture.ingest_report import IngestReport, Quarantined
from otel_agentrec.capture.ingest_sessions import EventLogs
from otel_agentrec.capture.jsonlines import KINDS, kind_of
from otel_agentrec.capture.otlp import OtlpFile
from otel_agentrec.capture.spans import LogView, SpanView
from otel_agentrec.capture.spill import LogSpill
from otel_agentrec.capture.steps import StepEvent, ended_event, log_event, take_attempts
from otel_agentrec.capture.survey import Survey
from otel_agentrec.errors import AgentRecError, UsageError
from otel_agentrec.journal.draft import ContentMode
from otel_agentrec.journal.facts import Facts, Kind
from otel_agentrec.journal.gate import Gate
from otel_agentrec.redaction import Redactor
from otel_agentrec.settings import Settings

__all__ = ["IngestReport", "Quarantined", "Sink", "ingest", "kind_and_session", "write_step"]


def ingest(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    content: ContentMode | None = None,
    redact: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> IngestReport:
    """Record files in a recording: OTLP (traces and logs), node records, event logs of sessions. What a file is shows in it.

    Args:
        paths: files of OTLP/JSON lines or protobuf; of node records, one JSON object a line (ai4j's, or those of
            ``JsonlIoCaptureSink``); of session events (ToyAgent's), plain or sealed to a chain. Each plain or gzip. Traces and
            logs of one run may stand in separate files: give them together.
        out: the recording directory; made when it does not exist.
        content: ``detached``, ``inline`` or ``off``; default: as the settings say (``OTEL_AGENTREC_CONTENT``).
        redact: rules that take secrets out of what is recorded, as in the settings (``OTEL_AGENTREC_REDACT``).
        progress: called with (bytes done, bytes in all).

    Raises:
        UsageError: a path can't be read, or holds nothing of these kinds at all; nothing was written.
        AgentRecError: ``out`` can't be written (any more). What was written by then is a valid, unsealed stream.
    """
    settings = Settings.load(content=content, redact=redact)
    redactor = Redactor.from_setting(settings.redact)
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not listed:
        raise UsageError("no files to ingest", "give one or more OTLP files")
    files = [OtlpFile(path) for path in listed]
    for file in files:
        if file.path.resolve().parent == Path(out).resolve():
            raise UsageError(
                f"{file.path} lies in {out}, where the recording is to go", "give a directory of its own (--out)"
            )
    advance = _meter(sum(f.size for f in files), progress)
    report = IngestReport(files=len(files))
    kinds = [kind_of(file) for file in files]
    otlp, records, logs = ([f for f, k in zip(files, kinds, strict=True) if k == kind] for kind in KINDS)
    told = RecordFiles(records, report, redactor)
    sessions = EventLogs(logs, report, settings, redactor)
    with LogSpill() as spill:
        survey = _survey(otlp, spill, report, advance, redactor, settings)
        unread = report.quarantined_count
        told.survey(advance)
        sessions.survey(advance)
        if otlp or records:
            with Out(Path(out), settings, redactor) as sink:
                _write(otlp, unread, survey, spill, sink, report, advance)
                told.write(sink, advance)
                report.stream = sink.stream
            if sink.names_sessions and settings.sessions and settings.content != "off":
                _write_sessions(Path(out), report, settings, redactor)
        sessions.write(Path(out), advance)
    return report


def _write_sessions(directory: Path, report: IngestReport, settings: Settings, redactor: Redactor) -> None:
    book = Book(directory, settings.host, Gate(redactor), cast(ContentMode, settings.content))
    assert report.stream is not None
    try:
        report.session_events, report.sessions = write_sessions(directory, report.stream, book)
    except OSError as e:
        raise AgentRecError(
            f"the sessions of {directory} can't be written: {e.strerror or e}",
            "make room and ingest again: what is there already counts once",
        ) from e


def _meter(size: int, progress: Callable[[int, int], None] | None) -> Callable[[int], None] | None:
    """Every byte is read twice."""
    if progress is None:
        return None
    done = 0

    def advance(read: int) -> None:
        nonlocal done
        done = min(done + read, 2 * size)
        progress(done, 2 * size)

    return advance


def _survey(
    files: Sequence[OtlpFile],
    spill: LogSpill,
    report: IngestReport,
    advance: Callable[[int], None] | None,
    redactor: Redactor,
    settings: Settings,
) -> Survey:
    """Pass 1. Raises UsageError for a file that holds no OTLP, before anything is written."""
    survey = Survey()
    only_metrics: list[OtlpFile] = []
    for file in files:
        known = useful = metrics = False
        first = ""
        for batch in file.batches(advance):
            known, metrics = known or batch.known, metrics or batch.metrics > 0
            useful = useful or bool(batch.spans or batch.logs)
            faults = [redactor.text(fault) for fault in batch.faults]  # they may quote what they could not read
            first = first or next(iter(faults), "")
            report.quarantine(file.path, batch.place, faults)
            for span in batch.spans:
                survey.add(span, *kind_and_session(span, _reading(span), settings))
            for log in batch.logs:
                if log.trace_id and log.span_id and dialects.log_use(log.event_name) == "join":
                    _set_aside(spill, log)
        if not known:
            why = f": {first.removeprefix('no OTLP: ')}" if first else ""
            raise UsageError(
                f"{file.path} holds no OTLP{why}",
                "give what the Collector's file exporter writes, or another OTLP exporter: JSON lines with resourceSpans or "
                "resourceLogs, or protobuf",
            )
        if metrics and not useful:
            only_metrics.append(file)
    if files and len(only_metrics) == len(files):
        raise UsageError(
            f"{only_metrics[0].path} holds only metrics",
            "agent steps are in traces and logs: give those files",
        )
    report.notes += [f"{file.path} holds only metrics: nothing in it to record" for file in only_metrics]
    return survey


def _reading(span: SpanView) -> dialects.Reading | None:
    try:
        return dialects.read(span)
    except Exception:  # counted where it was to be written
        return None


def kind_and_session(
    span: SpanView, reading: dialects.Reading | None, settings: Settings
) -> tuple[str | None, str | None]:
    """What a survey keeps of a span: its kind, None when it is no step, and the session that it tells."""
    told = session_in(span.attributes, settings.session_attribute, span.scope)
    return (None, told) if reading is None else (reading[0], reading[1].session_id or told)


def _set_aside(spill: LogSpill, log: LogView) -> None:
    try:
        spill.add(log)
    except OSError as e:
        raise AgentRecError(
            f"log records can't be set aside: {e.strerror or e}", "make room in the temporary directory (TMPDIR)"
        ) from e


def _write(
    files: Sequence[OtlpFile],
    unread: int,
    survey: Survey,
    spill: LogSpill,
    sink: Out,
    report: IngestReport,
    advance: Callable[[int], None] | None,
) -> None:
    """Pass 2."""
    if unread:
        sink.dropped(unread, "ingest: no readable OTLP")
    for links in survey.links():
        sink.links(links)
    lost: Counter[str] = Counter()
    told: set[tuple[str, str]] = set()
    for file in files:
        for batch in file.batches(advance):
            for span in batch.spans:
                report.spans += 1
                joined = spill.of(span.trace_id, span.span_id)
                try:
                    reading = dialects.read(span, joined)
                except Exception as e:
                    lost[f"ingest: {type(e).__name__} in a dialect"] += 1
                    continue
                if reading is None:
                    report.foreign += 1
                    continue
                write_step(span, reading, survey, sink)
                _count(reading[0], report)
                left = dialects.unread(reading, joined)
                if left and (span.trace_id, span.span_id) not in told:
                    told.add((span.trace_id, span.span_id))  # the span may come again
                    for log in left:
                        write_log(log, sink)
                    report.logs_recorded += len(left)
            for log in batch.logs:
                report.logs += 1
                use = dialects.log_use(log.event_name)
                if use == "keep" or (use == "join" and not survey.is_step(log.trace_id, log.span_id)):
                    write_log(log, sink)
                    report.logs_recorded += 1
    for reason, count in lost.items():
        sink.dropped(count, reason)


class Sink(Protocol):
    """Where steps go. ``append`` gives the seq of an event; ``provider`` and ``header`` that of one that holds
    this; ``header`` None when the facts have nothing of the kind."""

    settings: Settings

    def append(self, event: StepEvent, resource: Mapping[str, Any] | None = None) -> int | None: ...
    def provider(self, resource: Mapping[str, Any]) -> int | None: ...
    def header(self, facts: Facts, scope: str) -> int | None: ...


def write_step(span: SpanView, reading: dialects.Reading, survey: Survey, sink: Sink) -> None:
    """Write what one ended span tells, with what the spans around it tell of it."""
    kind, facts = reading
    if facts.session_id is None and sink.settings.session_attribute:
        told = span.attributes.get(sink.settings.session_attribute)
        facts.session_id = None if told is None else str(told)
    facts.session_id = facts.session_id or survey.session_above(span)
    via: Sequence[str] = ()
    if kind in (Kind.MODEL, Kind.TOOL):
        attempts = survey.attempts(span)
        via = attempts.via
        if kind == Kind.MODEL:
            take_attempts(facts, attempts)
    provider = sink.provider(span.resource)
    header = sink.header(facts, span.scope)
    outermost = kind != Kind.AGENT or survey.is_outermost(span)
    sink.append(ended_event(span, kind, facts, outermost=outermost, header=header, provider=provider, via=via))
    for evaluated in evaluations.of_span(span):
        sink.append(evaluated)


def write_log(log: LogView, sink: Sink) -> None:
    """Write a log record that no span took: as a judgement, as what it tells of some model call, or as it is."""
    evaluated = evaluations.of_log(log)
    try:
        facts = dialects.told(log) if evaluated is None else None
    except Exception:  # it is recorded as it is
        facts = None
    header = sink.header(facts, log.scope) if facts is not None else None
    sink.append(evaluated or log_event(log, facts, header=header), log.resource)


def _count(kind: str, report: IngestReport) -> None:
    if kind == Kind.MODEL:
        report.models += 1
    elif kind == Kind.TOOL:
        report.tools += 1
    elif kind == Kind.AGENT:
        report.agents += 1
    else:
        report.steps += 1

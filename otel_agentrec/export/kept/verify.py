"""Verify: a recording, what another system kept of one, or both against each other."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otel_agentrec.audit import verify as own
from otel_agentrec.audit.report import CONTRADICTED, LEVELS, OK, UNPROVEN, VerifyReport
from otel_agentrec.audit.structure import printable
from otel_agentrec.errors import UsageError
from otel_agentrec.journal.check import Fault
from otel_agentrec.journal.reader import Recording, looks_like_stream

if TYPE_CHECKING:  # readers of OTLP and the fold take longer to load than a small recording takes to verify
    from otel_agentrec.export.kept.compare import Compared
    from otel_agentrec.export.kept.reading import KeptFile

__all__ = ["verify"]

Json = Any
PathLike = str | os.PathLike[str]


def verify(
    recording: Recording | PathLike | Sequence[PathLike],
    *,
    level: str | None = None,
    content: bool = True,
    keys: Iterable[str] = (),
    policy: PathLike | None = None,
    against: PathLike | Iterable[PathLike] = (),
    shared: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Verify a recording, or event records that another system kept of one.

    Args:
        recording: path of the directory or ``.jsonl`` file; or of one or more files of a Collector with event records.
        level: ``chained`` (bytes, hashes, content, index), ``structured`` (default: also numbers, origin, opening and
            close, starts and ends, what was dropped), ``signed`` (needs checkpoints) or ``anchored`` (needs ``against``, and
            every event must be sealed by what agrees).
        content: check the content files too.
        keys, policy: public keys to check checkpoints with (asks for ``signed``).
        against: files of other systems (a Collector's file exporter, an answer of Jaeger's API). Each stamp of a span, event
            record and checkpoint in them must equal the line in the recording, else the exit code is 4.
        shared: ``against`` also holds marks of other recordings: those of streams that this one does not know don't count.
        progress: called with (bytes done, bytes in all) of the files of other systems.

    Returns:
        The report; see :class:`VerifyReport` for its exit codes.

    Raises:
        RecordingNotFound, RecordingUnreadable: there is nothing to verify.
        UsageError: an unknown level; a file of ``against`` that can't be read.
    """
    if level is not None and level not in LEVELS:
        raise UsageError(f"unknown level {level!r}", f"one of: {', '.join(LEVELS)}")
    witnesses = [against] if isinstance(against, (str, os.PathLike)) else list(against)
    kept = _kept_files(recording)
    if kept:
        if witnesses:
            raise UsageError(
                f"{kept[0].path} is no recording", "give the recording first: otel-agentrec verify REC --against FILE"
            )
        from otel_agentrec.export.kept.chain import verify_kept

        found = verify_kept(kept, structured=level != "chained", progress=_meter(kept, progress))
        if found.exit_code == OK and (level in ("signed", "anchored") or list(keys) or policy is not None):
            hint = "event records hold no signature, and only a recording can be compared with what others kept"
            return dataclasses.replace(found.failed("checkpoint_missing", hint=hint), file=None, end=found.end)
        return found
    (path,) = [recording] if isinstance(recording, (str, os.PathLike, Recording)) else recording
    if not witnesses:
        return own.verify(path, level=level, content=content, keys=keys, policy=policy)
    from otel_agentrec.export.kept.compare import compare
    from otel_agentrec.export.kept.reading import KeptFile

    files = [KeptFile(witness) for witness in witnesses]  # what can't be read is said before the long work begins
    opened = path if isinstance(path, Recording) else Recording(path)
    compared = compare(opened, files, shared=shared, progress=_meter(files, progress))
    asked = None if level == "anchored" else level
    report = own.verify(path, level=asked, content=content, keys=keys, policy=policy)
    return _with(report, compared, anchored=level == "anchored")


def _meter(files: Sequence[KeptFile], progress: Callable[[int, int], None] | None) -> Callable[[int], None] | None:
    if progress is None:
        return None
    done, size = 0, sum(file.size for file in files)

    def advance(read: int) -> None:
        nonlocal done
        done += read
        progress(min(done, size), size)

    return advance


def _kept_files(given: Recording | PathLike | Sequence[PathLike]) -> list[KeptFile]:
    """The files of another system, when it is those that were given and no recording."""
    if isinstance(given, Recording):
        return []
    named = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if not named:
        raise UsageError("nothing to verify", "give a recording, or a file with event records")
    paths = [Path(path) for path in named if os.fspath(path)]
    if len(named) == 1 and not (paths and _may_be_kept(paths[0])):
        return []
    for path in paths:
        if not _may_be_kept(path) and path.exists():
            raise UsageError(
                f"{path} is a recording: one at a time", "several files at once are those of a Collector's rotation"
            )
    from otel_agentrec.export.kept.reading import KeptFile

    return [KeptFile(path) for path in paths]


def _may_be_kept(path: Path) -> bool:
    """Whether a path is a file with something in it that is no stream of a recording."""
    try:
        if not path.is_file() or path.stat().st_size == 0 or path.name.endswith(".content.jsonl"):
            return False
    except (OSError, ValueError):
        return False
    return not looks_like_stream(path)


def _with(report: VerifyReport, compared: Compared, *, anchored: bool) -> VerifyReport:
    """A recording's own report with what the comparison says."""
    streams = report.streams
    if streams is not None:
        streams = tuple(_covered(stream, compared) for stream in streams)
        level = "anchored" if streams and all(stream.level == "anchored" for stream in streams) else report.level
        report = dataclasses.replace(report, streams=streams, covers=_covers(report, streams), level=level)
    else:
        report = _covered(report, compared)
    report = dataclasses.replace(report, against=compared.to_json())
    for name, count in compared.by_pruned.items():
        hint = f"{count} marks of it were kept; that it was pruned only the recording's own index says"
        report = report.warned("pruned", f"{printable(name)}.jsonl", hint, count=count)
    if compared.differences:
        return _contradicted(report, compared)
    if not compared.checked:
        hint = f"no stamp, event record or checkpoint of this recording is in {', '.join(compared.files)}: nothing was compared"
        if report.exit_code == OK:
            return _unwitnessed(report, hint)
        return report.warned("unwitnessed", None, hint)
    if report.exit_code != OK:
        return report
    if anchored:
        alone = {r.file: sum(b - a for a, b in r.covers.get("chainedOnly", ())) for r in streams or (report,)}
        if any(alone.values()):
            where = ", ".join(f"{count} in {name}" for name, count in alone.items() if count)
            return _unwitnessed(report, f"level anchored: nobody else has seen {where} (of {report.events} events)")
    return report


def _unwitnessed(report: VerifyReport, hint: str) -> VerifyReport:
    """All is well in itself, its end too, but what was asked for is not proven."""
    return dataclasses.replace(report.failed("unwitnessed", hint=hint), file=None, end=report.end)


def _contradicted(report: VerifyReport, compared: Compared) -> VerifyReport:
    first = compared.differences[0]
    where = "" if first.stream is None else f"{first.stream}, " + ("" if first.seq is None else f"event {first.seq}: ")
    fault = Fault(
        first.kind, -1 if first.seq is None else first.seq, 0, f"{where}{first.hint} ({first.place})", first.seq,
        first.kept, first.recorded,
    )  # fmt: skip
    if report.exit_code == CONTRADICTED:  # what the recording says against itself comes first
        return report
    report = dataclasses.replace(report, file=None if first.stream is None else f"{first.stream}.jsonl")
    return dataclasses.replace(report.failed(first.kind, fault), byte_offset=None)


def _covered(report: VerifyReport, compared: Compared) -> VerifyReport:
    """A stream's report in which the events that somebody else's copy seals are ``anchored``."""
    name = (report.file or "").removesuffix(".content.jsonl").removesuffix(".jsonl")
    upto = min(compared.upto.get(name, 0), report.events)
    if not upto or report.exit_code not in (OK, UNPROVEN):
        return report
    covers = {
        "anchored": [[0, upto]],
        "signed": [],
        "chainedOnly": [[upto, report.events]] if upto < report.events else [],
    }
    return dataclasses.replace(report, covers=covers, level="anchored" if upto == report.events else report.level)


def _covers(report: VerifyReport, streams: Sequence[VerifyReport]) -> dict[str, list[list[int]]]:
    """A directory shows the ranges of the stream that its verdict speaks of."""
    return next(
        (stream.covers for stream in streams if stream.file == report.file), streams[0].covers if streams else {}
    )

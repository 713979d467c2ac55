"""Compare a recording with what other systems kept of it: each stamp, event record and checkpoint must equal its line.

What agrees proves more than itself: a line's hash seals all lines before it, so a stream is witnessed up to the last line
that somebody else has the hash of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from otel_agentrec.audit.index import steady_index
from otel_agentrec.audit.structure import printable
from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.export.kept.reading import BrokenMark, Checkpoint, EventRecord, KeptFile
from otel_agentrec.journal.chain import link_hash
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.reader import Recording, StreamFile
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.sound import given_of, where_of
from otel_agentrec.records import record_id_of_span

__all__ = ["Compared", "Difference", "compare"]

Json = Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which a recording and a kept mark differ.

    Args:
        kind: ``history_rewritten`` (another line stands there), ``rolled_back`` (the line or stream is not there),
            ``anchor_invalid`` (the mark does not fit itself, or can't be read).
        what: ``hash``, ``prev_hash``, ``record_id``, ``event``, ``stream``, ``mark``.
        stream, seq: the event that the mark speaks of; None where it does not say.
        kept, recorded: both values; None where there is none.
        place: where the mark was read.
    """

    kind: str
    what: str
    stream: str | None
    seq: int | None
    kept: str | None
    recorded: str | None
    place: str
    hint: str = ""

    def to_json(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "what": self.what,
            "stream": self.stream,
            "seq": self.seq,
            "kept": self.kept,
            "recorded": self.recorded,
            "place": self.place,
            "hint": self.hint,
        }


@dataclass(slots=True)
class Compared:
    """What the comparison gave.

    ``spans``, ``events``, ``checkpoints``: marks that were read, copies of one counted once; ``others``: those of streams that
    the recording does not have and that were not held against it; ``pruned``: those of streams that were pruned.
    ``nodes``: calls of the recording; ``witnessed``: those whose own stamp or event record agrees; ``covered``: those in a line
    that a later agreeing mark seals, their own included. ``upto``: stream -> number of its events that are so sealed;
    ``by_pruned``: pruned stream -> number of its marks.
    """

    files: tuple[str, ...] = ()
    spans: int = 0
    events: int = 0
    checkpoints: int = 0
    others: int = 0
    pruned: int = 0
    nodes: int = 0
    witnessed: int = 0
    covered: int = 0
    foreign: int = 0
    unread: int = 0
    upto: dict[str, int] = field(default_factory=dict)
    by_pruned: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def checked(self) -> int:
        """Marks that were held against the recording."""
        return self.spans + self.events + self.checkpoints - self.others - self.pruned

    def to_json(self) -> dict[str, Json]:
        return {
            "files": list(self.files),
            "checked": self.checked,
            "spans": self.spans,
            "events": self.events,
            "checkpoints": self.checkpoints,
            "others": self.others,
            "pruned": self.pruned,
            "nodes": self.nodes,
            "witnessed": self.witnessed,
            "covered": self.covered,
            "foreign": self.foreign,
            "unread": self.unread,
            "upto": dict(self.upto),
            "differences": [d.to_json() for d in self.differences],
        }


class _Said(NamedTuple):
    """What one mark says of a line; None where it says nothing of it."""

    hash: str
    prev_hash: str | None
    record_id: str | None


_ByStream = dict[str, dict[int, dict[_Said, str]]]
"""Stream -> seq -> what was said of it -> the first place where."""


def compare(
    recording: Recording,
    files: Iterable[KeptFile],
    *,
    shared: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Compared:
    """Compare.

    Args:
        files: are read before the recording is: what they hold must be in it by then, also when it is being written.
        shared: the files also hold marks of other recordings: those of streams that this one does not know don't count.
            A single stream is always compared with its own marks only.
        progress: called with the number of bytes of the files that were read since the last call.

    Raises:
        UsageError, RecordingUnreadable: a file can't be read, or is nothing that another system keeps.
    """
    files = list(files)
    out = Compared(files=tuple(str(file.path) for file in files))
    said = _read(files, out, progress)
    streams = _streams(recording)
    pruned = _pruned(recording)
    agreed: set[tuple[str, int]] = set()
    for name, lines in said.items():
        stream = streams.get(name)
        count = sum(map(len, lines.values()))
        if stream is not None:
            _compare_stream(stream, lines, agreed, out)
        elif name in pruned:
            out.pruned += count
            out.by_pruned[name] = count
        elif shared or recording.single is not None:
            out.others += count
        else:
            seq = max(lines)
            hint = "the stream was removed, or is of another recording (--shared passes over those)"
            place = next(iter(lines[seq].values()))
            out.differences.append(
                Difference("rolled_back", "stream", printable(name), seq, f"{count} marks of it", None, place, hint)
            )
    _count_nodes(recording, agreed, out)
    return out


def _read(files: Iterable[KeptFile], out: Compared, progress: Callable[[int], None] | None) -> _ByStream:
    said: _ByStream = {}
    for file in files:
        for mark in file.marks(progress):
            if isinstance(mark, BrokenMark):
                out.differences.append(_unfit(mark.what, mark.stream, mark.seq, mark.place))
                continue
            if isinstance(mark, EventRecord):
                if link_hash(mark.prev_hash, mark.body) != mark.hash:
                    what = "the event record does not fit its own hash: it was changed after it was sealed"
                    out.differences.append(_unfit(what, mark.stream, mark.seq, mark.place))
                    continue
                seq, words = mark.seq, _Said(mark.hash, mark.prev_hash, None)
            elif isinstance(mark, Checkpoint):
                seq, words = mark.size - 1, _Said(mark.hash, None, None)
            else:
                seq, words = mark.seq, _Said(mark.hash, mark.prev_hash, mark.record_id)
            known = said.setdefault(mark.stream, {}).setdefault(seq, {})
            if words in known:
                continue
            known[words] = mark.place
            out.events += isinstance(mark, EventRecord)
            out.checkpoints += isinstance(mark, Checkpoint)
            out.spans += not isinstance(mark, (EventRecord, Checkpoint))
        out.foreign += file.foreign
        out.unread += file.unread
    return said


def _unfit(hint: str, stream: str | None, seq: int | None, place: str) -> Difference:
    return Difference("anchor_invalid", "mark", printable(stream), seq, None, None, place, hint)


def _compare_stream(
    stream: StreamFile, lines: Mapping[int, Mapping[_Said, str]], agreed: set[tuple[str, int]], out: Compared
) -> None:
    left = dict(lines)
    last = -1
    # lines that are not whole are passed over: what is wrong with them is for the recording's own verification to say
    for event in stream.events(skip_broken=True):
        last = max(last, event.seq)
        words = left.pop(event.seq, None)
        for one, place in (words or {}).items():
            found = list(_differences(event, one, place))
            out.differences += found
            if not found:
                agreed.add((stream.name, event.seq))
                out.upto[stream.name] = max(out.upto.get(stream.name, 0), event.seq + 1)
        if not left:
            return
    for seq in sorted(left):
        for one, place in left[seq].items():
            hint = (
                f"the recording's last whole line of it is {last}: its end was cut off"
                if seq > last
                else "the line was taken out, or is no longer whole"
            )
            out.differences.append(
                Difference("rolled_back", "event", printable(stream.name), seq, one.hash, None, place, hint)
            )


def _differences(event: Event, said: _Said, place: str) -> Iterator[Difference]:
    """In what a line and a mark differ: the hash tells of everything, so the rest is only told where it is the same."""

    def one(kind: str, what: str, kept: str, recorded: str, hint: str) -> Difference:
        return Difference(kind, what, printable(event.stream), event.seq, printable(kept), recorded, place, hint)

    if said.hash != event.hash:
        yield one(
            "history_rewritten", "hash", said.hash, event.hash, "another line stands there than the one that was sent"
        )
    elif said.prev_hash is not None and said.prev_hash != event.prev_hash:
        yield one(
            "anchor_invalid", "prev_hash", said.prev_hash, event.prev_hash, "the mark was changed: its hash is right"
        )
    elif said.record_id is not None and said.record_id not in (ids := _record_ids(event)):
        yield one("anchor_invalid", "record_id", said.record_id, ids[0], "the mark was changed: its hash is right")


def _record_ids(event: Event) -> list[str]:
    """The ids under which the step of an event is known: as its span gives it, and as it was given."""
    where = where_of(event)
    given = given_of(event).get("recordId")
    return [record_id_of_span(where.trace, where.span), *([given] if isinstance(given, str) else [])]


def _streams(recording: Recording) -> dict[str, StreamFile]:
    found = [*recording.streams(), *recording.sessions()]
    if recording.single is None and recording.index is not None:
        found.append(recording.index)
    return {stream.name: stream for stream in found}


def _pruned(recording: Recording) -> set[str]:
    if recording.index is None:
        return set()
    try:
        return steady_index(recording.index).pruned
    except RecordingUnreadable:
        return set()


def _count_nodes(recording: Recording, agreed: set[tuple[str, int]], out: Compared) -> None:
    for span in fold(recording).leading:
        out.nodes += 1
        out.witnessed += (span.stream, span.seq) in agreed
        out.covered += span.seq < out.upto.get(span.stream, 0)

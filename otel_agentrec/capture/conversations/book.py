"""Writes what calls add to sessions, each under the lock of its session's stream.

Several processes may write one session. What a process remembers of it counts only while the stream ends where it left it;
else the events since then are read first.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from pathlib import Path
from typing import Any

from otel_agentrec._version import __version__
from otel_agentrec.capture.conversations.call import Answered, Call
from otel_agentrec.capture.conversations.messages import Reading
from otel_agentrec.capture.conversations.story import Plan, Story
from otel_agentrec.journal.canonical import canonical_any, from_canonical
from otel_agentrec.journal.draft import ContentMode
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.named import NamedStream
from otel_agentrec.journal.reader import Resolver, StreamFile
from otel_agentrec.journal.sessions import open_session, seal_session, stream_of

__all__ = ["Book"]

Json = Any
MAX_SESSIONS = 256
"""Sessions whose end is remembered."""
MAX_HEADERS = 64


class Book:
    """The sessions of one recording. Not thread-safe.

    Args:
        directory: of the recording.
        origin: name of the writing host.
        gate: what everything passes that is written.
    """

    def __init__(self, directory: Path, origin: str, gate: Gate, mode: ContentMode = "detached") -> None:
        self._directory, self._origin, self._gate, self._mode = directory, origin, gate, mode
        self.reading = Reading(gate)
        self._stories: OrderedDict[str, Story] = OrderedDict()
        self._headers: OrderedDict[bytes, bytes] = OrderedDict()

    def tell(self, call: Call) -> int:
        """Append what is new in a call; -> how many events.

        Raises:
            AgentRecError: the session can't be written: locked for long, or damaged.
            OSError: nothing was written.
        """
        assert call.session is not None
        header = self._digest(call.header)
        known = self._stories.get(call.session)
        if known is not None and known.is_silent:
            return 0
        with self._open(call.session) as stream:
            story = self._current(call.session, stream)
            plan = None if story.is_silent else story.plan(call, header)
            return 0 if plan is None else self._write(story, stream, plan, call)

    def results(self, session: str, answered: dict[str, Answered]) -> int:
        """Append results of tools that no model call told of; -> how many events. Raises as :meth:`tell`."""
        known = self._stories.get(session)
        if known is None or known.is_silent or not any(answered.keys() & lane.asked for lane in known.lanes.values()):
            return 0
        done = 0
        with self._open(session) as stream:
            story = self._current(session, stream)
            for plan in () if story.is_silent else story.results(answered):
                done += self._write(story, stream, plan)
        return done

    def seal(self) -> None:
        """Say of each session that this is its end for now; any process may still go on with it. Raises as :meth:`tell`."""
        while self._stories:
            self._seal(self._stories.popitem(last=False)[1])

    def _seal(self, story: Story) -> None:
        if story.is_silent or story.is_sealed or not story.is_started:
            return
        with self._open(story.session) as stream:
            if (stream.tail.size, stream.tail.hash) == (story.size, story.hash):  # else somebody else is at it
                seal_session(self._directory, stream, origin=self._origin)

    def _open(self, session: str) -> Any:
        opened = {"sdk": {"name": "otel-agentrec", "version": __version__}}
        return open_session(
            self._directory, self._name(session), origin=self._origin, gate=self._gate, mode=self._mode, opened=opened
        )

    def _name(self, session: str) -> str:
        """The id as it may stand in the name of a file."""
        return self._gate.identifier(session) or session

    def _current(self, session: str, stream: NamedStream) -> Story:
        """What the session holds now."""
        story = self._stories.pop(session, None)
        if story is None or story.size > stream.tail.size:
            story = Story(session, self.reading)
        if (story.size, story.hash) != (stream.tail.size, stream.tail.hash):
            story = self._read(story, session)
        self._stories[session] = story
        if len(self._stories) > MAX_SESSIONS:
            self._seal(self._stories.popitem(last=False)[1])
        return story

    def _read(self, story: Story, session: str) -> Story:
        name = stream_of(self._name(session))
        file = StreamFile(name, self._directory / f"{name}.jsonl")
        with Resolver(file) as resolver:
            for event in file.events(story.size):
                if event.seq == story.size and story.size and event.prev_hash != story.hash:
                    return self._read(Story(session, self.reading), session)  # another history than the one we knew
                event.payload.update(resolver.resolve(event))
                story.read(event)
        return story

    def _write(self, story: Story, stream: NamedStream, plan: Plan, call: Call | None = None) -> int:
        done = stream.append(plan.events)
        story.done(plan, stream.tail.size, stream.tail.hash, call)
        return len(done)

    def _digest(self, header: dict[str, Json]) -> bytes:
        """Stands for a header as the journal will hold it."""
        raw = blake2b(canonical_any(header), digest_size=16).digest()
        known = self._headers.get(raw)
        if known is None:
            kept = from_canonical(canonical_any(self._gate.payload("REQUEST_HEADER", header)))
            known = self._headers[raw] = Story.digest(kept)
            if len(self._headers) > MAX_HEADERS:
                self._headers.popitem(last=False)
        return known

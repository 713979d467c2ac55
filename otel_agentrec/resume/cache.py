"""``ResumeCache``: was this done before, and with what result? (The seed's; docs/cache.md.)

It knows nothing of runs and proves nothing: a call that is not in it may have happened all the same. What must never
happen twice belongs to the effect ledger.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from otel_agentrec.nodes.inert import inert_of
from otel_agentrec.nodes.keys import KeyRing
from otel_agentrec.nodes.whole import lost_in
from otel_agentrec.records import NodeIoRecord, NodeType
from otel_agentrec.resume.entries import DEFAULT_INERT, Entry, Hit, entry_of
from otel_agentrec.resume.flights import Flights
from otel_agentrec.resume.requests import Request, asked_model, asked_tool
from otel_agentrec.resume.results import is_error_like
from otel_agentrec.resume.shelf import Asked, Match, Shelf
from otel_agentrec.resume.whymiss import Known, MissReport, explain

__all__ = ["Hit", "Match", "ResumeCache"]

R = TypeVar("R")
Json = Any
_log = logging.getLogger("otel_agentrec")
MAX_CUTS = 256
"""Streams that broke off are remembered, the latest so many."""


class ResumeCache:
    """Content-keyed answers of models and tools. For any number of threads and tasks.

    Args:
        match: ``content``: the same request has the same answer, as often as it is asked (the seed's way); ``occurrence``:
            k recorded equal calls give k answers, in their order, and what this process records itself is not handed out
            again.
        inert: paths that the keys leave out, beyond the defaults (see ``nodes/inert.py``).
        ring: the secret of the keys; default: a random one of its own.
        cacheable: told ``(NodeType, value)``, whether a returned value may be kept. Default: all that does not tell of a
            failure itself (an output that begins with ``TOOL_ERROR``, a failed ``AgentToolResult``, a stream that was cut
            for its length). What is raised is never kept.
    """

    def __init__(
        self,
        match: Match = "content",
        *,
        inert: Iterable[str] = (),
        ring: KeyRing | None = None,
        cacheable: Callable[[NodeType, Any], bool] | None = None,
    ) -> None:
        if match not in ("content", "occurrence"):
            raise ValueError(f"match is 'content' or 'occurrence', not {match!r}")
        self.match: Match = match
        self.inert = (inert,) if isinstance(inert, str) else tuple(inert)
        inert_of(self.inert)  # a wrong path is told here, not at the first call
        self.recording: str | None = None
        """The recording whose unfinished run this cache resumes (:meth:`from_recording`), and ``run``: that run's root."""
        self.run: str | None = None
        self._shelf = Shelf(match, ring or KeyRing.random(), self.inert)
        self._cacheable = cacheable or (lambda _, value: not is_error_like(value))
        self._lock = threading.Lock()
        self._flights = Flights()
        self._hits: Counter[NodeType] = Counter()
        self._misses: Counter[NodeType] = Counter()
        self._fed: set[str] = set()
        self._cuts: dict[str, str] = {}
        """Key of a prompt -> what its stream had said when it broke off."""

    @property
    def ring(self) -> KeyRing:
        """The secret of its keys."""
        return self._shelf.ring

    # --- counters -----------------------------------------------------------------------------------------------------

    @property
    def model_hits(self) -> int:
        """Model calls that were answered from here."""
        return self._hits[NodeType.MODEL]

    @property
    def model_misses(self) -> int:
        """Model calls that had to be made."""
        return self._misses[NodeType.MODEL]

    @property
    def tool_hits(self) -> int:
        return self._hits[NodeType.TOOL]

    @property
    def tool_misses(self) -> int:
        return self._misses[NodeType.TOOL]

    def count(self, kind: NodeType, *, hit: bool) -> None:
        """Count a call that somebody else answered from what this cache resumes, or that was made all the same."""
        self._count(kind, hit)

    def __len__(self) -> int:
        """How many answers it holds."""
        return len(self._shelf)

    def __bool__(self) -> bool:
        """True, also of an empty one: a program that asks ``if cache:`` means whether there is one, and an effect that is not
        asked about is made again."""
        return True

    # --- look-ups and records -----------------------------------------------------------------------------------------

    def lookup_model(self, prompt: object, default: Any = None) -> Any:
        """The recorded result of an ``AgentPrompt`` (or its dict, or a ``WireRequest``), or ``default``. Never raises."""
        hit = self.find_model(prompt)
        return default if hit is None else hit.value

    def lookup_tool(self, call: object, default: Any = None) -> Any:
        """The recorded output of an ``AgentToolCall`` (or anything with its fields), or ``default``. Never raises.

        A tool that gave None has None recorded: give a default of your own to tell that from a miss.
        """
        hit = self.find_tool(call)
        return default if hit is None else hit.value

    def find_model(self, prompt: object) -> Hit | None:
        """Like :meth:`lookup_model`, with how it was found."""
        return self._find(NodeType.MODEL, asked_model, prompt)

    def find_tool(self, call: object) -> Hit | None:
        """Like :meth:`lookup_tool`, with how it was found."""
        return self._find(NodeType.TOOL, asked_tool, call)

    def record_model(self, prompt: object, result: Any) -> None:
        """Keep the result of a model call. Never raises; what can't be keyed or is not cacheable is not kept."""
        self._keep(self._shelf.freeze(NodeType.MODEL, self._shelf.read(asked_model, prompt)), result)

    def record_tool(self, call: object, output: Any) -> None:
        """Keep the output of a tool call, None too. Never raises."""
        self._keep(self._shelf.freeze(NodeType.TOOL, self._shelf.read(asked_tool, call)), output)

    def answer_model(self, prompt: object, ask: Callable[[], R]) -> R:
        """The recorded result, else what ``ask`` returns, recorded.

        Under ``content``, equal calls that come meanwhile wait for it: one call for all of them. What ``ask`` raises is
        raised to its caller only; one of those that waited asks again.
        """
        return self._answer(NodeType.MODEL, asked_model, prompt, ask)

    def answer_tool(self, call: object, execute: Callable[[], R]) -> R:
        """Like :meth:`answer_model`, for a tool."""
        return self._answer(NodeType.TOOL, asked_tool, call, execute)

    async def answer_model_async(self, prompt: object, ask: Callable[[], Awaitable[R]]) -> R:
        """:meth:`answer_model` for event loops."""
        return await self._answer_async(NodeType.MODEL, asked_model, prompt, ask)

    async def answer_tool_async(self, call: object, execute: Callable[[], Awaitable[R]]) -> R:
        """:meth:`answer_tool` for event loops."""
        return await self._answer_async(NodeType.TOOL, asked_tool, call, execute)

    def record_cut_stream(self, prompt: object, text: str) -> None:
        """A streamed answer broke off; ``text`` is what it had said. It is no answer: the next call is made. Never raises."""
        what = self._shelf.read(asked_model, prompt)
        if what is not None:
            self.add_cut_stream(what.keys[0], text)

    def add_cut_stream(self, key: str, text: str) -> None:
        """:meth:`record_cut_stream` by the key of the prompt, made under this cache's secret."""
        with self._lock:
            self._cuts[key] = text
            while len(self._cuts) > MAX_CUTS:
                del self._cuts[next(iter(self._cuts))]

    def cut_stream(self, prompt: object) -> str | None:
        """What the streamed answer to a prompt had said when it broke off; None: none did since. Told once. Never raises."""
        what = self._shelf.read(asked_model, prompt)
        with self._lock:
            return self._cuts.pop(what.keys[0], None) if what is not None else None

    def remove_last_model_entry(self) -> bool:
        """Forget the model answer that came last (a crash just before the last step, for tests). False: there is none."""
        return self._shelf.remove_last(NodeType.MODEL)

    def rewind(self) -> None:
        """Under ``occurrence``: every answer may be handed out once more, as in a new process."""
        self._shelf.rewind()

    # --- feeding from spans -------------------------------------------------------------------------------------------

    def adopt(self, ring: KeyRing) -> None:
        """Make keys under another secret from now on; all that is held gets new ones from its request."""
        self._shelf.adopt(ring)

    def capture(self, record: NodeIoRecord) -> None:
        """Take the answer of an ended span: a MODEL by the keys that were hung on it, a TOOL by name and arguments.

        As a sink of a recorder (``configure(resume_cache=…)``). Records that were truncated, redacted or recorded without
        content, that failed, or that were answered from a recording feed nothing.
        """
        fit = entry_of(record, self.ring, self.inert, self._shelf.store) if lost_in(record.inputs) is None else None
        if fit is None or not self._cacheable(fit.kind, fit.value):
            return
        fit.told, fit.used = True, True
        with self._lock:
            if record.record_id in self._fed:
                return
            self._fed.add(record.record_id)
        self._shelf.put(fit)

    def close(self) -> None:
        """Nothing to do: the answers stay."""

    def entries(self, kind: NodeType) -> list[Entry]:
        """All answers of one kind, the oldest first."""
        return self._shelf.entries(kind)

    def restore(self, kind: NodeType, request: Request, value: Any) -> None:
        """Take an answer of an earlier process, keyed anew. Under ``occurrence`` it is yet to be handed out.

        Raises:
            NoKey: the request can't be written out whole.
        """
        self._shelf.restore(kind, request, value)

    def add(self, entry: Entry) -> None:
        """Take an answer of an earlier process whose keys are made under this cache's secret."""
        self._shelf.add(entry)

    # --- files --------------------------------------------------------------------------------------------------------

    def save_to_json(self, path: str | os.PathLike[str]) -> None:
        """Write all answers with their requests to a file (0600), atomically. It holds what was said, in the clear.

        It is no ledger: what happened after the last save is not in it.

        Raises:
            OSError: it can't be written.
        """
        from otel_agentrec.resume.cachefile import save

        save(self, path)

    @classmethod
    def load_from_json(cls, path: str | os.PathLike[str], match: Match | None = None, **options: Any) -> ResumeCache:
        """The cache of a file; an absent file is an empty cache. Its keys are made anew.

        Args:
            match: default: as it was saved.
            options: further arguments of :class:`ResumeCache`.

        Raises:
            OSError: it can't be read.
            UsageError: it is no saved cache.
        """
        from otel_agentrec.resume.cachefile import load

        return load(cls, path, match, options)

    @classmethod
    def from_recording(
        cls, path: str | os.PathLike[str], run: str | None = None, *, match: Match = "occurrence", **options: Any
    ) -> ResumeCache:
        """A cache of what a recording holds, so that after a crash the journal is enough.

        Args:
            run: only this run and its earlier attempts. Default under ``occurrence``: the only unfinished one; under
                ``content`` all.
            options: further arguments of :class:`ResumeCache`.

        Raises:
            RecordingNotFound, RecordingUnreadable: there is no recording.
            RecordingTampered: it was changed.
            UsageError: under ``occurrence``, the run is finished, or several are not.
        """
        from otel_agentrec.resume.fromrecording import load

        return load(cls, path, run, match, options)

    # --- why not ------------------------------------------------------------------------------------------------------

    def why_miss(self, request: object) -> MissReport:
        """Why a request would miss: the nearest recorded one, where they differ, and what would heal it. Counts nothing.

        Args:
            request: a prompt (or ``WireRequest``), or a tool call: whatever has a name and arguments.
        """
        asked = request if isinstance(request, Request) else _asked_any(request)
        kind = NodeType.TOOL if asked.form == "tool" else NodeType.MODEL
        known = []
        for entry in self._shelf.entries(kind):
            if entry.held is None:
                continue
            held = entry.held.request()
            used = entry.used and self.match == "occurrence"
            known.append(Known(entry.label or held.kind, held.kind, held.compared, entry.step, used))
        return explain(asked.compared, asked.kind, known, inert_of(self.inert, DEFAULT_INERT[asked.form]))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _find(self, kind: NodeType, read: Callable[[object], Request], asked: object) -> Hit | None:
        what = self._shelf.read(read, asked)
        hit = self._shelf.take(kind, what)
        self._count(kind, hit is not None)
        return hit

    def _count(self, kind: NodeType, hit: bool) -> None:
        with self._lock:
            (self._hits if hit else self._misses)[kind] += 1

    def _keep(self, entry: Entry | None, value: Any) -> None:
        try:
            if entry is None or not self._cacheable(entry.kind, value):
                return
        except Exception as error:  # a predicate that fails has not said yes
            _log.debug("not kept: %r", error)
            return
        entry.value = value
        self._shelf.put(entry)

    def _answer(self, kind: NodeType, read: Callable[[object], Request], asked: object, make: Callable[[], R]) -> R:
        what = self._shelf.read(read, asked)
        key = self._shared(what)
        while (hit := self._shelf.take(kind, what)) is None:
            flight = self._flights.board(key)
            if flight is None:
                with self._flights.flying(key):
                    hit = self._shelf.take(kind, what)  # it may have come between look-up and boarding
                    if hit is None:
                        self._count(kind, False)
                        entry = self._shelf.freeze(kind, what)
                        value = make()
                        self._keep(entry, value)
                        return value
                break
            self._flights.wait(flight)
        self._count(kind, True)
        return hit.value  # type: ignore[no-any-return]

    async def _answer_async(
        self, kind: NodeType, read: Callable[[object], Request], asked: object, make: Callable[[], Awaitable[R]]
    ) -> R:
        what = self._shelf.read(read, asked)
        key = self._shared(what)
        while (hit := self._shelf.take(kind, what)) is None:
            flight = self._flights.board(key)
            if flight is None:
                with self._flights.flying(key):
                    hit = self._shelf.take(kind, what)
                    if hit is None:
                        self._count(kind, False)
                        entry = self._shelf.freeze(kind, what)
                        value = await make()
                        self._keep(entry, value)
                        return value
                break
            await self._flights.wait_async(flight)
        self._count(kind, True)
        return hit.value  # type: ignore[no-any-return]

    def _shared(self, what: Asked | None) -> str | None:
        """The key under which equal calls wait for one another; under ``occurrence`` each is its own."""
        return what.keys[0] if what is not None and self.match == "content" else None


def _asked_any(request: object) -> Request:
    is_call = isinstance(request, dict) and "arguments" in request and "name" in request
    is_call = is_call or (hasattr(request, "arguments") and hasattr(request, "name"))
    return asked_tool(request) if is_call else asked_model(request)

"""The stream that an ingest writes: like live capture's, but the first failure ends it, for the files can be read again."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from otel_agentrec._version import __version__
from otel_agentrec.capture.once import SaidOnce
from otel_agentrec.capture.steps import StepEvent
from otel_agentrec.errors import AgentRecError, UsageError
from otel_agentrec.journal.draft import ContentMode, Envelope, SealedAt, make_draft
from otel_agentrec.journal.facts import Facts
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.index import Index
from otel_agentrec.journal.journal import make_directory
from otel_agentrec.journal.writer import StreamWriter
from otel_agentrec.redaction import Redactor
from otel_agentrec.settings import Settings

__all__ = ["Out"]

_SDK = {"name": "otel-agentrec ingest", "version": __version__}


class Out:
    """A new stream in ``directory``: sealed when the block ends well, left unsealed when it does not.

    Raises:
        AgentRecError: the directory or the stream can't be written.
    """

    def __init__(self, directory: Path, settings: Settings, redactor: Redactor) -> None:
        self._directory = directory
        self.settings = settings
        self.names_sessions = False
        """Some event names its session."""
        self._content = cast(ContentMode, settings.content)
        self._gate = Gate(redactor)
        self._once = SaidOnce(self._put, lambda: self.stream)
        try:
            make_directory(directory)
            self._index = Index(directory, settings.host)
            self._writer = StreamWriter(
                directory, origin=settings.host, index=self._index, mode=self._content, opened={"sdk": _SDK}
            )
        except (FileExistsError, NotADirectoryError):
            raise UsageError(f"{directory} is no directory", "give a directory for the recording (--out)") from None
        except OSError as e:
            why = e.strerror or str(e)
            raise AgentRecError(f"{directory} can't be written: {why}", "give a directory that you may write to") from e

    @property
    def stream(self) -> str:
        return self._writer.name

    def append(self, event: StepEvent, resource: Mapping[str, Any] | None = None) -> int:
        """Write one event; -> its seq. ``resource``: whose PROVIDER_SEEN must stand before it."""
        if resource:
            self.provider(resource)
        return self._put(event).seq

    def _put(self, event: StepEvent) -> SealedAt:
        self.names_sessions = self.names_sessions or event.session is not None
        where = Envelope(event.run, event.session, event.turn, event.step, event.trace or None, event.scope)
        try:
            done = self._writer.append(
                make_draft(event.type, event.payload, where, self._writer.cache, self._gate, self._content)
            )
        except OSError as e:
            raise self._failure(e) from e
        return done

    def dropped(self, count: int, reason: str) -> None:
        self.append(StepEvent("DROPPED", {"count": count, "reason": reason}))

    def links(self, links: dict[str, dict[str, str]]) -> None:
        self.append(StepEvent("LINKS", {"links": links}))

    def provider(self, resource: Mapping[str, Any]) -> int | None:
        """The seq of the PROVIDER_SEEN of a resource; equal resources are one."""
        return self._once.resource(resource)

    def header(self, facts: Facts, scope: str) -> int | None:
        """The seq of the REQUEST_HEADER of these facts; an equal earlier one is pointed at. None when there is nothing in it."""
        return self._once.header_of(facts, scope)

    def __enter__(self) -> Out:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            with contextlib.suppress(OSError):
                self._writer.close()
            return
        try:
            self._writer.seal()
            self._index.settle(0.05, force=True)
        except OSError as e:
            raise self._failure(e) from e

    def _failure(self, error: OSError) -> AgentRecError:
        why = error.strerror or str(error)
        return AgentRecError(
            f"{self._directory} can't be written any more: {why}; {self._writer.size} events of {self.stream} are kept",
            "make room and ingest again: a span that is there already counts once",
        )

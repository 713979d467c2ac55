"""The sessions of a stream that is written: what ``ingest`` makes of its files."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from otel_agentrec.capture.conversations.book import Book
from otel_agentrec.capture.conversations.call import Answered, call_of, result_of
from otel_agentrec.journal.facts import Kind
from otel_agentrec.journal.reader import Recording
from otel_agentrec.nodes.fold import fold
from otel_agentrec.nodes.skeleton import OPEN

__all__ = ["write_sessions"]


def write_sessions(directory: Path, stream: str, book: Book) -> tuple[int, list[str]]:
    """Append what the calls of a stream add to their sessions, in cause order; -> (events, ids of the sessions).

    Raises:
        AgentRecError: a session can't be written.
        OSError: the same.
    """
    view = fold(Recording(directory / f"{stream}.jsonl"))
    answered: dict[str, dict[str, Answered]] = defaultdict(dict)
    done, ids = 0, dict[str, None]()
    for s in view.leading:
        session = view.session(s)
        if session is None or s.state == OPEN:
            continue
        if s.kind == Kind.MODEL:
            call = call_of(view, s, session, book.reading)
            told = book.tell(call) if call is not None else 0
            done += told
            if told:
                ids[session] = None
        elif s.kind == Kind.TOOL:
            result = result_of(view, s, session, book.reading)
            if result is not None:
                answered[session][result.call_id] = result
    for session, results in answered.items():
        done += book.results(session, results)
    book.seal()
    return done, list(ids)

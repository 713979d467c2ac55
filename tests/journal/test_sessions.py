"""Streams of sessions: their names, and what their events may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agentrec import verify
from otel_agentrec.errors import EventInvalid
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.events import TYPES, checked, content_of
from otel_agentrec.journal.events.session import SessionEvent, ToolCalled, UserMessageAppended
from otel_agentrec.journal.sessions import id_of, open_session, seal_session, stream_of


@given(st.text(min_size=1, max_size=14))
def test_a_name_says_its_id(session: str) -> None:
    name = stream_of(session)
    assert id_of(name) == session
    _, _, file = name.partition("/")
    assert file.isascii() and "/" not in file and not file.startswith(".") and not file.endswith(".content")


def test_an_id_that_is_too_long_is_told_apart_by_its_digest() -> None:
    one, other = stream_of("x" * 300 + "1"), stream_of("x" * 300 + "2")
    assert one != other and len(one) < 200 and id_of(one) is None


def test_nothing_else_is_a_session() -> None:
    assert id_of("index") is None
    with pytest.raises(ValueError, match="needs an id"):
        stream_of("")


def test_a_stream_is_opened_once_and_gone_on_with(tmp_path: Path) -> None:
    for text in ("one", "two"):
        with open_session(tmp_path / "rec", "a/b", origin="here") as stream:
            (done,) = stream.append([NewEvent("USER_MESSAGE_APPENDED", {"content": text})])
    assert (done.stream, done.seq) == ("sessions/a%2Fb", 2)
    assert verify(tmp_path / "rec").exit_code == 3  # its end is open
    with open_session(tmp_path / "rec", "a/b", origin="here") as stream:
        seal_session(tmp_path / "rec", stream, origin="here")
    assert verify(tmp_path / "rec").exit_code == 0


class TestChecked:
    def test_a_payload_that_fits(self) -> None:
        made = checked("USER_MESSAGE_APPENDED", {"content": "hi", "lane": None})
        assert isinstance(made, UserMessageAppended) and made.to_json() == {"content": "hi"}
        made = checked("TOOL_CALLED", {"name": "f", "callId": "c"})
        assert isinstance(made, ToolCalled) and made.call_id == "c"

    @pytest.mark.parametrize(
        ("type_", "payload", "why"),
        [
            ("NO_SUCH", {}, "no event type 'NO_SUCH'"),
            ("TOOL_CALLED", {"callId": "c"}, "TOOL_CALLED without name"),
            ("TOOL_CALLED", {"name": None}, "TOOL_CALLED without name"),
            ("TOOL_CALLED", {"name": 7}, "name of TOOL_CALLED is a whole number, not text"),
            ("TURN_COMPLETED", {"events": True}, "events of TURN_COMPLETED is bool"),
            ("SESSION_STARTED", {"mood": "good"}, "SESSION_STARTED has no key 'mood'"),
        ],
    )
    def test_one_that_does_not_is_refused(self, type_: str, payload: dict[str, Any], why: str) -> None:
        with pytest.raises(EventInvalid, match=why):
            checked(type_, payload)

    def test_every_type_of_a_session_keeps_words_apart(self) -> None:
        types = [name for name, cls in TYPES.items() if issubclass(cls, SessionEvent)]
        assert len(types) == 16
        assert all("attributes" in content_of(name) for name in types)

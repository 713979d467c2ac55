"""The contract of a session store; each twin runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from otel_agentrec.errors import RecordingUnreadable, UsageError
from otel_agentrec.session.snapshot import AgentSessionSnapshot
from otel_agentrec.session.stores import AgentSessionStore, FileAgentSessionStore, StaleSnapshot

TWINS: dict[str, Callable[[Path], AgentSessionStore]] = {"file": FileAgentSessionStore}


@pytest.fixture(params=sorted(TWINS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> AgentSessionStore:
    return TWINS[request.param](tmp_path / "store")


def snapshot(id: str = "s", version: int = 1, memory: str = "hello") -> AgentSessionSnapshot:
    return AgentSessionSnapshot(id, [{"role": "user", "parts": [{"type": "text", "content": memory}]}], [], [], version)


def test_what_was_saved_comes_back(store: AgentSessionStore) -> None:
    assert store.load("s") is None and store.list_session_ids() == []
    one = snapshot(memory="Grüße \U0001f600 \x00 \udc80")
    store.save(one)
    assert store.load("s") == one
    assert store.list_session_ids() == ["s"]
    assert store.delete("s") and not store.delete("s")
    assert store.load("s") is None


def test_ids_that_look_alike_are_told_apart(store: AgentSessionStore) -> None:
    ids = ["a/b", "a_b", "a%2Fb", "A", "a", "..", ".lock", "Ä", "' OR 1=1 --", "x" * 150]
    for i, id in enumerate(ids):
        store.save(snapshot(id, version=i))
    assert store.list_session_ids() == sorted(ids)
    assert [getattr(store.load(id), "version", None) for id in ids] == list(range(len(ids)))


def test_a_later_snapshot_is_not_overwritten_by_an_earlier_one(store: AgentSessionStore) -> None:
    store.save(snapshot(version=3))
    store.save(snapshot(version=3, memory="again"))
    with pytest.raises(StaleSnapshot, match="saved with 3 events, this snapshot has 2"):
        store.save(snapshot(version=2))
    assert store.load("s") == snapshot(version=3, memory="again")


def test_without_an_id_nothing_is_saved(store: AgentSessionStore) -> None:
    with pytest.raises(UsageError, match="needs an id"):
        store.save(snapshot(""))


@pytest.mark.parametrize(
    "spoil", [b"", b"{", b"[]", b'{"sessionId": 1}', b"\xff\xfe", b'{"sessionId":"other"}', b"[" * 9999]
)
def test_a_damaged_file_is_told_and_can_be_saved_over(tmp_path: Path, spoil: bytes) -> None:
    store = FileAgentSessionStore(tmp_path)
    store.save(snapshot())
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(spoil)
    with pytest.raises(RecordingUnreadable) as error:
        store.load("s")
    assert str(file) in str(error.value)
    store.save(snapshot(version=9))
    assert store.load("s") == snapshot(version=9)


SAVER = """
import sys
from otel_agentrec.session.snapshot import AgentSessionSnapshot
from otel_agentrec.session.stores import FileAgentSessionStore
store = FileAgentSessionStore(sys.argv[1])
for version in range(1, 10**6):
    store.save(AgentSessionSnapshot("s", ["x" * 100_000], [], [], version))
    print(version, flush=True)
"""


def test_a_process_killed_while_saving_leaves_the_old_or_the_new_snapshot(tmp_path: Path) -> None:
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", SAVER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        try:
            for _ in range(8):
                child.stdout.readline()
        finally:
            child.kill()
            acknowledged = [int(line) for line in child.stdout.read().split()] or [8]
            child.wait()
        loaded = FileAgentSessionStore(tmp_path).load("s")
        assert loaded is not None and loaded.version in (acknowledged[-1], acknowledged[-1] + 1)
        assert json.loads(next(tmp_path.glob("*.session.json")).read_bytes())["memory"] == ["x" * 100_000]
        FileAgentSessionStore(tmp_path).delete("s")

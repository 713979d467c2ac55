"""The contract of a session store; each twin runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from otel_agentrec.errors import RecordingUnreadable, UsageError
from otel_agentrec.session.snapshot import AgentSessionSnapshot
from otel_agentrec.session.sqlstore import SqlAgentSessionStore
from otel_agentrec.session.stores import AgentSessionStore, FileAgentSessionStore, StaleSnapshot

ROOT = Path(__file__).parents[2]
TWINS: dict[str, Callable[[Path], AgentSessionStore]] = {
    "file": FileAgentSessionStore,
    "sqlite": lambda path: pytest.importorskip("sqlalchemy") and SqlAgentSessionStore(f"sqlite:///{path}.db"),
}


@pytest.fixture(params=[*sorted(TWINS), pytest.param("postgres", marks=pytest.mark.servers)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentSessionStore]:
    if request.param in TWINS:
        yield TWINS[request.param](tmp_path / "store")
    else:
        server = request.getfixturevalue("postgres")
        with SqlAgentSessionStore(server.url, table=f"t{uuid4().hex}") as held:
            yield held


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
    ids = ["a/b", "a_b", "a%2Fb", "A", "a", " a", "a ", "..", ".lock", "Ä", "A\u0308", "阿星", "' OR 1=1 --", "x" * 150]
    ids += ["\0", "a\0b", "\udc80", "\ud83d\ude00", "\U0001f600"]
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


def test_all_twins_are_session_stores(store: AgentSessionStore) -> None:
    assert isinstance(store, AgentSessionStore)


SAVER = """
import sys
from otel_agentrec.session.snapshot import AgentSessionSnapshot
from tests.session.test_stores import TWINS
from pathlib import Path
store = TWINS[sys.argv[1]](Path(sys.argv[2]))
for version in range(1, 10**6):
    store.save(AgentSessionSnapshot("s", ["x" * 100_000], [], [], version))
    print(version, flush=True)
"""


@pytest.mark.parametrize("twin", sorted(TWINS))
def test_a_process_killed_while_saving_leaves_the_old_or_the_new_snapshot(tmp_path: Path, twin: str) -> None:
    store = TWINS[twin](tmp_path / "store")
    for _ in range(4 if twin == "file" else 2):
        child = subprocess.Popen(
            [sys.executable, "-c", SAVER, twin, str(tmp_path / "store")], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert child.stdout is not None
        try:
            for _ in range(8):
                child.stdout.readline()
        finally:
            child.kill()
            acknowledged = [int(line) for line in child.stdout.read().split()] or [8]
            child.wait()
        loaded = store.load("s")
        assert loaded is not None and loaded.version in (acknowledged[-1], acknowledged[-1] + 1)
        assert loaded.memory == ["x" * 100_000]
        store.delete("s")

"""What the event store in SQLite adds to the contract: rows that stand for ever, content that may go, files on request."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_agentrec.audit.verify import verify
from otel_agentrec.errors import UsageError
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.sqlstore import SqlEventStore
from otel_agentrec.journal.store import FileEventStore

sa: Any = pytest.importorskip("sqlalchemy")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    return sa.create_engine(f"sqlite:///{tmp_path}/x.db", poolclass=sa.pool.NullPool)


@pytest.fixture
def store(engine: Any) -> SqlEventStore:
    return SqlEventStore(engine)


def said(content: object, id: str | None = None) -> NewEvent:
    return NewEvent("FINAL_OUTPUT", {"output": content}, id=id)


def execute(engine: Any, statement: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)


def test_a_server_is_not_for_events_yet() -> None:
    with pytest.raises(UsageError, match="SQLite"):
        SqlEventStore("postgresql://localhost/db")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE agentrec_event SET line = x'00' WHERE seq = 1",
        "DELETE FROM agentrec_event WHERE seq = 1",
        "INSERT OR REPLACE INTO agentrec_event VALUES ('a', 1, 'another', x'00')",
        "INSERT OR REPLACE INTO agentrec_event VALUES ('a', 99, 'mine', x'00')",
        "UPDATE agentrec_cell SET line = x'00' WHERE seq = 1",
        "INSERT OR REPLACE INTO agentrec_cell VALUES ('a', 1, 0, x'00')",
    ],
)
def test_the_database_refuses_to_change_what_happened(engine: Any, store: SqlEventStore, statement: str) -> None:
    store.append("a", [said("x", id="mine")])
    with pytest.raises(sa.exc.IntegrityError, match="is append-only"):
        execute(engine, statement)
    assert [e.payload["output"] for e in store.read("a", 1)] == ["x"]


def test_content_may_be_deleted_and_the_chain_holds(engine: Any, store: SqlEventStore, tmp_path: Path) -> None:
    store.append("a", [said("forget me"), said("keep me")])
    execute(engine, "DELETE FROM agentrec_cell WHERE seq = 1")
    first, second = store.read("a", 1)
    assert first.payload["output"]["$missing"]["reason"] == "gone" and second.payload["output"] == "keep me"
    store.append("a", [said("more")])
    store.export("a", tmp_path / "out")
    assert verify(tmp_path / "out", content=False).is_valid
    report = verify(tmp_path / "out")
    assert (report.kind, report.seq) == ("payload_missing", 1), "nobody signed that it may be gone"


@pytest.mark.parametrize("kind", ["BLOB", "TEXT", "INTEGER"])
def test_a_line_that_was_changed_around_the_triggers_is_not_handed_out(
    engine: Any, store: SqlEventStore, kind: str
) -> None:
    store.append("a", [said("1"), said("2"), said("3")])
    execute(engine, "DROP TRIGGER agentrec_event_update")
    execute(engine, f"UPDATE agentrec_event SET line = CAST(replace(line, 'FINAL', 'FALSE') AS {kind}) WHERE seq = 2")
    assert [e.seq for e in store.read("a")] == [0, 1]


@pytest.mark.parametrize("value", ["x'7b7d'", "'text'", "7", "replace(line, 'one', 'two')"])
def test_content_that_was_changed_around_the_triggers_is_told_damaged(
    engine: Any, store: SqlEventStore, value: str
) -> None:
    store.append("a", [said("one")])
    execute(engine, "DROP TRIGGER agentrec_cell_update")
    execute(engine, f"UPDATE agentrec_cell SET line = {value}")
    (event,) = store.read("a", 1)
    assert event.payload["output"]["$missing"]["reason"] == "damaged"


def test_an_id_is_used_once_in_a_stream(store: SqlEventStore) -> None:
    store.append("a", [said("x", id="one")])
    head = store.head("a")
    with pytest.raises(UsageError, match="append-only"):
        store.append("a", [said("y"), said("z", id="one")])
    assert store.head("a") == head
    store.append("b", [said("x", id="one")])


def test_an_exported_stream_is_a_recording_byte_for_byte(store: SqlEventStore, tmp_path: Path) -> None:
    content = [{"role": "user", "parts": [{"type": "text", "content": f"word {n} " * 9}]} for n in range(30)]
    for start in range(0, 1200, 300):
        store.append("sessions/s%2F1", [said(content[: n % 30]) for n in range(start, start + 300)])
    path = store.export("sessions/s%2F1", tmp_path / "out")
    assert path == tmp_path / "out" / "sessions" / "s%2F1.jsonl"
    report = verify(tmp_path / "out")
    assert (report.is_valid, report.kind) == (True, "unsealed_tail"), report.to_json()
    files = FileEventStore(tmp_path / "out")
    assert list(files.read("sessions/s%2F1")) == list(store.read("sessions/s%2F1"))
    assert files.head("sessions/s%2F1") == store.head("sessions/s%2F1")
    assert {p.name for p in path.parent.iterdir()} == {"s%2F1.jsonl", "s%2F1.content.jsonl"}
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="is there already"):
        store.export("sessions/s%2F1", tmp_path / "out")
    with pytest.raises(UsageError, match="no stream nobody"):
        store.export("nobody", tmp_path / "out")


def test_the_lines_can_be_had_with_sql_alone(engine: Any, store: SqlEventStore, tmp_path: Path) -> None:
    """As docs/sessions.md says."""
    store.append("a", [said("Grüße"), said("2")])
    with engine.begin() as connection:
        rows = connection.exec_driver_sql(
            "SELECT CAST(line AS TEXT) FROM agentrec_event WHERE stream = 'a' ORDER BY seq"
        )
        lines = [row[0] + "\n" for row in rows]
    path = store.export("a", tmp_path / "out")
    assert path.read_text() == "".join(lines)


def test_streams_do_not_mix(store: SqlEventStore) -> None:
    for n in range(3):
        for stream in ("a", "A", "a/b"):
            store.append(stream, [said(f"{stream} {n}")])
    for stream in ("a", "A", "a/b"):
        assert [e.payload["output"] for e in store.read(stream, 1)] == [f"{stream} {n}" for n in range(3)]


def test_threads_share_a_store_in_memory() -> None:
    from concurrent.futures import ThreadPoolExecutor

    store = SqlEventStore("sqlite://")
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: store.append("a", [said(n)])[0].seq, range(40)))
    assert sorted(done) == list(range(1, 41))
    assert [e.seq for e in store.read("a")] == list(range(41))
    store.close()


WRITER = """
import sys
from otel_agentrec.journal.draft import NewEvent
from otel_agentrec.journal.sqlstore import SqlEventStore
store = SqlEventStore(sys.argv[1])
for n in range(10**6):
    done = store.append("sessions/s", [NewEvent("FINAL_OUTPUT", {"output": "x" * 20_000}), NewEvent("FINAL_OUTPUT", {"output": n})])
    print(done[-1].seq, done[-1].hash, flush=True)
"""


def test_a_process_killed_while_appending_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    told: dict[int, str] = {}
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", WRITER, url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(6)]
        child.send_signal(signal.SIGKILL)
        lines += [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        child.wait()
        told |= {int(seq): digest.strip() for seq, digest in (line.split(" ") for line in lines)}
    store = SqlEventStore(url)
    events = list(store.read("sessions/s"))
    assert [e.seq for e in events] == list(range(len(events))) and len(events) % 2 == 1
    assert {seq: events[seq].hash for seq in told} == told
    store.export("sessions/s", tmp_path / "out")
    assert verify(tmp_path / "out").is_valid

"""What a session store in a database adds to the contract: errors in one line, tables, connections, crashes, races."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from otel_agentrec.errors import AgentRecError, ExtraMissing, RecordingUnreadable, StoreUnavailable, UsageError
from otel_agentrec.session.snapshot import AgentSessionSnapshot
from otel_agentrec.session.sqlstore import SqlAgentSessionStore
from otel_agentrec.session.stores import StaleSnapshot
from tests.servers.postgres import Postgres

sa = pytest.importorskip("sqlalchemy")
ROOT = Path(__file__).parents[2]


def snapshot(id: str = "s", version: int = 1, memory: object = "hello") -> AgentSessionSnapshot:
    return AgentSessionSnapshot(id, [memory], [], [], version)


def told(error: pytest.ExceptionInfo[AgentRecError]) -> str:
    """What a person reads; one line each."""
    what, hint = str(error.value), error.value.hint
    assert "\n" not in what and hint and "\n" not in hint
    assert error.value.__suppress_context__ or error.value.__context__ is None, "no traceback of SQLAlchemy above it"
    return f"{what} | {hint}"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("./sessions.db", "'./sessions.db' is no database URL"),
        ("", "'' is no database URL"),
        ("postgresql://user:secret@host:port/db", "this is no database URL"),
        ("mysql+pymysql://root:secret@localhost/db", "mysql+pymysql"),
        ("nosuch://x", "nosuch"),
        (7, "int is neither a database URL nor an Engine"),
    ],
)
def test_what_is_no_url_of_a_store_is_told_at_once_and_never_a_password(url: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        SqlAgentSessionStore(url)
    message = told(error)
    assert says in message and "sqlite:///FILE" in message
    assert "secret" not in message


def test_a_server_that_is_down_is_told_in_one_line() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = nobody.getsockname()[1]
        store = SqlAgentSessionStore(f"postgresql://ann:secret@127.0.0.1:{port}/db?application_name=chat")
        with pytest.raises(StoreUnavailable) as error:
            store.load("s")
    message = told(error)
    assert f"postgresql+psycopg://ann:***@127.0.0.1:{port}/db: " in message
    assert "refused" in message and "check that the server runs" in message and "secret" not in message


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"This is a text, and it is longer than a header. " * 50)
    with pytest.raises(StoreUnavailable) as error:
        SqlAgentSessionStore(f"sqlite:///{tmp_path}/x.db").save(snapshot())
    assert "file is not a database" in told(error)
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable) as error:
        SqlAgentSessionStore(f"sqlite:///{tmp_path}/file/x.db").save(snapshot())
    assert "can't be made" in told(error)


def test_a_table_of_somebody_else_is_told_without_what_was_to_be_saved(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with sa.create_engine(url).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE agentrec_session (other TEXT)")
    with pytest.raises(StoreUnavailable) as error:
        SqlAgentSessionStore(url).save(snapshot(memory="private words"))
    assert "has no column" in told(error) and "private words" not in told(error)


def test_without_the_extra_the_error_names_it() -> None:
    code = """
import sys
for name in ("sqlalchemy", "psycopg"):
    if name == sys.argv[1]:
        sys.modules[name] = None
from otel_agentrec import SqlAgentSessionStore, SqlEventStore
for make in (SqlAgentSessionStore, SqlEventStore):
    try:
        make(sys.argv[2])
    except Exception as e:
        print(type(e).__name__, e.hint)
"""

    def run(without: str, url: str) -> str:
        command = [sys.executable, "-c", code, without, url]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout

    both = f"{ExtraMissing.__name__} pip install 'otel-agentrec[sql]'\n" * 2
    assert run("sqlalchemy", "sqlite://") == both
    assert run("psycopg", "sqlite://") == ""
    assert run("psycopg", "postgresql://localhost/db").startswith(both.splitlines()[0])


@pytest.mark.parametrize("table", ["", "a b", "1a", "a;b", 'a"', "a" * 64, "ä"])
def test_a_table_needs_a_plain_name(table: str) -> None:
    with pytest.raises(UsageError, match="no name of a table"):
        SqlAgentSessionStore("sqlite://", table=table)


def test_an_id_that_no_index_holds_is_refused() -> None:
    with pytest.raises(UsageError, match="too long"):
        SqlAgentSessionStore("sqlite://").save(snapshot("x" * 3000))


@pytest.mark.parametrize(
    "spoil", [b"", b"{", b"[]", b'{"sessionId":1}', b'{"sessionId":"other"}', b"[" * 9999, b"\xff"]
)
def test_a_damaged_row_is_told_and_can_be_saved_over(tmp_path: Path, spoil: bytes) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path}/x.db", poolclass=sa.pool.NullPool)
    store = SqlAgentSessionStore(engine)
    store.save(snapshot())
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE agentrec_session SET snapshot = :it"), {"it": spoil})
    with pytest.raises(RecordingUnreadable, match=r"session 's' in sqlite:.*x\.db"):
        store.load("s")
    store.save(snapshot(version=9))
    assert store.load("s") == snapshot(version=9)


def test_an_engine_of_the_caller_is_used_and_stays_open(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path}/x.db")
    with SqlAgentSessionStore(engine, table="mine") as store:
        store.save(snapshot())
    with engine.begin() as connection:
        rows = connection.exec_driver_sql("SELECT session_id, version, snapshot FROM mine").all()
    assert rows == [("s", 1, b'{"sessionId":"s","memory":["hello"],"events":[],"compactions":[],"version":1}')]
    engine.dispose()


def test_a_store_keeps_no_file_open_and_its_file_is_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.db"
    with SqlAgentSessionStore(f"sqlite:///{path}") as store:
        store.save(snapshot())
        fds = {os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()}
        assert str(path) not in fds
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert store.load("s") == snapshot(), "it may be used again"


def test_threads_share_a_database_in_memory() -> None:
    store = SqlAgentSessionStore("sqlite://")
    threads = [threading.Thread(target=lambda n=n: store.save(snapshot(f"s{n}"))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.list_session_ids() == [f"s{n}" for n in range(8)]
    store.close()


RACER = """
import random, sys
from otel_agentrec.session.snapshot import AgentSessionSnapshot
from otel_agentrec.session.sqlstore import SqlAgentSessionStore
from otel_agentrec.session.stores import StaleSnapshot
store = SqlAgentSessionStore(sys.argv[1], table=sys.argv[2])
versions = list(range(1, 13))
random.Random(int(sys.argv[3])).shuffle(versions)
saved, before = [], 0
for version in versions:
    try:
        store.save(AgentSessionSnapshot("s", [[version, sys.argv[3]]], [], [], version))
    except StaleSnapshot as e:
        assert int(str(e).split("saved with ")[1].split()[0]) > version
    else:
        saved.append(version)
    now = store.load("s")
    assert now.version >= before and now.memory[0][0] == now.version, (now, before)
    before = now.version
assert 12 in saved
store.close()
"""


def race(url: str, table: str) -> None:
    """Eight processes make the table and save one session, each in an order of its own."""
    command = [sys.executable, "-c", RACER, url, table]
    children = [subprocess.Popen([*command, str(k)], cwd=ROOT, stderr=subprocess.PIPE, text=True) for k in range(8)]
    errors = [child.communicate(timeout=120)[1] for child in children]
    assert [child.returncode for child in children] == [0] * 8, errors
    store = SqlAgentSessionStore(url, table=table)
    last = store.load("s")
    assert last is not None and last.version == 12 and last.memory[0][0] == 12
    with pytest.raises(StaleSnapshot):
        store.save(snapshot(version=11))
    store.close()


@pytest.mark.slow
def test_racing_processes_leave_the_latest_snapshot_in_sqlite(tmp_path: Path) -> None:
    race(f"sqlite:///{tmp_path}/x.db", "agentrec_session")


@pytest.mark.servers
def test_racing_processes_leave_the_latest_snapshot_in_postgres(postgres: Postgres) -> None:
    race(postgres.url, f"t{uuid4().hex}")


SAVER = """
import sys
from otel_agentrec.errors import StoreUnavailable
from otel_agentrec.session.snapshot import AgentSessionSnapshot
from otel_agentrec.session.sqlstore import SqlAgentSessionStore
store = SqlAgentSessionStore(sys.argv[1], table=sys.argv[2])
try:
    for version in range(int(sys.argv[3]), 10**6):
        store.save(AgentSessionSnapshot("s", [str(version) * 300_000], [], [], version))
        print(version, flush=True)
except StoreUnavailable as e:
    print(len(str(e).splitlines()), e.hint, file=sys.stderr)
    sys.exit(3)
"""


@pytest.mark.servers
def test_a_server_killed_in_a_save_keeps_the_old_or_the_new_snapshot(postgres: Postgres) -> None:
    table, version = f"t{uuid4().hex}", 1
    store = SqlAgentSessionStore(postgres.url, table=table)
    for _ in range(3):
        command = [sys.executable, "-c", SAVER, postgres.url, table, str(version)]
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        first = [int(child.stdout.readline()) for _ in range(5)]
        postgres.kill()
        out, err = child.communicate(timeout=60)
        assert child.returncode == 3 and err.startswith("1 check that the server runs"), err
        acknowledged = [*first, *map(int, out.split())][-1]
        postgres.start()
        kept = store.load("s")  # over a connection of its own that broke meanwhile
        assert kept is not None and kept.version in (acknowledged, acknowledged + 1)
        assert kept.memory == [str(kept.version) * 300_000]
        version = kept.version + 1
    store.close()


@pytest.mark.servers
def test_a_user_who_may_not_make_tables_uses_one_that_is_there(postgres: Postgres) -> None:
    table, user = f"t{uuid4().hex}", f"u{uuid4().hex}"
    url = postgres.url.replace("agentrec@", f"{user}@")
    admin = sa.create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))
    with admin.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {user} LOGIN")
    with pytest.raises(StoreUnavailable) as error:
        SqlAgentSessionStore(url, table=table).save(snapshot())
    assert "permission denied for schema public" in told(error) and "what the user may do" in told(error)
    with SqlAgentSessionStore(admin, table=table) as store:
        store.save(snapshot())
    with admin.begin() as connection:
        connection.exec_driver_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {user}")
    admin.dispose()
    with SqlAgentSessionStore(url, table=table) as store:
        store.save(snapshot(version=2))
        assert store.load("s") == snapshot(version=2) and store.delete("s")


@pytest.mark.servers
def test_a_forked_process_opens_connections_of_its_own(postgres: Postgres) -> None:
    store = SqlAgentSessionStore(postgres.url, table=f"t{uuid4().hex}")
    store.save(snapshot("parent"))
    child = os.fork()
    if child == 0:
        try:
            store.save(snapshot("child"))
            store.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    store.save(snapshot("parent", 2))
    assert store.list_session_ids() == ["child", "parent"]
    store.close()

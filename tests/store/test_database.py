import os
import signal
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from svc.store import StorageError
from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.store.processes import child, lines
from tests.store.records import record


def pragma(connection: sqlite3.Connection, name: str):
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_the_salt_is_made_once_for_each_database(tmp_path):
    first = Database.open(tmp_path / "a.db")
    again = Database.open(tmp_path / "a.db")
    other = Database.open(tmp_path / "b.db")
    assert len(first.salt) == 32
    assert first.salt == again.salt != other.salt
    for database in (first, again, other):
        database.close()


def test_the_writer_is_durable_and_keeps_references_whole(database):
    names = ("journal_mode", "synchronous", "foreign_keys")
    assert database.write(lambda connection: [pragma(connection, name) for name in names]) == [
        "wal",
        2,  # FULL
        1,
    ]


@pytest.fixture
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_new_file_and_those_beside_it_are_for_their_owner_alone(tmp_path, open_umask):
    (tmp_path / "link.db").symlink_to(tmp_path / "svc.db")
    database = Database.open(tmp_path / "link.db")
    Decisions(database).add(record())
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    database.close()
    assert modes.keys() >= {"svc.db", "svc.db-wal", "svc.db-shm"}
    assert set(modes.values()) == {0o600}


def test_a_file_that_was_there_keeps_its_mode(path):
    Database.open(path).close()
    path.chmod(0o640)
    Database.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_is_written_may_be_read_at_once(database):
    def note(connection):
        connection.execute("INSERT INTO meta VALUES ('a', 'b')")

    database.write(note)
    with database.read() as connection:
        found = connection.execute("SELECT value FROM meta WHERE name = 'a'").fetchone()
    assert found["value"] == "b"


def test_closing_leaves_one_file_with_everything_in_it(path):
    database = Database.open(path)
    given = Decisions(database).add(record())
    database.close()
    assert os.listdir(path.parent) == [path.name]
    again = Database.open(path)
    assert Decisions(again).get(given) is not None
    again.close()


def test_closing_a_database_in_which_nothing_was_written_leaves_one_file(path):
    Database.open(path).close()
    Database.open(path).close()
    assert os.listdir(path.parent) == [path.name]


def test_closing_moves_the_log_into_the_file_though_another_process_has_it_open(path):
    database = Database.open(path)
    Decisions(database).add(record())
    with closing(sqlite3.connect(path)) as other:
        other.execute("SELECT count(*) FROM decisions").fetchone()
        assert path.with_name("svc.db-wal").stat().st_size > 0
        database.close()
        assert path.with_name("svc.db-wal").stat().st_size == 0


def test_a_closed_database_may_be_closed_again_but_not_used(path):
    database = Database.open(path)
    database.close()
    database.close()
    with pytest.raises(StorageError, match="closed"):
        database.write(lambda connection: None)
    with pytest.raises(StorageError, match="closed"), database.read():
        pass


def test_closing_ends_the_writers_thread(path):
    before = set(threading.enumerate())
    database = Database.open(path)
    started = set(threading.enumerate()) - before
    database.close()
    assert started and not any(thread.is_alive() for thread in started)


def test_a_full_disk_refuses_what_is_too_big_and_takes_what_still_fits(database):
    decisions = Decisions(database)

    def allow(pages: int) -> None:
        database.write(lambda connection: pragma(connection, f"max_page_count = {pages}"))

    allow(database.write(lambda connection: pragma(connection, "page_count")) + 20)
    big = record(model="m" * 1_000_000)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(decisions.add, big if i == 3 else record()) for i in range(8)]
    assert isinstance(futures[3].exception(), StorageError)
    assert "full" in futures[3].exception().message
    stored = {one.id for one in decisions.page("default", 100).entries}
    assert stored == {future.result() for i, future in enumerate(futures) if i != 3}
    allow(1_000_000)
    assert decisions.get(decisions.add(big)).facts.model == big.model


def test_a_file_that_may_not_grow_costs_nothing_that_was_answered(path):
    with child("fill", path) as process:
        *ids, full, last = lines(process)
    assert ids and full.startswith("full: the ")
    database = Database.open(path)
    stored = [one.id for one in Decisions(database).page("default", 1_000).entries]
    database.close()
    assert stored == [last, *ids[::-1]]


def test_a_server_killed_under_load_loses_no_decision_that_was_answered(path):
    with child("add_for_ever", path) as process:
        answered = [process.stdout.readline() for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        answered += process.stdout.readlines()
    ids = {line.strip() for line in answered if line.endswith("\n")}
    assert len(ids) >= 200
    database = Database.open(path)
    stored = {one.id for one in Decisions(database).page("default", 1_000_000).entries}
    database.close()
    assert ids <= stored

import sqlite3
import threading
from functools import partial

import pytest

from svc.store import StorageError, connections
from svc.store.readers import Readers


@pytest.fixture
def readers(database, path):
    pool = Readers(partial(connections.reading, path), size=2, wait_s=0.01)
    yield pool
    pool.close()


def note(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO meta VALUES (hex(randomblob(8)), 'x')")


def count(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(*) FROM meta").fetchone()[0]


def test_a_reader_cannot_write(readers):
    with pytest.raises(StorageError), readers.lend() as connection:
        note(connection)


def test_a_reader_sees_one_state_for_the_whole_block(database, readers):
    with readers.lend() as connection:
        before = count(connection)
        database.write(note)
        assert count(connection) == before
    with readers.lend() as connection:
        assert count(connection) == before + 1


def test_no_more_are_lent_than_there_are(readers):
    with readers.lend(), readers.lend():
        with pytest.raises(StorageError, match="busy"), readers.lend():
            pass
    with readers.lend() as connection:
        assert count(connection)


def test_a_connection_is_lent_to_any_thread_and_used_again(readers):
    lent = []

    def use():
        with readers.lend() as connection:
            lent.append((id(connection), count(connection)))

    for _ in range(5):
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert len(set(lent)) == 1


def test_a_connection_on_which_something_failed_is_not_lent_again(readers):
    with readers.lend() as failed:
        assert count(failed)
    with pytest.raises(StorageError), readers.lend() as connection:
        connection.execute("SELECT * FROM missing")
    with pytest.raises(sqlite3.ProgrammingError):
        failed.execute("SELECT 1")
    with readers.lend() as connection:
        assert connection is not failed
        assert count(connection)


def test_the_borrowers_own_exception_comes_through_and_the_connection_goes_on(readers):
    with pytest.raises(KeyError), readers.lend() as first:
        raise KeyError
    with readers.lend() as second:
        assert second is first


def test_what_is_lent_while_the_pool_closes_is_closed_when_it_comes_back(readers):
    with readers.lend() as connection:
        readers.close()
        assert count(connection)
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


def test_a_closed_pool_lends_nothing(readers):
    readers.close()
    with pytest.raises(StorageError, match="closed"), readers.lend():
        pass

"""No byte of deleted rows is left in the file, while others go on with it."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from svc.store import Database, Remnants, StorageError
from svc.store.remnants import Remnants as Cleaner

GONE = b"Gone"


@pytest.fixture
def littered(path: Path) -> Path:
    """A database whose file holds rows that were deleted without being overwritten."""
    litter(path)
    return path


def litter(path: Path, words: int = 30) -> None:
    """Store texts of fewer than so many words, and delete most of them."""
    Database.open(path).close()
    draw = random.Random(7)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT)")
        connection.execute("CREATE INDEX by_word ON words (word)")
        connection.execute("BEGIN")
        for number in range(4_000):
            kind = GONE.decode() if number % 3 else "Kept"
            word = f"{draw.randrange(10**6)} {kind}{number:04} " * draw.randrange(1, words)
            connection.execute("INSERT INTO words (word) VALUES (?)", (word,))
        connection.execute("COMMIT")
        connection.execute("DELETE FROM words WHERE word LIKE '%Gone%'")


@contextmanager
def cleaning(path: Path) -> Iterator[Cleaner]:
    with closing(Remnants(path)) as remnants:
        yield remnants


def bytes_of(path: Path) -> bytes:
    """All that lies in the folder of the database."""
    return b"".join(one.read_bytes() for one in path.parent.rglob("*") if one.is_file())


def insert(word: str, connection: sqlite3.Connection) -> int:
    return connection.execute("INSERT INTO words (word) VALUES (?)", (word,)).rowcount


def check_whole(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (count,) = connection.execute(
            "SELECT count(*) FROM words WHERE word LIKE '%Kept%'"
        ).fetchone()
    assert count == len([number for number in range(4_000) if not number % 3])


def test_no_byte_of_deleted_rows_is_left(littered: Path) -> None:
    assert bytes_of(littered).count(GONE) > 1_000
    with cleaning(littered) as remnants:
        assert remnants.clean()
    assert GONE not in bytes_of(littered)
    check_whole(littered)


def test_others_read_and_write_meanwhile(littered: Path) -> None:
    stop, written = threading.Event(), []
    database = Database.open(littered)

    def write() -> None:
        while not stop.is_set():
            number = len(written)
            word = f"Kept? {number} " * 20
            database.write(partial(insert, word))
            written.append(word)
            database.rows("SELECT count(*) FROM words")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with cleaning(littered) as remnants:
            assert remnants.clean()
            stop.set()
            writer.join()
            # What the others had in memory does not come back.
            assert remnants.clean()
            database.close()
    finally:
        stop.set()
        writer.join()
    assert GONE not in bytes_of(littered)
    with closing(sqlite3.connect(littered)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = connection.execute("SELECT word FROM words WHERE word LIKE 'Kept?%' ORDER BY id")
        assert [row[0] for row in found] == written


def test_a_reader_that_holds_the_log_is_waited_for_only_so_long(littered: Path) -> None:
    with (
        closing(sqlite3.connect(littered, isolation_level=None)) as reader,
        closing(sqlite3.connect(littered, isolation_level=None)) as writer,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM words").fetchone()
        writer.execute("UPDATE words SET word = word || '!' WHERE id = 1")
        with cleaning(littered) as remnants:
            assert not remnants.clean(patience_s=0.1)
            reader.execute("COMMIT")
            assert remnants.clean()
            reader.close()
            writer.close()
    assert GONE not in bytes_of(littered)


class OfLongFile(Cleaner):
    """One whose file takes long to be looked through, while somebody writes."""

    def _dirty(self) -> list[int]:
        time.sleep(0.3)
        with closing(sqlite3.connect(self._path, isolation_level=None)) as writer:
            insert("Kept?", writer)
            found = super()._dirty()
            # With it, SQLite would empty the log.
            self.others.append(sqlite3.connect(self._path))
            self.others[-1].execute("SELECT count(*) FROM words").fetchall()
        return found


def test_however_long_a_file_is_looked_through_there_is_time_for_the_log(littered: Path) -> None:
    """Beside a server that writes, a long file never became clean."""
    with closing(OfLongFile(littered)) as remnants:
        remnants.others = []
        assert remnants.clean(patience_s=0.2)
        for other in remnants.others:
            other.close()
    assert GONE not in bytes_of(littered)


def test_a_file_with_pages_that_others_could_be_taken_for_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    Database.open(path).close()
    before = path.read_bytes()
    with cleaning(path) as remnants, pytest.raises(StorageError, match="auto_vacuum"):
        remnants.clean()
    assert path.read_bytes() == before


def test_a_file_without_a_log_is_refused(path: Path) -> None:
    Database.open(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with cleaning(path) as remnants, pytest.raises(StorageError, match="log"):
        remnants.clean()


def test_a_damaged_file_is_not_touched(littered: Path) -> None:
    damaged = bytearray(littered.read_bytes())
    # How many free pages there are.
    damaged[36:40] = (7_654).to_bytes(4)
    littered.write_bytes(damaged)
    with cleaning(littered) as remnants, pytest.raises(StorageError, match="damaged"):
        remnants.clean()
    assert littered.read_bytes() == damaged


def test_pages_of_every_size_are_cleaned(tmp_path: Path) -> None:
    for size in (512, 1024, 65_536):
        path = tmp_path / f"{size}.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size = {size}")
            connection.execute("PRAGMA journal_mode = WAL")
        # None is so long that it goes on in other pages.
        litter(path, 4)
        with cleaning(path) as remnants:
            assert remnants.clean()
        assert GONE not in path.read_bytes()
        check_whole(path)


def test_a_clean_file_stays_as_it_is(path: Path) -> None:
    Database.open(path).close()
    with cleaning(path) as remnants:
        assert remnants.clean()
        before = path.read_bytes()
        assert remnants.clean()
        assert path.read_bytes() == before

"""The database file: opened, written by one thread, read by many."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from svc.errors import SettingsError
from svc.store import connections
from svc.store.migrations import Migration, prepare, shipped
from svc.store.opened_file import OpenedFile, ServedFile
from svc.store.readers import Readers
from svc.store.remembered import Remembered, say_changed
from svc.store.writer import NO_TURN, Handler, LongWrite, Writer

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

# The most items that share a transaction.
BATCH = 256

# The connections for look-ups by an index, besides those that read more.
LOOK_UPS = 4

# The same value again would not be written.
_TOUCH = (
    "INSERT INTO meta (name, value) VALUES ('written_at', ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)

# How long a caller waits for its commit.
WRITE_TIMEOUT_S = 30.0


class Database:
    """One open database; every thread of the process uses the same."""

    def __init__(
        self, path: Path, batch: int, turn: AbstractContextManager[None], remembers: bool = False
    ) -> None:
        """Only `open` calls this."""
        self._path = path
        self._served: ServedFile | None = None
        self._file = OpenedFile(path, when_log_is_gone=self._save_log)
        writing = partial(self._file.connect, connections.writing)
        reading = partial(self._file.connect, connections.reading)
        self._writer = Writer(
            writing, batch, turn=turn, check=self._file.check, opened_log=self._file.log
        )
        self._readers = Readers(reading, check=self._file.check_each_second)
        # Of their own, so that no report keeps a request from the look-ups that each one needs.
        self._looking_up = Readers(reading, LOOK_UPS, check=self._file.check_each_second)
        self._remembered = Remembered(path, self.rows) if remembers else None
        with self.read() as connection:
            (salt,) = connection.execute("SELECT value FROM meta WHERE name = 'salt'").fetchone()
        # 32 random bytes, made once for each database.
        self.salt: bytes = salt

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        migrations: Sequence[Migration] | None = None,
        batch: int = BATCH,
        turn: AbstractContextManager[None] = NO_TURN,
        served: ServedFile | None = None,
    ) -> Database:
        """Open the file at `path`, created or upgraded where needed.

        `migrations` lead from an empty file to the newest schema; None stands for those of this
        release. `turn` is held during every transaction that writes. `served` is the file that
        other processes of the server use.
        Raises `SettingsError` with one line that names the path and what is wrong; a file that is
        not this project's stays as it is, and none is created beside the one that is `served`.
        """
        path, migrations = Path(path), shipped() if migrations is None else migrations
        if served is None:
            prepare(path, migrations)
            return cls(path, batch, turn)
        with served.opening(path) as may_create:
            prepare(path, migrations, may_create)
            database = cls(path, batch, turn, remembers=True)
            try:
                served.settle(path, database.salt)
            except SettingsError:
                database.close()
                raise
            database._served = served
        # From now on the writer knows the log by its own connection.
        database.note(_do_nothing, None)
        return database

    def write(
        self,
        fn: Callable[[sqlite3.Connection], ResultT],
        timeout_s: float = WRITE_TIMEOUT_S,
        size: int = 1,
    ) -> ResultT:
        """Run `fn` in the writer's transaction; returns its result once that is durable.

        `fn` neither begins nor ends a transaction. It may run more than once, and then the last
        run counts: after a failure, all that shared the transaction run again. An exception of
        `fn` undoes its own writes alone and is raised here. Raises `StorageError` where the
        database refuses the write, after `close`, and after `timeout_s` seconds; in this last case
        it may still be written later. `size` is that of `write_grouped`.
        """
        # Each has a handler of its own, and so the processor time that it takes.
        return self._writer.write(partial(_call, fn), None, timeout_s, size)

    def write_long(
        self,
        fn: Callable[[sqlite3.Connection], ResultT],
        size: int,
        timeout_s: float = WRITE_TIMEOUT_S,
    ) -> ResultT:
        """Like `write`, for what others have to wait for: its caller's pauses count all of that."""
        long = LongWrite(fn)
        result = self.write(long, timeout_s, size)
        long.charge()
        return result

    def write_grouped(
        self,
        handler: Handler[ItemT, ResultT],
        item: ItemT,
        timeout_s: float = WRITE_TIMEOUT_S,
        size: int = 1,
    ) -> ResultT:
        """Like `write`, for what is written often: one statement may then serve many callers.

        `handler(connection, items)` gets the items of all callers that wait for this handler, in
        order, and returns one result for each. Where it raises, it is called again with fewer
        items, until only the item that fails gets the error. The processor time of a call is of
        the threads that wait for it, in proportion to the `size` of their items.
        """
        return self._writer.write(handler, item, timeout_s, size)

    def note(self, handler: Handler[ItemT, ResultT], item: ItemT) -> None:
        """Like `write_grouped`, but nobody waits for it or hears whether it was written."""
        self._writer.note(handler, item)

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a read-only connection that sees one state of the database for the whole block.

        Its rows know their columns by name; they are fetched inside the block.
        Raises `StorageError`, also for `sqlite3` errors inside the block.
        """
        return self._readers.lend()

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """All rows of one query that an index answers at once; no `read` keeps it waiting.

        Cheaper than `read`, which every request would pay for. Raises `StorageError`.
        """
        with self._looking_up.lend(transaction=False) as connection:
            return connection.execute(query, values).fetchall()

    def remembered_rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Like `rows`, for tables written inside of `changing`: a server keeps them in memory."""
        if self._remembered is None:
            return self.rows(query, *values)
        return self._remembered.rows(query, *values)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """What is written in the block has every server read again what it remembers."""
        try:
            yield
        finally:
            # After a failure too: what took too long may still be written.
            if self._remembered is None:
                say_changed(self._path)
            else:
                self._remembered.say_changed()

    def check_writable(self, timeout_s: float) -> None:
        """Write a little, within `timeout_s` seconds. Raises `StorageError`."""
        # The writer looks too, but it may be waiting for a lock.
        self._file.check()
        now = int(time.time() * 1000).to_bytes(8)
        self.write(lambda connection: connection.execute(_TOUCH, (now,)).rowcount, timeout_s)

    def move_log(self) -> None:
        """Move what the log holds into the file, as far as no reader needs it; writers go on.

        Else whoever writes next has to do it. Raises `StorageError`.
        """
        try:
            with closing(self._file.connect(connections.writing)) as connection:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error as error:
            raise connections.storage_error(error) from error

    def close(self) -> None:
        """Write what is waiting, move the log into the file, and close; may be called again."""
        self._looking_up.close()
        self._readers.close()
        self._writer.close()
        if self._served is not None:
            self._served.leave()
            self._served = None

    def _save_log(self) -> None:
        """Have the writer find out, whose connection still has the log."""
        self.note(_do_nothing, None)


def _do_nothing(connection: sqlite3.Connection, items: Sequence[None]) -> Sequence[None]:
    return items


def _call(
    fn: Callable[[sqlite3.Connection], ResultT], connection: sqlite3.Connection, _: Sequence[None]
) -> list[ResultT]:
    return [fn(connection)]

"""The database file: opened, written by one thread, read by many."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

from svc.store import connections
from svc.store.migrations import Migration, prepare, shipped
from svc.store.readers import Readers
from svc.store.writer import NO_TURN, Handler, Writer

I = TypeVar("I")  # noqa: E741 - item
R = TypeVar("R")

BATCH = 256  # items that share a transaction at most
WRITE_TIMEOUT_S = 30.0  # seconds that a caller waits for its commit


class Database:
    """One open database; every thread of the process uses the same."""

    def __init__(self, path: Path, batch: int, turn: AbstractContextManager[None]) -> None:
        """For `open` alone."""
        self._writer = Writer(partial(connections.writing, path), batch, turn=turn)
        self._readers = Readers(partial(connections.reading, path))
        with self.read() as connection:
            (salt,) = connection.execute("SELECT value FROM meta WHERE name = 'salt'").fetchone()
        self.salt: bytes = salt  # 32 random bytes, made once for each database

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        migrations: Sequence[Migration] | None = None,
        batch: int = BATCH,
        turn: AbstractContextManager[None] = NO_TURN,
    ) -> Database:
        """Open the file at `path`, created or upgraded where needed.

        `migrations` lead from an empty file to the newest schema; without, those of this release.
        `turn` is taken for every transaction that writes.
        Raises `SettingsError` with one line that names the path and what is wrong; a file that is
        not this project's stays as it is.
        """
        path = Path(path)
        prepare(path, shipped() if migrations is None else migrations)
        return cls(path, batch, turn)

    def write(self, fn: Callable[[sqlite3.Connection], R], timeout: float = WRITE_TIMEOUT_S) -> R:
        """Run `fn` in the writer's transaction; returns what it returned once that is durable.

        `fn` neither begins nor ends a transaction. It may run more than once, of which the last
        run counts: after a failure, those that shared its transaction run again. Its own
        exception undoes it, it alone, and is raised here. Raises `StorageError` for what the
        database does not take, after `close`, and after `timeout` seconds; in this last case it
        may still be written later.
        """
        return self._writer.write(_call_each, fn, timeout)

    def write_grouped(self, handler: Handler[I, R], item: I, timeout: float = WRITE_TIMEOUT_S) -> R:
        """Like `write`, for what is written often: one statement may then serve many callers.

        `handler(connection, items)` gets the items of all who wait for this same handler, in
        order, and returns one result for each. What it raises fails one item at last: it is
        called again with fewer items until the one that fails stands alone.
        """
        return self._writer.write(handler, item, timeout)

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a read-only connection that sees one state of the database for the whole block.

        Its rows know their columns by name; they are fetched inside the block.
        Raises `StorageError`, also for `sqlite3` errors inside the block.
        """
        return self._readers.lend()

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """All rows of one query; cheaper than `read`, which every request would pay for.

        Raises `StorageError`.
        """
        with self._readers.lend(transaction=False) as connection:
            return connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Write what is waiting, move the log into the file, and close; may be called again."""
        self._readers.close()
        self._writer.close()


def _call_each(
    connection: sqlite3.Connection, fns: Sequence[Callable[[sqlite3.Connection], R]]
) -> list[R]:
    return [fn(connection) for fn in fns]

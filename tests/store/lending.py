"""A database that lends one connection, for tests that look at what is read on it."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from svc.store import Database


class _Lending:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        yield self._connection

    def write(self, step: Callable[[sqlite3.Connection], object]) -> object:
        return step(self._connection)


def plans(database: Database, use: Callable[[Database], object]) -> list[str]:
    """How SQLite finds the rows of each statement of `use`, which may write."""
    return database.write(lambda connection: _plans(connection, use))


def steps(database: Database, use: Callable[[Database], object]) -> int:
    """How many thousands of steps SQLite takes for what `use` reads or writes."""
    taken = itertools.count()

    def count(connection: sqlite3.Connection) -> int:
        connection.set_progress_handler(lambda: next(taken) < 0, 1_000)
        use(cast(Database, _Lending(connection)))
        connection.set_progress_handler(None, 0)
        return next(taken)

    return database.write(count)


def _plans(connection: sqlite3.Connection, use: Callable[[Database], object]) -> list[str]:
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    use(cast(Database, _Lending(connection)))
    connection.set_trace_callback(None)
    explained = [connection.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in seen]
    return ["; ".join(row[3] for row in rows) for rows in explained]

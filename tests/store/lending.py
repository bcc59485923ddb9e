"""A database that lends one connection, for tests that look at what is read on it."""

from __future__ import annotations

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


def plans(database: Database, read: Callable[[Database], object]) -> list[str]:
    """How SQLite finds the rows of each query of `read`."""
    seen: list[str] = []
    with database.read() as connection:
        connection.set_trace_callback(seen.append)
        read(cast(Database, _Lending(connection)))
        connection.set_trace_callback(None)
        explained = [connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall() for query in seen]
    return ["; ".join(row["detail"] for row in rows) for rows in explained]

"""The daily budget of calls, shared by every process that uses the database."""

from __future__ import annotations

import sqlite3

from svc.store.database import Database

_TAKE = (
    "INSERT INTO calls (day, spent) SELECT :day, 1 WHERE :limit > 0 "
    "ON CONFLICT (day) DO UPDATE SET spent = spent + 1 WHERE spent < :limit"
)
_SPENT = "SELECT spent FROM calls WHERE day = ?"


class CallBudget:
    """Counts the calls of each UTC day."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, day: str, limit: int) -> bool:
        """Count one call of `day`, an ISO date; False, and not counted, when the limit is reached.

        Raises `StorageError`.
        """

        def count(connection: sqlite3.Connection) -> bool:
            return connection.execute(_TAKE, {"day": day, "limit": limit}).rowcount == 1

        return self._database.write(count)

    def spent(self, day: str) -> int:
        """Calls counted on `day`. Raises `StorageError`."""
        with self._database.read() as connection:
            row = connection.execute(_SPENT, (day,)).fetchone()
        return int(row[0]) if row else 0

"""How often the writer waits for the interpreter, which other threads have meanwhile."""

from __future__ import annotations

import sqlite3

from svc.store import Database


def traced(database: Database) -> list[str]:
    """The statements that the writer carries out from now on."""
    statements: list[str] = []

    def trace(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(statements.append)

    database.write(trace)
    return statements

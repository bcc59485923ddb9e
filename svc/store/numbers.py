"""Numbers of rows that only grow, also where the last rows are deleted.

SQLite would give the number of a deleted row to the next one, and who still knows it, such as a
worker that keeps the labels of a question in memory, would take one for the other. Tables that have
AUTOINCREMENT need nothing of this.
"""

from __future__ import annotations

import sqlite3
from enum import Enum


class Numbered(Enum):
    """Tables, each with the column that has the numbers."""

    LABELS = ("labels", "id")
    QUESTIONS = ("questions", "id")
    JOBS = ("jobs", "seq")


_LAST = (
    "SELECT max(coalesce((SELECT max({1}) FROM {0}), 0), "
    "coalesce((SELECT value FROM meta WHERE name = ?), 0))"
)
_NOTE = (
    "INSERT INTO meta (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


def last_number(connection: sqlite3.Connection, table: Numbered) -> int:
    """The highest number that a row of the table has or had; 0 without any."""
    (last,) = connection.execute(_LAST.format(*table.value), (_name(table),)).fetchone()
    return int(last)


def note_last(connection: sqlite3.Connection, table: Numbered) -> None:
    """Remember the last number, before rows are deleted."""
    connection.execute(_NOTE, (_name(table), last_number(connection, table)))


def _name(table: Numbered) -> str:
    return f"last_of_{table.value[0]}"

"""Many rows in one statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

# The most rows of a statement, and up to how many each number of rows is a statement that SQLite
# prepares once and keeps. Beyond, only powers of two are, so that they are few.
TOGETHER, EACH_NUMBER = 512, 32


def insert(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows of equal length by a `statement` in which `{}` stands for their values.

    While SQLite works on a statement other threads run Python, and after it the writer waits until
    one of them gives the interpreter back. With a statement for each row a transaction, for which
    callers wait, would wait so for every row.
    """
    for _ in _executed(connection, statement, rows):
        pass


def find(
    connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]
) -> Iterator[Any]:
    """What a `statement` selects in which `{}` stands for the values of rows of equal length."""
    for cursor in _executed(connection, statement, rows):
        yield from cursor.fetchall()


def _executed(
    connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]
) -> Iterator[sqlite3.Cursor]:
    """The results of the statement, for some of the rows after the other."""
    start = 0
    while left := len(rows) - start:
        part = rows[start : start + _together(left)]
        start += len(part)
        yield connection.execute(_filled(statement, len(part), len(part[0])), [*chain(*part)])


def _together(rows: int) -> int:
    """How many of so many rows go into the next statement."""
    if rows <= EACH_NUMBER:
        return rows
    return int(min(TOGETHER, 2 ** (rows.bit_length() - 1)))


@lru_cache
def _filled(statement: str, rows: int, columns: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return statement.format(", ".join([row] * rows))

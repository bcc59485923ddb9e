"""Many rows in one statement."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

# The most rows of a statement, and up to how many each number of rows is a statement that SQLite
# prepares once and keeps. Beyond, only powers of two are: each keeps the values that it had last.
TOGETHER, EACH_NUMBER = 512, 8


def execute(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert or change by rows of equal length: `{}` in the `statement` stands for their values.

    While SQLite works on a statement other threads run Python, and after it the writer waits until
    one of them gives the interpreter back. With a statement for each row a transaction, for which
    callers wait, would wait so for every row.
    """
    for _ in _executed(connection, statement, rows):
        pass


def find(
    connection: sqlite3.Connection,
    statement: str,
    rows: Sequence[Sequence[Any]],
    together: int = TOGETHER,
) -> Iterator[list[Any]]:
    """What a `statement` selects by rows of equal length: a JSON array, with an array for each.

    `{}` in it stands for the values of at most `together` rows, each with its number first. Numbers
    with a fraction have 15 digits in JSON that SQLite writes.
    """
    numbered = [(number, *row) for number, row in enumerate(rows)]
    for cursor in _executed(connection, statement, numbered, together):
        yield from _listed(cursor)


def listed(
    connection: sqlite3.Connection, query: str, values: Mapping[str, Any] | Sequence[Any]
) -> list[Any]:
    """What a query selects that has one row, with a JSON array.

    The writer would wait for the interpreter after each row that it fetches.
    """
    return _listed(connection.execute(query, values))


def _listed(cursor: sqlite3.Cursor) -> list[Any]:
    (found,) = cursor.fetchone()
    return list(json.loads(found))


def _executed(
    connection: sqlite3.Connection,
    statement: str,
    rows: Sequence[Sequence[Any]],
    together: int = TOGETHER,
) -> Iterator[sqlite3.Cursor]:
    """The results of the statement, for some of the rows after the other."""
    start = 0
    while left := len(rows) - start:
        part = rows[start : start + min(together, _together(left))]
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

"""Many rows in one statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

# The most rows of a statement. Each number of rows up to this is a statement that SQLite prepares
# once and keeps.
TOGETHER = 32


def insert(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows of equal length by a `statement` in which `{}` stands for their values.

    While SQLite works on a statement other threads run Python, and after it the writer waits until
    one of them gives the interpreter back. With a statement for each row a transaction, for which
    callers wait, would wait so for every row.
    """
    for start in range(0, len(rows), TOGETHER):
        part = rows[start : start + TOGETHER]
        connection.execute(_filled(statement, len(part), len(part[0])), [*chain(*part)])


@lru_cache
def _filled(statement: str, rows: int, columns: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return statement.format(", ".join([row] * rows))

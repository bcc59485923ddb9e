"""The tables of a database with their columns, and what one of two schemas lacks."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

# The names of the columns by table.
Columns = Mapping[str, frozenset[str]]

_COLUMNS = (
    "SELECT tables.name, columns.name FROM sqlite_master AS tables "
    "JOIN pragma_table_info(tables.name) AS columns "
    "WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'"
)


def columns_of(connection: sqlite3.Connection) -> Columns:
    """What the database has."""
    found: dict[str, set[str]] = {}
    for table, column in connection.execute(_COLUMNS):
        found.setdefault(table, set()).add(column)
    return {table: frozenset(columns) for table, columns in found.items()}


def difference(found: Columns, expected: Columns) -> str | None:
    """The first thing in which a file is not what it should be; tables of others do no harm."""
    for table, columns in sorted(expected.items()):
        if table not in found:
            return f"it has no table {table!r}"
        if missing := sorted(columns - found[table]):
            return f"its table {table!r} has no column {missing[0]!r}"
        if unknown := sorted(found[table] - columns):
            return f"its table {table!r} has a column {unknown[0]!r} that is not known"
    return None

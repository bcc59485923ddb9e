from __future__ import annotations

import sqlite3

import pytest

from svc.store.rows import TOGETHER, insert


@pytest.mark.parametrize("count", [0, 1, TOGETHER, TOGETHER + 1, 5 * TOGETHER])
def test_every_row_is_inserted_in_order(count: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE numbers (place INTEGER PRIMARY KEY, number, square)")
    rows = [(number, number**2) for number in range(count)]
    insert(connection, "INSERT INTO numbers (number, square) VALUES {}", rows)
    found = connection.execute("SELECT number, square FROM numbers ORDER BY place")
    assert found.fetchall() == rows

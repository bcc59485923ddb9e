from __future__ import annotations

import sqlite3

import pytest

from svc.store.rows import EACH_NUMBER, TOGETHER, execute, find


@pytest.mark.parametrize(
    "count", [0, 1, EACH_NUMBER, EACH_NUMBER + 1, TOGETHER + 1, 5 * TOGETHER - 1]
)
def test_every_row_is_inserted_in_order(count: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE numbers (place INTEGER PRIMARY KEY, number, square)")
    rows = [(number, number**2) for number in range(count)]
    execute(connection, "INSERT INTO numbers (number, square) VALUES {}", rows)
    found = connection.execute("SELECT number, square FROM numbers ORDER BY place")
    assert found.fetchall() == rows


@pytest.mark.parametrize("together", [1, 7, TOGETHER])
def test_what_is_found_by_many_rows_comes_in_few(together: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE numbers (number INTEGER PRIMARY KEY, name)")
    connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(3, "three"), (40, 'fo"rty\0')])
    statement = (
        "WITH wanted (place, number) AS (VALUES {}) "
        "SELECT json_group_array(json_array(number, name)) "
        "FROM wanted CROSS JOIN numbers USING (number)"
    )
    wanted = [(number,) for number in range(100)]
    found = list(find(connection, statement, wanted, together))
    assert found[0] == [3, "three"] and found[1][0] == 40
    assert list(find(connection, statement, [], together)) == []

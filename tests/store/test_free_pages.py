from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from svc.store.free_pages import FreePages

PAGE = 4_096


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file with some thousands of free pages, listed on several."""
    path = tmp_path / "free.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, text)")
        connection.execute("CREATE TABLE dropped (number INTEGER PRIMARY KEY, text)")
        for table in ("kept", "dropped", "kept", "dropped"):
            connection.execute(
                "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1500) "
                f"INSERT INTO {table} (text) SELECT zeroblob(4000) FROM n"
            )
        connection.execute("DROP TABLE dropped")
    return path


def read(content: bytes) -> FreePages:
    pages = len(content) // PAGE
    return FreePages(
        lambda number: content[(number - 1) * PAGE : number * PAGE],
        int.from_bytes(content[32:36]),
        pages,
    )


def test_the_free_pages_are_those_that_no_table_has(path: Path) -> None:
    free = read(path.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        try:
            rows = connection.execute("SELECT pageno FROM dbstat")
            taken = {row[0] for row in rows}
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no dbstat")
    found = free.among(range(1, pages + 1))
    assert count == len(free) == len(found) > 2_000
    assert taken.isdisjoint(found)
    assert len([used for used in found.values() if used]) >= 3


def test_some_pages_are_looked_for_among_all(path: Path) -> None:
    free = read(path.read_bytes())
    every = free.among(range(1, 10_000))
    some = [*every][::7]
    assert free.among([1, 2, *some, 1_000_000]) == {number: every[number] for number in some}
    assert free.among([]) == {}


@pytest.mark.parametrize("first", [0, 3, 10**9])
def test_what_is_no_list_ends_it(first: int) -> None:
    leads_back = (3).to_bytes(4) + (2**31).to_bytes(4) + b"\xff" * (PAGE - 8)
    pages = FreePages(lambda _: leads_back, first, 5)
    assert pages.among([1, 2, 3, 4, 5]) == ({3: PAGE} if first == 3 else {})
    assert len(FreePages(lambda _: b"", 3, 5)) == 0

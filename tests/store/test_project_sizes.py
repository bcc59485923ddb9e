"""A bound of what a project's decisions fill."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from svc.store import ProjectFull
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.erasing import erase
from svc.store.project_sizes import WORDING_ROW_BYTES, ProjectSizes, asked_bytes
from tests.clock import Clock
from tests.store.records import asked, record


class Busy:
    """A database in which something happens before and after each look, and which notes writes."""

    def __init__(self, database: Database, meanwhile: Callable[[], object]) -> None:
        self._database, self._meanwhile = database, meanwhile
        self.written: list[str] = []

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        self._meanwhile()
        with self._database.read() as connection:
            yield connection
        self._meanwhile()

    def write(self, fn: Callable[[sqlite3.Connection], object]) -> object:
        def traced(connection: sqlite3.Connection) -> object:
            connection.set_trace_callback(self.written.append)
            try:
                return fn(connection)
            finally:
                connection.set_trace_callback(None)

        return self._database.write(traced)


def used(sizes: ProjectSizes) -> int:
    (one,) = sizes.all()
    return one.bytes


def file_bytes(database: Database) -> int:
    (row,) = database.rows("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
    return int(row[0])


def test_each_question_of_a_decision_counts_also_where_another_says_the_same(
    database: Database,
) -> None:
    """Its number stands in the row and in an index."""
    sizes, decisions = ProjectSizes(database), Decisions(database)
    many = record(*(asked(f"q{number}", f"Which {number}?") for number in range(1_000)))
    decisions.add(many)
    sizes.set("default", 10**9)
    before, file = used(sizes), file_bytes(database)
    for _ in range(100):
        decisions.add(many)
    assert used(sizes) - before > 0.9 * (file_bytes(database) - file)
    sizes.set("default", 10**9)
    counted = used(sizes)
    sizes.set("default", 2 * 10**9)
    assert used(sizes) == counted


def test_a_project_stores_no_more_than_it_may_and_others_go_on(database: Database) -> None:
    sizes, decisions = ProjectSizes(database), Decisions(database)
    decisions.add(record())
    sizes.set("default", 5_000)
    first = used(sizes)
    wording = WORDING_ROW_BYTES + len(record().questions[0].definition)
    wording += asked_bytes("default", "topic")
    each = first - wording
    assert 600 < each < 1_000
    for count in range(2, 100):
        try:
            decisions.add(record())
        except ProjectFull as error:
            assert '"default"' in error.message and "svc project set" in error.message
            break
        assert used(sizes) == wording + count * each
    assert used(sizes) <= 5_000 < used(sizes) + each
    stored = len(decisions.page("default", 100).entries)
    assert stored == (used(sizes) - wording) // each
    decisions.add(record(project="other"))
    sizes.set("default", 5_001)
    assert used(sizes) == wording + stored * each
    sizes.set("default", None)
    decisions.add(record())
    assert sizes.all() == []


def test_a_project_cannot_fill_the_disk_with_wordings(database: Database) -> None:
    sizes, decisions = ProjectSizes(database), Decisions(database)
    sizes.set("default", 100_000)
    long = [record(asked("topic", f"{number} " + "🙂" * 1_700)) for number in range(10)]
    stored = 0
    with pytest.raises(ProjectFull):
        for one in long:
            decisions.add(one)
            stored += 1
    assert stored == 4
    counted = used(sizes)
    (size,) = database.rows("SELECT sum(length(CAST(definition AS BLOB))) FROM questions")
    assert counted > size[0] > 80_000
    sizes.set("default", 100_000)
    assert used(sizes) == counted
    # What is stored already takes no more room, nor where another project brought it.
    decisions.add(long[0])
    assert used(sizes) - counted < 1_000
    decisions.add(record(asked("topic", "🙂" * 1_000), project="other"))
    decisions.add(record(asked("topic", "🙂" * 1_000)))
    assert used(sizes) - counted < 2_000


@pytest.mark.parametrize("limit", [None, 100_000])
def test_what_there_is_is_summed_while_others_store_and_delete(
    database: Database, limit: int | None
) -> None:
    sizes, decisions = ProjectSizes(database), Decisions(database)
    for number in range(20):
        decisions.add(record(ref="r" * number))
    sizes.set("default", limit)

    def meanwhile() -> None:
        oldest = [row[0] for row in database.rows("SELECT seq FROM decisions ORDER BY seq LIMIT 5")]
        database.write(lambda connection: erase(connection, oldest))
        decisions.add(record(asked(f"new {oldest}"), ref="new"))

    busy = Busy(database, meanwhile)
    ProjectSizes(cast(Database, busy)).set("default", 10_000)
    assert len(busy.written) >= 2
    assert not any("decisions" in statement for statement in busy.written)
    (counted,) = sizes.all()
    assert counted.max_bytes == 10_000
    sizes.set("default", 10_000)
    assert sizes.all() == [counted]


def test_of_two_commands_at_once_the_last_one_counts(database: Database) -> None:
    sizes, decisions = ProjectSizes(database), Decisions(database)
    decisions.add(record())
    limits: list[int | None] = [5_000, None, 6_000]
    busy = Busy(database, lambda: limits and sizes.set("default", limits.pop()))
    ProjectSizes(cast(Database, busy)).set("default", 7_000)
    (counted,) = sizes.all()
    assert counted.max_bytes == 7_000 and 0 < counted.bytes < 2_000 and not limits
    sizes.set("default", 7_000)
    assert sizes.all() == [counted]


@pytest.mark.parametrize("length", [10, 1_400, 9_000])
def test_a_project_cannot_fill_the_disk_with_keys_of_one_wording(
    database: Database, length: int
) -> None:
    sizes, decisions = ProjectSizes(database), Decisions(database)
    sizes.set("default", 10**9)
    decisions.add(record())
    before, counted = file_bytes(database), used(sizes)
    for number in range(100):
        keys = [f"{number} {key} {'é' * length}" for key in range(20)]
        decisions.add(record(*map(asked, keys), answers={}))
    counted = used(sizes) - counted
    assert 0.6 < (file_bytes(database) - before) / counted < 1.3
    again = used(sizes)
    sizes.set("default", 10**9)
    assert used(sizes) == again


def test_long_names_of_models_count(database: Database) -> None:
    sizes, decisions = ProjectSizes(database), Decisions(database)
    sizes.set("default", 10**9)
    decisions.add(record())
    before = used(sizes)
    decisions.add(record(model="é" * 300, provider_models="m" * 400))
    assert used(sizes) - before > 1_600
    decisions.add(record(model="é" * 300, provider_models="m" * 400))
    counted = used(sizes)
    sizes.set("default", 10**9)
    assert used(sizes) == counted


def test_a_full_project_is_known_before_any_model_is_asked(database: Database) -> None:
    clock = Clock(0.0)
    sizes = ProjectSizes(database, clock)
    sizes.check("default")
    sizes.set("default", 10)
    sizes.check("default")
    clock.now = 1.0
    with pytest.raises(ProjectFull):
        sizes.check("default")
    sizes.check("other")

"""What is deleted is looked for in every table that refers to it, without reading it whole."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from svc.store import Database, Labels, Overview, ReviewQueue, Weeks
from svc.store.erasing import erase
from svc.store.retention import Retentions, Sweeping
from svc.store.review import Look
from svc.store.wordings import drop_unused, drop_with_sums, note_deleted
from tests.store.lending import plans

OTHERS = 5_000  # rows of other wordings in each table
WORDINGS = 60_000

# Steps of SQLite's virtual machine: a few hundred for what is found by indexes. To read one of
# these tables takes three for each of its rows.
MOST_STEPS = 3_000


def indexes(connection: sqlite3.Connection, table: str) -> list[tuple[list[str], str]]:
    """The columns of each index of a table, and its statement."""
    found = []
    for _, name, *_ in connection.execute(f"PRAGMA index_list({table})").fetchall():
        named = [row[2] for row in connection.execute(f"PRAGMA index_info({name})")]
        query = "SELECT coalesce(sql, '') FROM sqlite_master WHERE name = ?"
        # That of a primary key has none.
        (sql,) = connection.execute(query, (name,)).fetchone() or ("",)
        found.append((named, sql))
    return found


def test_every_reference_is_found_by_an_index_that_begins_with_it(database: Database) -> None:
    with database.read() as connection:
        tables = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        references = 0
        for table in tables:
            for key in connection.execute(f"PRAGMA foreign_key_list({table})").fetchall():
                references += 1
                column = key[3]
                assert any(
                    named[0] == column and ("WHERE" not in sql or f"WHERE {column} IS" in sql)
                    for named, sql in indexes(connection, table)
                ), f"{table}.{column}"
    assert references > 20


WORDING = ("default", 1)
OF_ONE_PROJECT: dict[str, Callable[[Database], object]] = {
    "questions": lambda lent: Overview(lent).questions("default", "", 10, 1_000),
    "weeks": lambda lent: Weeks(lent).read(*WORDING, 3, 0),
    "answers of challengers": lambda lent: Labels(lent).of_challengers(*WORDING, 10),
    "a look that closes rounds": lambda lent: ReviewQueue(lent).enter(
        WORDING, Look(0, 0, [], []), [], [], 0
    ),
    "what is handed out": lambda lent: ReviewQueue(lent).hand_out(WORDING, "ann", 1, 0, 1),
    "labels of the queue": lambda lent: ReviewQueue(lent).drawn(WORDING, 10),
}


@pytest.mark.parametrize("name", OF_ONE_PROJECT)
def test_what_one_project_reads_is_found_as_if_no_wording_were_ever_deleted(
    tmp_path: Path, name: str
) -> None:
    """Projects share wordings: an index that begins with one leads to what all of them have."""
    found = []
    # In two files, because SQLite goes on to explain a statement as it did before an index went.
    for without in (
        (),
        ("weeks", "challengers", "review_frames", "review_levels", "review_rounds"),
    ):
        path = tmp_path / f"{len(without)}.db"
        with closing(Database.open(path)) as database:
            database.write(fill)
        with closing(sqlite3.connect(path)) as connection:
            for table in without:
                connection.execute(f"DROP INDEX {table}_by_question")
        with closing(Database.open(path)) as database:
            found.append(plans(database, OF_ONE_PROJECT[name]))
    assert found[0] == found[1]


def fill(connection: sqlite3.Connection) -> None:
    """Wordings with sums, keys, labels and places in the queue, and two that are about to go."""
    for number in (1, 2, 3):
        connection.execute(
            "INSERT INTO questions (id, digest, definition) VALUES (?, ?, '{}')",
            (number, bytes([number])),
        )
    connection.execute(
        "INSERT INTO decisions (id, created_at, project, state_hash, model, mode, config, privacy, "
        "latency_ms, cost_usd, cached, answers, readings, question_ids) VALUES "
        "(x'01', 1, 'default', x'', 'm', 'auto', 'c', 'standard', 1, 0, 0, '{}', '{}', '[1]')"
    )
    connection.execute("INSERT INTO review_rounds (project, question_id) VALUES ('default', 1)")
    for number in range(OTHERS):
        name = f"k{number}"
        connection.execute("INSERT INTO weeks VALUES ('default', 1, 1, ?, 1, 1.0, 1.0)", (name,))
        connection.execute("INSERT INTO asked VALUES ('default', ?, 1, 1)", (name,))
        connection.execute(
            "INSERT INTO labels (decision_seq, key, project, question_id, label, truth, p, "
            "review_round) VALUES (1, ?, 'default', 1, '\"a\"', 0, '[]', 1)",
            (name,),
        )
        connection.execute(
            "INSERT INTO judgements (decision_seq, key, project, question_id, reviewer, "
            "created_at) VALUES (1, ?, 'default', 1, 'ann', 1)",
            (name,),
        )
        connection.execute(
            "INSERT INTO review_items VALUES (1, ?, 'default', 1, 1, 0, 0.5, 0.5, 0, NULL, NULL)",
            (name,),
        )
    # The last one had a round of the queue and a sum.
    connection.execute("INSERT INTO review_rounds (project, question_id) VALUES ('default', 3)")
    connection.execute("INSERT INTO weeks VALUES ('default', 3, 1, 'a', 1, 1.0, 1.0)")
    note_deleted(connection, {3: 1})


class Counted:
    """A database whose transactions that write are counted in steps of SQLite."""

    def __init__(self, database: Database) -> None:
        self._database, self.steps = database, [0]
        self.read = database.read

    def write(self, step: Callable[[sqlite3.Connection], Any]) -> Any:
        def counting(connection: sqlite3.Connection) -> object:
            self.steps.append(0)
            connection.set_progress_handler(self._count, 1)
            try:
                return step(connection)
            finally:
                connection.set_progress_handler(None, 0)

        return self._database.write(counting)

    def _count(self) -> int:
        self.steps[-1] += 1
        return 0


@pytest.mark.parametrize(
    ("drop", "gone"), [(lambda held: drop_unused(held, lambda: True), 2), (drop_with_sums, 3)]
)
def test_a_wording_is_dropped_without_reading_what_others_have(
    database: Database, drop: Callable[[Database], int], gone: int
) -> None:
    database.write(fill)
    counted = Counted(database)
    assert drop(cast(Database, counted)) == 1
    assert 0 < max(counted.steps) < MOST_STEPS
    with database.read() as connection:
        left = {row[0] for row in connection.execute("SELECT id FROM questions")}
    assert left == {1, 2, 3} - {gone}


def test_the_last_of_many_that_refer_to_a_decision_is_found_without_reading_all(
    database: Database,
) -> None:
    database.write(fill)
    database.write(refer)
    counted = Counted(database)
    # The first one is referred to by all others; a few of them are passed on with each call.
    assert counted.write(lambda connection: erase(connection, [1], referrers=10)) is False
    assert 0 < max(counted.steps) < MOST_STEPS
    with database.read() as connection:
        (heir,) = connection.execute("SELECT max(seq) FROM decisions").fetchone()
        query = "SELECT count(*) FROM decisions WHERE same_as = ?"
        assert connection.execute(query, (heir,)).fetchone()[0] == 10


def refer(connection: sqlite3.Connection) -> None:
    """Decisions that all refer to the first one for what they say."""
    copies(connection, ((b"%d" % number, "[1]", 1) for number in range(OTHERS)))


def copies(connection: sqlite3.Connection, differ: Iterable[tuple[bytes, str, int | None]]) -> None:
    """Decisions like the first one but for their ids, wordings, and what they refer to."""
    copied = (
        "INSERT INTO decisions (id, created_at, project, state_hash, model, mode, config, privacy, "
        "latency_ms, cost_usd, cached, answers, readings, question_ids, same_as) "
        "SELECT ?, created_at, project, state_hash, model, mode, config, privacy, latency_ms, "
        "cost_usd, cached, '', '', ?, ? FROM decisions WHERE seq = 1"
    )
    connection.executemany(copied, differ)


def ask_many(connection: sqlite3.Connection) -> None:
    """Wordings of which each is asked once, 64 by each decision, as rules answer them."""
    first = 1_000
    rows = ((first + n, b"%d" % n) for n in range(WORDINGS))
    connection.executemany("INSERT INTO questions (id, digest, definition) VALUES (?, ?, '')", rows)
    for start in range(first, first + WORDINGS, 64):
        wordings = list(range(start, min(start + 64, first + WORDINGS)))
        copies(connection, [(b"%d" % start, json.dumps(wordings), None)])


def test_however_many_wordings_there_are_few_are_held_in_memory(database: Database) -> None:
    """A key may make millions a day."""
    database.write(fill)
    database.write(ask_many)
    tracemalloc.start()
    try:
        assert drop_unused(database, lambda: True) == 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Ids in a set take a hundred bytes each.
    assert most < WORDINGS * 40
    (left,) = database.rows("SELECT count(*) FROM questions")
    assert left[0] == WORDINGS + 2


def test_wordings_of_decisions_of_all_projects_are_looked_at_in_steps(database: Database) -> None:
    def ask(connection: sqlite3.Connection) -> None:
        fill(connection)
        # Two are asked by single decisions of other projects, the first and the last.
        copies(connection, ((b"%d" % number, "[1]", None) for number in range(OTHERS)))
        connection.execute("UPDATE decisions SET project = 'b' WHERE seq % 2")
        connection.execute("UPDATE decisions SET project = 'a', question_ids = '[2]' WHERE seq = 9")
        connection.execute("UPDATE decisions SET project = 'c' WHERE seq > ?", (OTHERS - 9,))

    database.write(ask)
    rests: list[None] = []

    def goes_on() -> bool:
        rests.append(None)
        return len(rests) < 2

    # Between the first and the second two thousand, and between these and the rest.
    assert drop_unused(database, goes_on) == 0
    assert len(rests) == 2
    assert drop_unused(database, lambda: True) == 0
    database.write(lambda connection: connection.execute("DELETE FROM decisions WHERE seq = 9"))
    assert drop_unused(database, lambda: True) == 1


def test_where_no_rows_of_jobs_are_old_nobody_waits_for_the_look(database: Database) -> None:
    Retentions(database).set("default", 1)
    counted = Counted(database)
    assert not Sweeping(cast(Database, counted)).job_rows("default")(1)
    assert counted.steps == [0]

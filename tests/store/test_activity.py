from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import astuple
from pathlib import Path

import pytest

from svc.records import SKIPPED, Answer, Source
from svc.store import Activity, By, Database, Spans, Sums, TooManySums
from svc.store.activity import ANSWERED_DAYS, NAMES
from svc.store.decisions import SWEPT_SUMS, Decisions
from svc.store.kept_names import KEPT_NAMES, NAME_CHARS, OTHERS
from svc.store.migrations import shipped
from tests.clock import Clock
from tests.store.lending import plans
from tests.store.records import asked, record

SURE = Answer(Source.MODELS, {"choice": "a"}, "a", 0.9)
UNSURE = Answer(Source.MODELS, {"choice": "a"}, "a", 0.4, abstains=True)
NAMES_OF = "SELECT name, decisions FROM activity WHERE span = ? AND by = ? AND project = ?"
NOON = 1_800_000_000 // Spans.DAY * Spans.DAY + 12 * Spans.HOUR
THIS_HOUR = range(NOON, NOON + Spans.HOUR, Spans.HOUR)


def starts(span: int) -> range:
    """The starts of spans from the day of `NOON` on."""
    first = NOON // Spans.DAY * Spans.DAY
    return range(first, first + 14 * Spans.DAY, span)


DAYS = starts(Spans.DAY)


@pytest.fixture
def clock() -> Clock:
    return Clock(float(NOON))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database.open(tmp_path / "svc.db")) as opened:
        yield opened


@pytest.fixture
def decisions(database: Database, clock: Clock) -> Decisions:
    return Decisions(database, clock)


@pytest.fixture
def activity(database: Database) -> Activity:
    return Activity(database)


def test_decisions_are_summed_up_by_model_and_by_question(
    decisions: Decisions, activity: Activity
) -> None:
    two = (asked("a"), asked("b"))
    decisions.add(
        record(*two, answers={"a": SURE, "b": UNSURE}, model="m", cost_usd=0.5, latency_ms=100)
    )
    decisions.add(record(*two, answers={"a": UNSURE, "b": SKIPPED}, model="m,n", cached=True))
    by_model = activity.read(By.MODEL, THIS_HOUR, "default")
    assert by_model.by_name["m"] == Sums(
        decisions=1, answers=2, abstained=1, cost_usd=0.5, latency_ms=100
    )
    assert (by_model.by_name["m,n"].cached, by_model.by_name["m,n"].abstained) == (1, 1)
    assert by_model.by_start[NOON].decisions == 2
    by_question = activity.read(By.QUESTION, THIS_HOUR, "default").by_name
    assert (by_question["a"].decisions, by_question["a"].abstained) == (2, 1)
    assert (by_question["b"].decisions, by_question["b"].abstained) == (1, 1)


def test_projects_are_told_apart(decisions: Decisions, activity: Activity) -> None:
    for project in ("shop", "shop", "desk"):
        decisions.add(record(project=project))
    assert activity.read(By.MODEL, DAYS, "shop").by_name["@demo/lexical"].decisions == 2
    everything = activity.read(By.PROJECT, DAYS, None)
    assert {name: sums.decisions for name, sums in everything.by_name.items()} == {
        "shop": 2,
        "desk": 1,
    }
    assert list(everything.by_name) == ["shop", "desk"]
    assert set(activity.read(By.PROJECT, DAYS, "desk").by_name) == {"desk"}


def test_a_project_is_read_without_looking_at_the_sums_of_others(
    decisions: Decisions, database: Database
) -> None:
    decisions.add(record(project="shop"))
    found = plans(database, lambda lent: Activity(lent).read(By.MODEL, THIS_HOUR, "shop"))
    assert len(found) == 2
    for plan in found:
        assert "(span=? AND by=? AND start=? AND project=?)" in plan


def test_a_report_on_all_projects_reads_so_many_sums(
    decisions: Decisions, database: Database
) -> None:
    for number in range(3):
        decisions.add(record(project=f"p{number}"))
    assert len(Activity(database, most=3).read(By.PROJECT, THIS_HOUR, None).by_name) == 3
    few = Activity(database, most=2)
    with pytest.raises(TooManySums, match="over 2 sums"):
        few.read(By.PROJECT, THIS_HOUR, None)
    assert few.read(By.PROJECT, THIS_HOUR, "p1").by_name.keys() == {"p1"}


def test_each_span_has_its_own_steps(
    decisions: Decisions, activity: Activity, clock: Clock
) -> None:
    for minutes in (0, 4, 5, 61):
        clock.now = NOON + 60 * minutes
        decisions.add(record())
    counts = {
        span: [
            sums.decisions
            for sums in activity.read(By.MODEL, starts(span), "default").by_start.values()
        ]
        for span in Spans
    }
    assert counts == {Spans.FIVE_MINUTES: [2, 1, 1], Spans.HOUR: [3, 1], Spans.DAY: [4]}


def test_what_no_model_answered_is_counted_apart(decisions: Decisions, activity: Activity) -> None:
    decisions.add(record(model="m"))
    decisions.add_failure("default", "m")
    decisions.add_failure("default", "m")
    # Written after them, so that they are there as well.
    decisions.add(record(model="m"))
    (sums,) = activity.read(By.MODEL, DAYS, "default").by_name.values()
    assert (sums.decisions, sums.failed) == (2, 2)


def test_failures_of_models_that_never_answered_are_counted_together(
    decisions: Decisions, activity: Activity, clock: Clock
) -> None:
    decisions.add(record(model="m"))
    for name in ("made", "up", "made", "m" * 5_000):
        decisions.add_failure("default", name)
    clock.now += ANSWERED_DAYS * Spans.DAY
    decisions.add_failure("default", "m")
    decisions.add_failure("desk", "m")
    decisions.add(record())
    days = range(DAYS.start, DAYS.start + 60 * Spans.DAY, Spans.DAY)
    by_name = activity.read(By.MODEL, days, "default").by_name
    assert {name: sums.failed for name, sums in by_name.items() if sums.failed} == {
        OTHERS: 4,
        "m": 1,
    }
    assert set(activity.read(By.MODEL, days, "desk").by_name) == {OTHERS}


def test_sums_over_short_spans_are_deleted_and_those_of_days_stay(
    decisions: Decisions, activity: Activity, clock: Clock
) -> None:
    decisions.add(record())
    clock.now += 10 * Spans.DAY
    decisions.add(record())
    kept = {span: len(activity.read(By.MODEL, starts(span), "default").by_start) for span in Spans}
    assert kept == {Spans.FIVE_MINUTES: 1, Spans.HOUR: 1, Spans.DAY: 2}


def test_many_old_sums_are_deleted_a_part_with_each_decision(
    decisions: Decisions, database: Database
) -> None:
    long_ago = NOON - 30 * Spans.DAY
    fill = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "INSERT INTO activity SELECT ?, 'question', ?, 'p', 'q' || i, 1, 0, 0, 1, 0, 0, 0 FROM n"
    )
    for span, many in ((Spans.FIVE_MINUTES, 500), (Spans.HOUR, SWEPT_SUMS + 1_000)):
        database.write(lambda connection, of=(many, span, long_ago): connection.execute(fill, of))  # type: ignore[misc]
    left = []
    for _ in range(3):
        decisions.add(record())
        ((old,),) = database.rows("SELECT count(*) FROM activity WHERE start = ?", long_ago)
        left.append(old)
    assert left == [1_500, 0, 0]


def test_a_report_names_those_with_the_most_decisions(
    decisions: Decisions, activity: Activity
) -> None:
    for number in range(NAMES + 5):
        decisions.add(record(model=f"m{number}"))
    decisions.add(record(model="m3"))
    report = activity.read(By.MODEL, DAYS, "default")
    assert len(report.by_name) == NAMES
    assert next(iter(report.by_name)) == "m3"
    (all_of_them,) = report.by_start.values()
    assert all_of_them.decisions == NAMES + 6


def test_a_span_of_a_project_has_only_so_many_names_and_counts_the_others_under_one(
    decisions: Decisions, activity: Activity, database: Database
) -> None:
    many = {f"q{number}": SURE for number in range(KEPT_NAMES + 5)}
    for _ in range(2):
        decisions.add(record(*map(asked, many), answers=many))
    decisions.add(record(asked("late"), answers={"late": SURE}))
    decisions.add(record(asked("q7"), answers={"q7": SURE}, project="desk"))
    for span in Spans:
        rows = database.rows(NAMES_OF, span, By.QUESTION, "default")
        found = dict(rows)
        assert len(found) == KEPT_NAMES + 1
        assert (found["q7"], found[OTHERS]) == (2, 11)
        assert "q7" in activity.read(By.QUESTION, starts(span), "desk").by_name


def test_a_long_name_counts_as_one_of_the_others(decisions: Decisions, activity: Activity) -> None:
    for key in ("k" * NAME_CHARS, "k" * (NAME_CHARS + 1)):
        decisions.add(record(asked(key), answers={key: SURE}))
    assert set(activity.read(By.QUESTION, DAYS, "default").by_name) == {
        "k" * NAME_CHARS,
        OTHERS,
    }


def test_decisions_of_before_are_counted_by_model_when_the_file_is_upgraded(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "svc.db"
    before = next(
        n for n, one in enumerate(shipped()) if isinstance(one, str) and "TABLE activity" in one
    )
    with closing(Database.open(path, migrations=shipped()[:before])):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        for seq, cost in enumerate((0.25, 0.5), 1):
            connection.execute(
                "INSERT INTO decisions (seq, id, created_at, project, state_hash, model, mode, "
                "config, privacy, latency_ms, cost_usd, cached, answers, readings, question_ids) "
                "VALUES (?, ?, ?, 'shop', x'00', 'm', 'verbal', 'c', 'standard', 10, ?, 0, "
                "'{}', '{}', '[]')",
                (seq, bytes([seq]), NOON * 1_000, cost),
            )
    with closing(Database.open(path)) as database:
        report = Activity(database).read(By.MODEL, THIS_HOUR, "shop")
    assert astuple(report.by_name["m"]) == (2, 0, 0, 0, 0, 0.75, 20.0)

import sqlite3

import pytest

from svc import limits
from svc.store import KeptAnswer, KeptAnswers, ProjectFull, ProjectSizes, kept_answers
from svc.store.decisions import Decisions
from tests.clock import Clock
from tests.store.records import record

DAY = limits.IDEMPOTENCY_KEPT_S


def answer(place, sent=b"s"):
    return KeptAnswer(place, sent, b"{}")


def places(path):
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT place FROM kept_answers ORDER BY place").fetchall()
    connection.close()
    return [place for (place,) in rows]


def test_an_answer_is_found_for_a_day(database):
    clock = Clock()
    kept = KeptAnswers(database, clock)
    kept.keep(answer(b"a"))
    assert kept.find(b"b") is None
    clock.now += DAY - 1
    assert kept.find(b"a") == answer(b"a")
    clock.now += 1
    assert kept.find(b"a") is None


def test_a_long_answer_is_kept_compressed(database, path):
    kept, long = KeptAnswers(database, Clock()), b'{"answers":{' + b'"option":0.000123,' * 10_000
    kept.keep(KeptAnswer(b"a", b"s", long))
    assert kept.find(b"a").answer == long
    connection = sqlite3.connect(path)
    ((size,),) = connection.execute("SELECT length(answer) FROM kept_answers").fetchall()
    connection.close()
    assert size < len(long) / 10


def test_after_a_day_another_one_may_take_its_place(database):
    clock = Clock()
    kept = KeptAnswers(database, clock)
    kept.keep(answer(b"a"))
    clock.now += DAY
    kept.keep(answer(b"a", b"other"))
    assert kept.find(b"a") == answer(b"a", b"other")


def test_answers_count_in_what_their_project_fills_as_long_as_they_are_kept(database):
    clock, sizes = Clock(), ProjectSizes(database)
    kept = KeptAnswers(database, clock)
    kept.keep(KeptAnswer(b"before", b"s", b"x" * 1_000, project="shop"))
    sizes.set("shop", 3_000)
    sizes.set("other", 3_000)
    kept.keep(KeptAnswer(b"a", b"s", b"x" * 1_000, project="shop"))
    with pytest.raises(ProjectFull, match="shop"):
        kept.keep(KeptAnswer(b"b", b"s", b"x" * 1_000, project="shop"))
    assert kept.find(b"b") is None
    kept.keep(KeptAnswer(b"c", b"s", b"x" * 1_000))
    filled = {one.project: one.bytes for one in sizes.all()}
    assert filled["other"] == 0 and 2_000 < filled["shop"] < 2_500
    clock.now += DAY
    kept.keep(KeptAnswer(b"a", b"s", b"", project="shop"))
    assert {one.project: one.bytes for one in sizes.all()}["shop"] < 250


def test_old_ones_are_deleted_as_new_ones_come(database, path):
    clock = Clock()
    kept = KeptAnswers(database, clock)
    for number in range(40):
        kept.keep(answer(b"old %d" % number))
    clock.now += DAY
    for number in range(3):
        kept.keep(answer(b"new %d" % number))
    assert places(path) == [b"new 0", b"new 1", b"new 2"]


def test_old_ones_are_deleted_as_decisions_come(database, path):
    clock = Clock()
    KeptAnswers(database, clock).keep(answer(b"a"))
    decisions = Decisions(database, clock)
    decisions.add(record())
    assert places(path) == [b"a"]
    clock.now += DAY
    decisions.add(record())
    assert places(path) == []


def test_many_old_ones_are_deleted_a_few_with_each_decision(database, path):
    """All at once they would keep those waiting who store decisions."""
    clock = Clock()
    kept = KeptAnswers(database, clock)
    for number in range(3 * kept_answers.SWEPT):
        kept.keep(answer(b"%d" % number))
    decisions = Decisions(database, clock)
    clock.now += DAY
    for decided in (1, 2, 3):
        decisions.add(record())
        assert len(places(path)) == (3 - decided) * kept_answers.SWEPT


def test_an_answer_that_is_not_kept_leaves_the_id_of_its_decision(database):
    kept = KeptAnswers(database)
    without = KeptAnswer(b"a", b"s", None, "dec_1")
    kept.keep(without)
    assert kept.find(b"a") == without

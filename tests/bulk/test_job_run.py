"""What a job makes of the failures of its rows, on a clock of the test."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest

from svc.bulk.job_run import DAILY_LIMIT, MODELS, PROVIDER_RATE, JobRun, Pauses
from svc.bulk.pace import Pace
from svc.bulk.row_queue import WaitingRow
from svc.errors import (
    ApiError,
    BudgetSpent,
    DollarsSpent,
    ModelError,
    NoAnswer,
    OutOfCalls,
    PartlyLimited,
    RateLimited,
    WrongWay,
)
from svc.schemas import load_template
from svc.store import Database, Job, Spool, SpoolLost
from tests.clock import Clock
from tests.store.copies import copied
from tests.web.models import ANIMAL

FAILED = ModelError("no answer")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    database = Database.open(copied(tmp_path / "svc.db"))
    yield Spool(database, tmp_path / "svc.db", "master")
    database.close()


def begun(
    spool: Spool,
    clock: Clock,
    rows: int,
    settled: tuple[int, ...] = (),
    of: int = 0,
    chars: int = 100_000,
    at_once: int = 18,
) -> JobRun:
    texts = [f'{{"id":"{n}","state":"{"x" * chars}"}}' for n in range(1, rows + 1)]
    with spool.writing("job_a", "{}", texts):
        pass
    job = Job(id="job_a", project="p", api_key=None, created_at=0, expires_at=9, rows=of or rows)
    numbers = bytearray(job.rows + 1)
    for number in settled:
        numbers[number] = 1
    template = load_template({"questions": {"q": ANIMAL}})
    return JobRun(job, template, spool.opened("job_a"), numbers, clock, Pauses(), at_once)


def taken(run: JobRun, most: int | None = None) -> list[WaitingRow]:
    """All rows that may be asked now, or the first of them."""
    return list(islice(iter(run.take, None), most))  # type: ignore[arg-type]


def test_rows_come_in_order_without_those_that_are_settled(spool: Spool, clock: Clock) -> None:
    run = begun(spool, clock, 9, settled=(1, 2, 3, 4, 8))
    assert [row.number for row in taken(run)] == [5, 6, 7, 9]
    assert (run.under_way, run.settled) == (4, 5)
    run.rows.close()


def test_no_more_rows_are_asked_at_a_time_than_is_said(spool: Spool, clock: Clock) -> None:
    run = begun(spool, clock, 9, at_once=2)
    first, second = taken(run)
    run.answered(first)
    (third,) = taken(run)
    run.failed(second, FAILED)
    run.settled_without_model(third)
    assert len(taken(run)) == 2
    run.rows.close()


def test_a_file_with_fewer_rows_than_the_job_is_lost(spool: Spool, clock: Clock) -> None:
    run = begun(spool, clock, 2, of=3)
    with pytest.raises(SpoolLost, match="cut short"):
        taken(run)
    run.rows.close()


def test_a_row_that_fails_is_tried_three_times_with_longer_and_longer_waits(
    spool: Spool, clock: Clock
) -> None:
    run = begun(spool, clock, 1)
    for wait_s in (2.0, 10.0):
        (row,) = taken(run)
        assert not run.failed(row, FAILED)
        clock.now += wait_s - 0.1
        assert taken(run) == []
        clock.now += 0.2
    (row,) = taken(run)
    assert run.failed(row, FAILED) and run.under_way == 1
    run.settled_without_model(row)
    assert run.is_finished and run.under_way == 0
    run.rows.close()


def test_ten_rows_that_fail_in_a_row_are_an_outage_that_no_row_pays_for(
    spool: Spool, clock: Clock
) -> None:
    run = begun(spool, clock, 16)
    for row in taken(run):
        run.failed(row, FAILED)
    assert run.waiting_for == MODELS
    waits = []
    for _ in range(8):
        since = clock.now
        while not (rows := taken(run)):
            clock.now += 0.5
        waits.append(clock.now - since)
        assert len(rows) == 1
        assert not run.failed(rows[0], FAILED)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128]
    clock.now += 256
    (row,) = taken(run)
    run.answered(row)
    assert run.waiting_for is None
    clock.now += 10
    assert len(taken(run)) == 15
    run.rows.close()


def test_an_outage_costs_at_most_twenty_rows_in_an_hour(spool: Spool, clock: Clock) -> None:
    run = begun(spool, clock, 16)
    for row in taken(run):
        run.failed(row, FAILED)
    asked = []
    for _ in range(3 * 3_600):
        for row in taken(run):
            asked.append(clock.now)
            run.failed(row, FAILED)
        clock.now += 1
    hours = range(int(asked[0]), int(asked[-1]), 60)
    assert max(sum(hour <= at < hour + 3_600 for at in asked) for hour in hours) <= 20
    # And it is found out soon that the models answer again.
    assert max(later - earlier for earlier, later in pairwise(asked)) <= 301
    run.rows.close()


def test_many_first_rows_that_always_fail_stop_no_others(spool: Spool, clock: Clock) -> None:
    """Those of the first blocks: their models answer every row of later ones."""
    run, given_up, since = begun(spool, clock, 4_000, chars=1_000), [], clock.now
    while not run.is_finished and clock.now - since < 6 * 3_600:
        for row in taken(run, 16):
            if row.number > 1_000:
                run.answered(row)
            elif run.failed(row, FAILED):
                run.settled_without_model(row)
                given_up.append(row.number)
        clock.now += 1
    assert run.is_finished and sorted(given_up) == list(range(1, 1_001))
    run.rows.close()


def test_an_outage_keeps_few_long_rows_in_memory_and_all_are_answered_after_it(
    spool: Spool, clock: Clock
) -> None:
    tracemalloc.start()
    run, tried = begun(spool, clock, 300, at_once=4), set[int]()
    run.rows.ahead_chars = 1_000_000
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(12 * 3_600):
        for row in taken(run):
            tried.add(row.number)
            run.failed(row, FAILED)
        clock.now += 1
    assert len(tried) > 100
    assert tracemalloc.get_traced_memory()[0] - before < 3_000_000
    tracemalloc.stop()
    while not run.is_finished:
        for row in taken(run):
            assert row.text == f'{{"id":"{row.number}","state":"{"x" * 100_000}"}}'
            run.answered(row)
        clock.now += 1
    run.rows.close()


def test_one_row_that_always_fails_stops_no_other(spool: Spool, clock: Clock) -> None:
    run = begun(spool, clock, 30)
    given_up = 0
    while not run.is_finished:
        for row in taken(run):
            if row.number != 7:
                run.answered(row)
            elif run.failed(row, FAILED):
                run.settled_without_model(row)
                given_up += 1
        clock.now += 1
    assert given_up == 1
    run.rows.close()


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_rows_that_need_no_model_do_not_end_an_outage(
    spool: Spool, clock: Clock, share: float
) -> None:
    """They are answered by rules or from the cache, at once, while the others fail for an hour."""
    rows, draw, since = 2_000, random.Random(2), clock.now
    free = {number for number in range(1, rows + 1) if draw.random() < share}
    run, asked = begun(spool, clock, rows, chars=100), 0
    while not run.is_finished and clock.now - since < 2 * 3_600:
        for row in taken(run, 16):
            is_out = clock.now - since < 3_600
            asked += is_out and row.number not in free
            if row.number in free:
                run.settled_without_model(row)
            elif is_out:
                assert not run.failed(row, FAILED)
            else:
                run.answered(row)
        clock.now += 1
    assert run.is_finished
    assert asked < 16 + 20 + 10
    run.rows.close()


@pytest.mark.parametrize(("withheld", "rows"), [(12, 112), (40, 340), (30, 30), (600, 4_000)])
def test_rows_that_no_model_ever_answers_stop_no_others_and_have_their_errors(
    spool: Spool, clock: Clock, withheld: int, rows: int
) -> None:
    """The first rows are withheld by a filter, one after the other."""
    run, given_up, since = begun(spool, clock, rows, chars=1_000), [], clock.now
    while not run.is_finished and clock.now - since < 24 * 3_600:
        for row in taken(run, 16):
            if row.number > withheld:
                run.answered(row)
            elif run.failed(row, NoAnswer("withheld")):
                run.settled_without_model(row)
                given_up.append(row.number)
        clock.now += 1
    assert sorted(given_up) == list(range(1, withheld + 1))
    assert clock.now - since < 3_600
    run.rows.close()


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_many_rows_that_no_model_answers_are_no_outage_for_the_others(
    spool: Spool, clock: Clock, share: float
) -> None:
    rows, draw, since = 1_000, random.Random(2), clock.now
    withheld = {number for number in range(1, rows + 1) if draw.random() < share}
    run = begun(spool, clock, rows, chars=100)
    answered = 0
    while answered < rows - len(withheld) and clock.now - since < 24 * 3_600:
        for row in taken(run, 16):
            if row.number not in withheld:
                run.answered(row)
                answered += 1
            elif run.failed(row, NoAnswer("withheld")):
                run.settled_without_model(row)
        clock.now += 1
    assert answered == rows - len(withheld)
    assert clock.now - since < 3_600
    run.rows.close()


def test_models_that_give_no_answer_to_any_row_are_an_outage_while_rows_are_left(
    spool: Spool, clock: Clock
) -> None:
    run = begun(spool, clock, 300)
    asked = 0
    for _ in range(5 * 3_600):
        for row in taken(run, 16):
            asked += 1
            assert not run.failed(row, NoAnswer("nonsense"))
        clock.now += 1
    assert run.waiting_for == MODELS
    assert asked < 16 + 5 * 20 + 10
    run.rows.close()


@pytest.mark.parametrize("error", [WrongWay("no log-probabilities"), OutOfCalls("80 of 64")])
def test_what_no_waiting_can_help_is_no_outage(
    spool: Spool, clock: Clock, error: ModelError
) -> None:
    run, since, waiting = begun(spool, clock, 300, chars=100), clock.now, 0
    while not run.is_finished and clock.now - since < 24 * 3_600:
        for row in taken(run, 16):
            waiting += row.tries == 0
            if run.failed(row, error):
                run.settled_without_model(row)
                waiting -= 1
        # Memory holds few of them at a time.
        assert waiting <= 100 + 16
        clock.now += 1
    assert run.is_finished and clock.now - since < 600
    run.rows.close()


def test_what_a_gateway_refuses_for_half_a_minute_costs_no_row(spool: Spool, clock: Clock) -> None:
    run, since = begun(spool, clock, 400, chars=100), clock.now
    while not run.is_finished and clock.now - since < 3_600:
        for row in taken(run, 16):
            if clock.now - since > 30:
                run.answered(row)
            else:
                assert not run.failed(row, WrongWay("no log-probabilities"))
        clock.now += 1
    assert run.is_finished
    run.rows.close()


@pytest.mark.parametrize("error", [WrongWay("refused"), NoAnswer("refused")])
def test_what_a_model_refuses_that_has_answered_others_may_be_an_outage(
    spool: Spool, clock: Clock, error: ModelError
) -> None:
    run, since = begun(spool, clock, 2_000, chars=100), clock.now
    while not run.is_finished and clock.now - since < 24 * 3_600:
        for row in taken(run, 16):
            if 60 < clock.now - since < 1_800:
                assert not run.failed(row, error)
            else:
                run.answered(row)
        clock.now += 1
    assert run.is_finished
    run.rows.close()


@pytest.mark.parametrize("limited", [RateLimited("rate", 7), PartlyLimited("rate", 7)])
def test_a_providers_rate_is_waited_for_and_costs_no_try(
    spool: Spool, clock: Clock, limited: ApiError
) -> None:
    run = begun(spool, clock, 2)
    first, second = taken(run)
    for _ in range(5):
        run.failed(first, limited)
        assert run.waiting_for == PROVIDER_RATE and taken(run) == []
        clock.now += 7
        (first,) = taken(run)
        assert first.tries == 0
    run.answered(first)
    run.answered(second)
    run.rows.close()


@pytest.mark.parametrize("retry_after", [1, 3_600])
@pytest.mark.parametrize(
    "large", [{7}, {1, 7, 900}, set(range(100, 2_000, 100)), set(range(1, 151))], ids=len
)
def test_rows_to_which_the_rate_is_always_refused_stop_no_others_and_have_their_errors(
    spool: Spool, clock: Clock, large: set[int], retry_after: int
) -> None:
    """A provider may say so of a call that is larger than what it allows in a minute."""
    run, given_up, others_s = begun(spool, clock, 2_000, chars=100), set(), 0.0
    answered, since = 0, clock.now
    while not run.is_finished and clock.now - since < 24 * 3_600:
        for row in taken(run, 16):
            if row.number not in large:
                run.answered(row)
                answered += 1
            elif run.failed(row, RateLimited("rate", retry_after)):
                run.settled_without_model(row)
                given_up.add(row.number)
        if answered == 2_000 - len(large) and not others_s:
            others_s = clock.now - since
        clock.now += 1
    # Up to three pauses for each, and what the others take by themselves.
    assert 0 < others_s < 125 + 3 * len(large) * min(retry_after + 1, 60)
    # Where no other is asked any more, nobody knows whether the rate is used up.
    assert given_up <= large
    run.rows.close()


@pytest.mark.parametrize("spent", [BudgetSpent("spent", 60), DollarsSpent("spent", 60)])
def test_a_row_for_which_a_budget_has_no_room_waits_also_where_others_have(
    spool: Spool, clock: Clock, spent: RateLimited
) -> None:
    run, since = begun(spool, clock, 3_000, chars=100), clock.now
    while clock.now - since < 3_600:
        for row in taken(run, 2):
            if row.number == 7:
                assert not run.failed(row, spent)
            else:
                run.answered(row)
        clock.now += 1
    assert run.settled > 30
    run.rows.close()


@pytest.mark.parametrize("retry_after", [1, 60])
def test_a_rate_that_is_refused_to_all_rows_costs_none_of_them(
    spool: Spool, clock: Clock, retry_after: int
) -> None:
    """Ten rows a minute, of sixteen that are asked at a time in any order."""
    run, draw, answered = begun(spool, clock, 1_000, chars=100), random.Random(2), 0
    minute, left, since = -1, 0, clock.now
    while not run.is_finished and clock.now - since < 24 * 3_600:
        if clock.now // 60 != minute:
            minute, left = clock.now // 60, 10
        rows = taken(run, 16)
        draw.shuffle(rows)
        for row in rows:
            if left:
                left -= 1
                run.answered(row)
                answered += 1
            else:
                assert not run.failed(row, RateLimited("rate", retry_after))
        clock.now += 1
    assert answered == 1_000
    assert clock.now - since < 1.5 * 100 * 60
    run.rows.close()


def test_the_daily_limit_is_waited_for_until_the_next_day(spool: Spool, clock: Clock) -> None:
    run = begun(spool, clock, 1)
    (row,) = taken(run)
    run.failed(row, BudgetSpent("spent", 40_000))
    clock.now += 39_999
    assert run.waiting_for == DAILY_LIMIT and taken(run) == []
    clock.now += 1
    assert len(taken(run)) == 1
    run.rows.close()


def test_the_end_is_estimated_from_the_last_minutes() -> None:
    pace = Pace()
    assert pace.left_s(0, 0, 100) is None
    pace.note(0, 0)
    assert pace.left_s(10, 0, 100) is None
    for second in range(0, 200, 5):
        # It is slow at first: one a second, and after a minute two.
        pace.note(second, second if second < 60 else 60 + 2 * (second - 60))
    assert pace.left_s(195, 330, 1_330) == pytest.approx(1_000 / 2, rel=0.05)

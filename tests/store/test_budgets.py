import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from svc import limits
from svc.store import (
    NANO,
    Account,
    Budget,
    Budgets,
    Claim,
    Job,
    Jobs,
    Per,
    Scope,
    TooManyBudgets,
    new_id,
)
from svc.store.budgets import PERIODS
from svc.store.database import Database

SHOP = Budget(Scope.PROJECT, "shop", Per.DAY, 10 * NANO)
DAY_S = 86_400
NOON = datetime(2026, 12, 31, 12, tzinfo=UTC).timestamp()
TODAY = Account(Scope.PROJECT, "shop", Per.DAY, "2026-12-31")


def moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def budgets_of(database: Database) -> Budgets:
    return Budgets(database, now=lambda: NOON)


@pytest.fixture
def budgets(database: Database) -> Budgets:
    made = budgets_of(database)
    made.set(SHOP)
    return made


def reserve(budgets: Budgets, dollars: float, wish: float = 0.0, account: Account = TODAY) -> float:
    """How much is reserved, in dollars."""
    least = int(dollars * NANO)
    (grant,) = budgets.claim([Claim(account, 0, 0, least, max(least, int(wish * NANO)))])
    return grant.amount / NANO


@pytest.mark.parametrize(
    ("per", "at", "period", "renews"),
    [
        (Per.DAY, "2026-12-31T23:59:59", "2026-12-31", "2027-01-01T00:00:00"),
        (Per.DAY, "2027-01-01T00:00:00", "2027-01-01", "2027-01-02T00:00:00"),
        (Per.DAY, "2028-02-29T08:00:00", "2028-02-29", "2028-03-01T00:00:00"),
        (Per.MONTH, "2026-12-31T23:59:59", "2026-12", "2027-01-01T00:00:00"),
        (Per.MONTH, "2027-01-31T00:00:00", "2027-01", "2027-02-01T00:00:00"),
        (Per.MONTH, "2027-02-01T00:00:00", "2027-02", "2027-03-01T00:00:00"),
    ],
)
def test_days_and_months_are_those_of_utc(per: Per, at: str, period: str, renews: str) -> None:
    assert per.period(moment(at)) == period
    assert per.renews_at(moment(at)) == moment(renews)


def test_a_budget_of_a_job_never_renews() -> None:
    assert Per.JOB.period(NOON) == ""
    assert math.isinf(Per.JOB.renews_at(NOON))


def test_a_budget_is_kept_and_its_limit_can_be_changed(budgets: Budgets) -> None:
    changed = Budget(Scope.PROJECT, "shop", Per.DAY, 5 * NANO, hard=False, warn_at=0.5)
    budgets.set(changed)
    assert budgets.in_force() == [changed]


def test_a_project_has_a_budget_a_day_and_another_one_a_month(budgets: Budgets) -> None:
    monthly = Budget(Scope.PROJECT, "shop", Per.MONTH, 100 * NANO)
    budgets.set(monthly)
    assert budgets.in_force() == [SHOP, monthly]


def test_a_removed_budget_bounds_nothing(budgets: Budgets) -> None:
    assert budgets.remove(Scope.PROJECT, "shop", Per.DAY)
    assert not budgets.remove(Scope.PROJECT, "shop", Per.DAY)
    assert budgets.in_force() == []
    assert reserve(budgets, 1_000) == 1_000


def test_what_does_not_fit_is_not_reserved(budgets: Budgets) -> None:
    assert [reserve(budgets, 4), reserve(budgets, 4), reserve(budgets, 4)] == [4, 4, 0]
    assert reserve(budgets, 2) == 2


def test_a_wish_gets_a_hundredth_of_what_is_left(budgets: Budgets) -> None:
    assert reserve(budgets, 0.01, wish=5) == 0.1
    assert reserve(budgets, 8) == 8
    assert reserve(budgets, 0.001, wish=5) == pytest.approx(0.019)


def test_a_budget_that_only_warns_gives_everything(budgets: Budgets) -> None:
    budgets.set(Budget(Scope.PROJECT, "shop", Per.DAY, NANO, hard=False))
    assert reserve(budgets, 50, wish=70) == 70


def test_a_claim_says_what_was_spent_and_gives_the_rest_back(budgets: Budgets) -> None:
    assert reserve(budgets, 9) == 9
    budgets.claim([Claim(TODAY, 2 * NANO, -9 * NANO)])
    (state,) = budgets.states()
    assert (state.spent, state.reserved) == (2 * NANO, 0)
    assert reserve(budgets, 8.5) == 0
    assert reserve(budgets, 8) == 8


def test_the_next_period_begins_with_nothing_spent(budgets: Budgets) -> None:
    tomorrow = TODAY._replace(period="2027-01-01")
    assert [reserve(budgets, 10), reserve(budgets, 10)] == [10, 0]
    assert [reserve(budgets, 10, account=tomorrow), reserve(budgets, 1, account=tomorrow)] == [
        10,
        0,
    ]


def test_only_so_many_periods_are_kept(budgets: Budgets, database: Database) -> None:
    days = [Per.DAY.period(NOON + n * DAY_S) for n in range(PERIODS + 2)]
    for day in days:
        reserve(budgets, 1, account=TODAY._replace(period=day))
    kept = [row[0] for row in database.rows("SELECT period FROM budget_spending")]
    assert kept == days[2:]


def test_what_is_spent_is_known_after_a_clock_was_ahead_over_several_periods(
    budgets: Budgets,
) -> None:
    assert reserve(budgets, 10) == 10
    for day in ("2027-01-01", "2027-02-03", "2028-02-03"):
        assert reserve(budgets, 1, account=TODAY._replace(period=day)) == 1
    assert reserve(budgets, 1) == 0
    (state,) = budgets.states()
    assert state.taken == 10 * NANO


def test_the_warning_level_is_told_once_a_period(budgets: Budgets) -> None:
    told = [budgets.claim([Claim(TODAY, 0, 0, NANO, NANO)])[0].warned for _ in range(9)]
    assert told == [None] * 7 + [SHOP, None]
    tomorrow = TODAY._replace(period="2027-01-01")
    (grant,) = budgets.claim([Claim(tomorrow, 0, 0, 8 * NANO, 8 * NANO)])
    assert grant.warned == SHOP


def test_a_limit_that_was_raised_warns_anew(budgets: Budgets) -> None:
    reserve(budgets, 9)
    raised = Budget(Scope.PROJECT, "shop", Per.DAY, 20 * NANO)
    budgets.set(raised)
    assert budgets.claim([Claim(TODAY, 0, 0, NANO, NANO)])[0].warned is None
    assert budgets.claim([Claim(TODAY, 0, 0, 6 * NANO, 6 * NANO)])[0].warned == raised


def test_what_is_reserved_outlasts_the_process_that_reserved_it(path: Path) -> None:
    for granted in (10, 0):
        database = Database.open(path)
        budgets = budgets_of(database)
        budgets.set(SHOP)
        assert reserve(budgets, 10) == granted
        database.close()


def test_there_are_only_so_many_budgets(database: Database) -> None:
    budgets = budgets_of(database)
    rows = [("key", f"key_{number}", "day", NANO, 1, 0.8) for number in range(limits.BUDGETS)]
    query = "INSERT INTO budgets VALUES (?, ?, ?, ?, ?, ?)"
    database.write(lambda connection: connection.executemany(query, rows).rowcount)
    with pytest.raises(TooManyBudgets):
        budgets.set(SHOP)
    budgets.set(Budget(Scope.KEY, "key_7", Per.DAY, 2 * NANO))
    assert len(budgets.in_force()) == limits.BUDGETS


def test_an_open_job_has_the_budget_that_came_with_it(budgets: Budgets, database: Database) -> None:
    jobs = Jobs(database)
    fields = {"project": "shop", "api_key": None, "created_at": 0, "expires_at": 10**15, "rows": 1}
    jobs.add(Job(id=new_id(), **fields))
    job = Job(id=new_id(), budget_usd=2.5, **fields)
    jobs.add(job)
    seq = jobs.get(job.id).seq
    assert jobs.get(job.id).budget_usd == 2.5
    assert budgets.in_force() == [
        SHOP,
        Budget(Scope.JOB, str(seq), Per.JOB, int(2.5 * NANO), warn_at=1.0),
    ]
    account = Account(Scope.JOB, str(seq), Per.JOB, "")
    assert [reserve(budgets, 2, account=account), reserve(budgets, 2, account=account)] == [2, 0]
    assert [one.budget for one in budgets.states()] == [SHOP]

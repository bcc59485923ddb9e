from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from svc.errors import DollarsReserved, DollarsSpent, JobSpent, QuotaSpent
from svc.spending import Purse, Purses, Slices
from svc.store import NANO, Account, Budget, Claim, Grant, Per, Scope

SHOP = Budget(Scope.PROJECT, "shop", Per.DAY, 5 * NANO)
MONTHLY = Budget(Scope.PROJECT, "shop", Per.MONTH, 100 * NANO)
KEY = Budget(Scope.KEY, "key_1", Per.DAY, NANO)
JOB = Budget(Scope.JOB, "7", Per.JOB, 2 * NANO)


class World:
    """Budgets in memory, with both clocks in the test's hand."""

    def __init__(self, *budgets: Budget, **given: object) -> None:
        self.budgets, self.reads, self.claims = list(budgets), 0, 0
        self.now = datetime(2026, 12, 31, 23, 59, tzinfo=UTC).timestamp()
        self.seconds = 0.0
        self.taken: dict[Account, int] = {}
        self.spent: dict[Account, int] = {}
        slices = Slices(self._claim, look_every_s=3_600)
        clocks = {"now": lambda: self.now, "clock": lambda: self.seconds}
        self.purses = Purses(self._in_force, slices, **clocks, **given)  # type: ignore[arg-type]

    def _in_force(self) -> list[Budget]:
        self.reads += 1
        return self.budgets

    def _claim(self, claims: Sequence[Claim]) -> list[Grant]:
        self.claims += 1
        return [self._grant(claim) for claim in claims]

    def _grant(self, claim: Claim) -> Grant:
        scope, _subject, per, _period = claim.account
        (limit,) = [one.limit for one in self.budgets if (one.scope, one.per) == (scope, per)]
        taken = self.taken.get(claim.account, 0) + claim.spent + claim.change
        amount = claim.least if taken + claim.least <= limit else 0
        self.taken[claim.account] = taken + amount
        spent = self.spent[claim.account] = self.spent.get(claim.account, 0) + claim.spent
        refused = claim.least > amount
        return Grant(amount, None, refused, refused and spent + claim.least <= limit)

    def purse(self, project: str = "shop", key: str | None = None, job: int | None = None) -> Purse:
        found = self.purses.of(project, key, job)
        assert found is not None
        return found


def spend(purse: Purse, dollars: float) -> None:
    purse.reserve(dollars)(dollars)


def test_a_request_has_the_budgets_of_its_project_its_key_and_its_job() -> None:
    world = World(SHOP, MONTHLY, KEY, JOB)
    assert world.purse("shop").budgets == [SHOP, MONTHLY]
    assert world.purse("shop", "key_1", 7).budgets == [SHOP, MONTHLY, KEY, JOB]
    assert world.purses.of("other", "key_2", 8) is None


def test_without_budgets_nothing_is_read_but_once_a_second_and_nothing_written() -> None:
    world = World()
    for _ in range(100):
        assert world.purses.of("shop", "key_1") is None
    assert (world.reads, world.claims) == (1, 0)
    world.seconds = 1.0
    world.purses.of("shop", "key_1")
    assert world.reads == 2


def test_a_budget_that_was_set_counts_within_a_second() -> None:
    world = World()
    assert world.purses.of("shop", None) is None
    world.budgets.append(SHOP)
    world.seconds = 1.0
    assert world.purse("shop").budgets == [SHOP]


def test_the_first_row_of_a_job_meets_its_budget() -> None:
    world = World()
    assert world.purses.of("shop", None, 6) is None
    world.budgets.append(JOB)
    assert world.purse("shop", None, 7).budgets == [JOB]
    reads = world.reads
    world.purse("shop", None, 7)
    assert world.reads == reads


def test_a_day_ends_at_midnight_and_its_budget_renews() -> None:
    world = World(SHOP)
    spend(world.purse(), 5)
    with pytest.raises(DollarsSpent) as refused:
        world.purse().reserve(0.01)
    assert refused.value.message == (
        'the budget of project "shop", $5 a day, is spent; it renews at 2027-01-01T00:00:00Z'
    )
    assert refused.value.retry_after == 60
    world.now += 59
    with pytest.raises(DollarsSpent) as refused:
        world.purse().reserve(0.01)
    assert refused.value.retry_after == 1
    world.now += 1
    spend(world.purse(), 5)
    with pytest.raises(DollarsSpent):
        world.purse().reserve(0.01)


def test_a_month_ends_with_its_last_day() -> None:
    world = World(MONTHLY)
    spend(world.purse(), 100)
    with pytest.raises(DollarsSpent, match="a month, is spent; it renews at 2027-01-01T00:00:00Z"):
        world.purse().reserve(1)
    world.now += 60
    spend(world.purse(), 100)
    world.now += 30 * 86_400
    with pytest.raises(DollarsSpent) as refused:
        world.purse().reserve(1)
    assert refused.value.retry_after == 86_400


def test_a_call_that_began_before_midnight_is_paid_by_that_day() -> None:
    world = World(SHOP)
    settle = world.purse().reserve(4)
    world.now += 60
    spend(world.purse(), 5)
    settle(3)
    with pytest.raises(DollarsSpent):
        world.purse().reserve(0.01)


def test_the_budget_of_a_job_says_whether_calls_may_leave_room() -> None:
    world = World(JOB)
    settle = world.purse(job=7).reserve(2)
    with pytest.raises(JobSpent) as refused:
        world.purse(job=7).reserve(1)
    assert refused.value.calls_under_way
    settle(2)
    with pytest.raises(JobSpent, match=r"the budget of the job, \$2, is spent") as refused:
        world.purse(job=7).reserve(1)
    assert not refused.value.calls_under_way


def test_what_calls_under_way_have_reserved_is_not_called_spent() -> None:
    world = World(SHOP)
    settle = world.purse().reserve(4)
    with pytest.raises(DollarsReserved) as refused:
        world.purse().reserve(2)
    assert refused.value.message == (
        'the budget of project "shop", $5 a day, is reserved for calls under way; try again'
    )
    assert refused.value.retry_after == 5 and refused.value.calls_under_way
    settle(0)
    spend(world.purse(), 4)
    with pytest.raises(DollarsSpent, match="is spent; it renews"):
        world.purse().reserve(2)


def test_what_costs_nothing_is_never_refused_and_never_claimed() -> None:
    world = World(SHOP)
    spend(world.purse(), 5)
    claims = world.claims
    spend(world.purse(), 0)
    assert world.claims == claims


def test_tiny_amounts_count() -> None:
    world = World(SHOP)
    settle = world.purse().reserve(1e-10)
    settle(1e-10)
    assert sum(world.taken.values()) == 1


def test_a_purse_is_hard_if_one_of_its_budgets_is() -> None:
    soft = Budget(Scope.PROJECT, "shop", Per.DAY, NANO, hard=False)
    assert not World(soft).purse().hard
    assert World(soft, KEY).purse(key="key_1").hard


def test_a_run_may_end_with_an_error_of_its_own() -> None:
    world = World(SHOP, ends=QuotaSpent)
    with pytest.raises(QuotaSpent, match="is spent"):
        world.purse().reserve(6)


def test_what_a_challenger_is_asked_is_paid_by_its_own_budget_and_its_projects() -> None:
    own = Budget(Scope.CHALLENGER, "3", Per.DAY, NANO)
    world = World(SHOP, KEY)
    world.purse("shop")
    # One that came since is looked for at once, however short ago that was done.
    world.budgets.append(own)
    purse = world.purses.of_challenger("shop", "3", None)
    assert purse is not None and purse.budgets == [SHOP, own]
    spend(purse, 1.0)
    with pytest.raises(DollarsSpent, match="the budget of challenger 3, \\$1 a day, is spent"):
        spend(purse, 0.5)
    assert world.purses.of_challenger("other", "4", None) is None


def test_the_budget_of_a_job_is_known_once_that_or_a_later_one_was_looked_for() -> None:
    """Nothing is kept of each: a process that runs jobs may meet millions."""
    world = World(JOB)
    world.purses.of("shop", None, 6)
    assert world.reads == 1
    assert world.purse("shop", None, 7).budgets == [JOB]
    assert world.reads == 2
    for job in (5, 6, 7):
        world.purses.of("shop", None, job)
    assert world.reads == 2

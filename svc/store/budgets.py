"""Budgets in dollars: their limits, and what of each is spent or reserved, over all processes.

Amounts are whole nanodollars, so that sums of them are exact. A process reserves an amount here
before it makes calls, and says later how much of that was spent. What a killed process had reserved
is never given back, and counts until the budget renews.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from svc import limits
from svc.store.database import Database
from svc.store.errors import TooManyBudgets

NANO = 1_000_000_000

# A process reserves this part of what is left at most, but for calls that wait for it.
PARTS = 100

# How many periods of a budget are remembered: calls that began before it renewed are settled in the
# one before, and a clock that was ahead comes back to one that it had left.
PERIODS = 32


# What a budget has reached in a period: nothing yet is 0.
WARNED, EXHAUSTED = 1, 2


class Scope(StrEnum):
    """Whose calls a budget bounds."""

    PROJECT = "project"
    KEY = "key"
    JOB = "job"
    CHALLENGER = "challenger"


class Per(StrEnum):
    """For how long a budget is; days and months are those of UTC. One of a job never renews."""

    DAY = "day"
    MONTH = "month"
    JOB = "job"

    def period(self, now: float) -> str:
        """The name of the period at a time in unix seconds."""
        if self is Per.JOB:
            return ""
        day = datetime.fromtimestamp(now, UTC).date().isoformat()
        return day if self is Per.DAY else day[:7]

    def renews_at(self, now: float) -> float:
        """When the period after that begins, in unix seconds; infinite for a job."""
        if self is Per.JOB:
            return math.inf
        today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is Per.DAY:
            return (today + timedelta(days=1)).timestamp()
        # Every month has ended 31 days after its first day.
        return (today.replace(day=1) + timedelta(days=31)).replace(day=1).timestamp()


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit in nanodollars for a project by its name, a key by its id, or a job by its row.

    A challenger has one by its row too. One that is not `hard` only warns. `warn_at` is the share
    of the limit at which it does.
    """

    scope: Scope
    subject: str
    per: Per
    limit: int
    hard: bool = True
    warn_at: float = limits.BUDGET_WARNS_AT


class Account(NamedTuple):
    """A budget in one of its periods."""

    scope: Scope
    subject: str
    per: Per
    period: str


class Claim(NamedTuple):
    """What a process asks of an account; amounts are in nanodollars.

    `spent` counts as spent from now on. `change` is by how much that changes what the process has
    reserved. It needs `least` more, takes `wish` where there is plenty, and nothing where that is
    0.
    """

    account: Account
    spent: int
    change: int
    least: int = 0
    wish: int = 0


class Grant(NamedTuple):
    """What was reserved for a claim: 0 where the least did not fit, or that of a claim beside it.

    `warned` is the budget where this claim was the first to reach its warning level. A claim is
    `refused` that did not fit itself; `later` says of one that it would, were nothing reserved for
    calls under way.
    """

    amount: int
    warned: Budget | None
    refused: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget, and how much of its present period is `spent` and `reserved`, in nanodollars."""

    budget: Budget
    spent: int
    reserved: int

    @property
    def taken(self) -> int:
        """What is not left of it."""
        return self.spent + self.reserved


@dataclass(frozen=True, slots=True)
class ReachedBudget:
    """A budget of a project, or of a key for this project alone, past its warning level.

    `exhausted` says that its limit is reached, or that a call did not fit into the rest.
    """

    state: BudgetState
    project: str
    period: str
    exhausted: bool


_OF_BUDGETS = "SELECT scope, subject, per, nanodollars, hard, warn_at FROM budgets"
_OF_JOBS = (
    "SELECT 'job', CAST(seq AS TEXT), 'job', nanodollars, 1, 1.0 FROM jobs "
    "WHERE nanodollars IS NOT NULL"
)
_STATES = """
SELECT scope, subject, per, nanodollars, hard, warn_at, coalesce(spent, 0), coalesce(reserved, 0)
FROM budgets LEFT JOIN (
    SELECT * FROM budget_spending WHERE period = CASE per WHEN 'day' THEN ?1 ELSE ?2 END
) USING (scope, subject, per)
WHERE (scope = 'challenger') = ?3 ORDER BY scope, subject, per
"""
_REACHED = f"""
SELECT scope, subject, per, nanodollars, hard, warn_at, spent, reserved,
    iif(scope = 'project', subject, project), period, warned = {EXHAUSTED}
FROM budget_spending JOIN budgets USING (scope, subject, per)
LEFT JOIN api_keys ON scope = 'key' AND api_keys.id = subject
WHERE warned AND period = CASE per WHEN 'day' THEN ?1 ELSE ?2 END
AND (scope = 'project' OR scope = 'key' AND project IS NOT NULL) ORDER BY scope, subject, per
"""
_IN_FORCE = f"{_OF_BUDGETS} UNION ALL {_OF_JOBS} AND status IN ('waiting', 'running')"
_ONE = f"{_OF_BUDGETS} WHERE scope = ? AND subject = ? AND per = ?"
_ONE_OF_A_JOB = f"{_OF_JOBS} AND seq = ?"
_COUNT = "SELECT count(*) FROM budgets"
_SET = (
    "INSERT INTO budgets (scope, subject, per, nanodollars, hard, warn_at) "
    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (scope, subject, per) DO UPDATE SET "
    "nanodollars = excluded.nanodollars, hard = excluded.hard, warn_at = excluded.warn_at"
)
_UNWARNED = "UPDATE budget_spending SET warned = 0 WHERE scope = ? AND subject = ? AND per = ?"
_REMOVE = "DELETE FROM budgets WHERE scope = ? AND subject = ? AND per = ?"
_SPENDING = (
    "SELECT spent, reserved, warned FROM budget_spending "
    "WHERE scope = ? AND subject = ? AND per = ? AND period = ?"
)
_BEGIN = "INSERT INTO budget_spending (scope, subject, per, period) VALUES (?, ?, ?, ?)"
_PUT = (
    "UPDATE budget_spending SET spent = ?, reserved = ?, warned = ? "
    "WHERE scope = ? AND subject = ? AND per = ? AND period = ?"
)
_FORGET = (
    "DELETE FROM budget_spending WHERE scope = ?1 AND subject = ?2 AND per = ?3 AND period < ?4 "
    "AND period NOT IN (SELECT period FROM budget_spending WHERE scope = ?1 AND subject = ?2 "
    f"AND per = ?3 ORDER BY period DESC LIMIT {PERIODS})"
)
# A quarter of what a column holds, so that sums of two are within it.
_MOST = 2**61

_FORGET_JOBS = (
    "DELETE FROM budget_spending WHERE scope = 'job' AND subject NOT IN ("
    "SELECT CAST(seq AS TEXT) FROM jobs WHERE status IN ('waiting', 'running'))"
)


class Budgets:
    """Keeps budgets; changes of another process apply within a second."""

    def __init__(self, database: Database, now: Callable[[], float] = time.time) -> None:
        """`now` is in unix seconds."""
        self._database, self._now = database, now

    def set(self, budget: Budget) -> None:
        """Set a limit, of which what was spent in its period before is a part.

        Raises `TooManyBudgets` and `StorageError`.
        """
        self._database.write(partial(put, budget))

    def remove(self, scope: Scope, subject: str, per: Per) -> bool:
        """Remove a limit; False where there is none. Raises `StorageError`."""
        place = (scope.value, subject, per.value)
        return self._database.write(
            lambda connection: connection.execute(_REMOVE, place).rowcount == 1
        )

    def in_force(self) -> list[Budget]:
        """Every budget, those of jobs that have not ended too. Raises `StorageError`."""
        return [_budget(row) for row in self._database.rows(_IN_FORCE)]

    def states(self) -> list[BudgetState]:
        """The budgets of projects and keys, and what of them is spent. Raises `StorageError`."""
        return self._states(of_challengers=False)

    def of_challengers(self) -> list[BudgetState]:
        """The same of challengers, each of which has one or none. Raises `StorageError`."""
        return self._states(of_challengers=True)

    def reached(self) -> list[ReachedBudget]:
        """The budgets of single projects past their warning levels. Raises `StorageError`."""
        now = self._now()
        periods = (Per.DAY.period(now), Per.MONTH.period(now))
        return [
            ReachedBudget(BudgetState(_budget(row[:6]), *row[6:8]), row[8], row[9], bool(row[10]))
            for row in self._database.rows(_REACHED, *periods)
        ]

    def _states(self, of_challengers: bool) -> list[BudgetState]:
        now = self._now()
        periods = (Per.DAY.period(now), Per.MONTH.period(now))
        rows = self._database.rows(_STATES, *periods, of_challengers)
        return [BudgetState(_budget(row[:6]), *row[6:]) for row in rows]

    def claim(self, claims: Sequence[Claim]) -> list[Grant]:
        """Note what was spent, and reserve more of every account, or of none; durable on return.

        The accounts of the claims differ.
        Raises `StorageError`, and then nothing is noted unless it is `WriteTimedOut`.
        """
        return self._database.write_grouped(_claim_each, claims)


def put(budget: Budget, connection: sqlite3.Connection) -> None:
    """Set a limit in a transaction. Raises `TooManyBudgets`."""
    place = (budget.scope.value, budget.subject, budget.per.value)
    connection.execute(_SET, (*place, budget.limit, budget.hard, budget.warn_at))
    connection.execute(_UNWARNED, place)
    (count,) = connection.execute(_COUNT).fetchone()
    if count > limits.BUDGETS:
        raise TooManyBudgets(f"there may be {limits.BUDGETS:,} budgets at most")


def _claim_each(
    connection: sqlite3.Connection, many: Sequence[Sequence[Claim]]
) -> list[list[Grant]]:
    return [_claim_all(connection, claims) for claims in many]


def _claim_all(connection: sqlite3.Connection, claims: Sequence[Claim]) -> list[Grant]:
    looked = [_look(connection, claim) for claim in claims]
    # What one budget refuses is not made, so that nothing of the others may stay reserved for it.
    none = any(one.refused for one in looked)
    return [_settled(connection, one, 0 if none else one.amount) for one in looked]


class _Looked(NamedTuple):
    """A claim, its budget, what of that is spent and reserved without it, and what it would get."""

    claim: Claim
    budget: Budget | None
    spent: int
    reserved: int
    warned: int
    amount: int

    @property
    def refused(self) -> bool:
        return self.claim.least > self.amount


def _look(connection: sqlite3.Connection, claim: Claim) -> _Looked:
    row = connection.execute(_SPENDING, tuple(map(str, claim.account))).fetchone()
    if row is None:
        _begin(connection, claim.account)
    spent, reserved, warned = row or (0, 0, 0)
    spent, reserved = spent + claim.spent, reserved + claim.change
    budget = _limit_of(connection, claim.account)
    amount = _granted(budget, spent + reserved, claim)
    return _Looked(claim, budget, spent, reserved, warned, amount)


def _settled(connection: sqlite3.Connection, found: _Looked, amount: int) -> Grant:
    """Store what a claim has changed, and that this amount is reserved for it."""
    claim, budget, spent = found.claim, found.budget, min(found.spent, _MOST)
    reserved = min(found.reserved + amount, _MOST)
    level = max(found.warned, _level(budget, spent + reserved, found.refused))
    connection.execute(_PUT, (spent, reserved, level, *map(str, claim.account)))
    warned = budget if level and not found.warned else None
    later = budget is not None and found.refused and spent + claim.least <= budget.limit
    return Grant(amount, warned, found.refused, later)


def _level(budget: Budget | None, taken: int, refused: bool) -> int:
    """What a budget has reached; one that has refused a call for want of room is exhausted."""
    if budget is None or taken < budget.warn_at * budget.limit:
        return 0
    return EXHAUSTED if taken >= budget.limit or (budget.hard and refused) else WARNED


def _granted(budget: Budget | None, taken: int, claim: Claim) -> int:
    """How much is reserved where so much of the limit is spent or reserved already."""
    if budget is None or not budget.hard:
        return claim.wish
    left = budget.limit - taken
    if left < claim.least:
        return 0
    return max(claim.least, min(claim.wish, left // PARTS))


def _begin(connection: sqlite3.Connection, account: Account) -> None:
    """A new period; those long past are forgotten."""
    place = tuple(map(str, account))
    connection.execute(_BEGIN, place)
    if account.scope is Scope.JOB:
        connection.execute(_FORGET_JOBS)
    else:
        connection.execute(_FORGET, place)


def _limit_of(connection: sqlite3.Connection, account: Account) -> Budget | None:
    """The budget as it is now; None where it was removed."""
    if account.scope is Scope.JOB:
        row = connection.execute(_ONE_OF_A_JOB, (int(account.subject),)).fetchone()
    else:
        place = (account.scope.value, account.subject, account.per.value)
        row = connection.execute(_ONE, place).fetchone()
    return None if row is None else _budget(row)


def _budget(row: Sequence[Any]) -> Budget:
    scope, subject, per, limit, hard, warn_at = row
    return Budget(Scope(scope), subject, Per(per), limit, bool(hard), warn_at)

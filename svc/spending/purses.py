"""Which budgets pay the calls of a request."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from svc.errors import ApiError, DollarsReserved, DollarsSpent, JobSpent
from svc.phrases import quoted
from svc.spending.slices import Lack, Slices
from svc.store import NANO, Account, Budget, Scope

# How old the knowledge may be of which budgets there are.
LOOKED_AT_EVERY_S = 1.0

# A job has calls under way that may leave room for others when they end.
JOB_AGAIN_S = 1.0

# When calls under way may have left room in a budget of others, in seconds.
UNDER_WAY_AGAIN_S = 5.0

# Says what calls cost, in dollars; called once.
Settle = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Purse:
    """The budgets of one request."""

    budgets: Sequence[Budget]
    slices: Slices
    now: Callable[[], float]
    ends: Callable[[str, float], ApiError] | None = None

    @property
    def hard(self) -> bool:
        """Whether one of them is, so that no call may be made whose price nobody knows."""
        return any(budget.hard for budget in self.budgets)

    def reserve(self, dollars: float) -> Settle:
        """Reserve what calls may cost at most; it is durable on return.

        Raises `DollarsSpent` or what `ends` makes, and `StorageError`.
        """
        amount, now = _nano(dollars), self.now()
        accounts = {
            Account(one.scope, one.subject, one.per, one.per.period(now)): one
            for one in self.budgets
        }
        # What costs nothing goes on when everything is spent.
        lack = self.slices.reserve(accounts, amount) if amount else None
        if lack is not None:
            raise self._refused(accounts[lack.account], lack, now)
        return partial(self._settle, tuple(accounts), amount)

    def _settle(self, accounts: Sequence[Account], amount: int, dollars: float) -> None:
        spent = _nano(dollars)
        if amount or spent:
            self.slices.settle(accounts, amount, spent)

    def _refused(self, budget: Budget, lack: Lack, now: float) -> ApiError:
        named = _named(budget)
        limit = f"{named}, ${budget.limit / NANO:,.15g}"
        if budget.scope is Scope.JOB:
            busy = self.slices.under_way(lack.account)
            return JobSpent(f"{limit}, is spent", JOB_AGAIN_S, named, busy)
        renews_at = budget.per.renews_at(now)
        moment = datetime.fromtimestamp(renews_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        message = f"{limit} a {budget.per}, is spent; it renews at {moment}"
        if self.ends is not None:
            return self.ends(message, renews_at - now)
        if lack.later:
            message = f"{limit} a {budget.per}, is reserved for calls under way; try again"
            return DollarsReserved(message, UNDER_WAY_AGAIN_S, named, calls_under_way=True)
        return DollarsSpent(message, renews_at - now, named)


# The purse of a project, the id of a caller's key and the row of a job; None where nothing is
# bounded.
PurseOf = Callable[[str, str | None, int | None], Purse | None]


def nobody_pays(_project: str, _key: str | None, _job: int | None) -> None:
    """Where there are no budgets."""


class Purses:
    """Finds the budgets of requests; without any it costs a look at the clock."""

    def __init__(
        self,
        in_force: Callable[[], Iterable[Budget]],
        slices: Slices,
        ends: Callable[[str, float], ApiError] | None = None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`in_force` reads all budgets, and is called at most once a second.

        `ends` makes the error where a budget is spent, if not `DollarsSpent`, from a message and
        the seconds until it renews. `now` is in unix seconds, `clock` in seconds.
        """
        self._in_force, self._slices, self._ends = in_force, slices, ends
        self._now, self._clock = now, clock
        self._budgets: Mapping[tuple[Scope, str], list[Budget]] = {}
        # The budgets of all jobs up to this row are known: each came with its job.
        self._newest_job = 0
        self._challengers: set[str | None] = set()
        self._due = -math.inf
        self._looking = threading.Lock()

    def of(self, project: str, key: str | None, job: int | None = None) -> Purse | None:
        """What pays the calls of a request. Raises `StorageError`."""
        new = job is not None and job > self._newest_job
        if new or self._clock() >= self._due:
            self._look(job, at_once=new)
        if not self._budgets:
            return None
        return self._purse([(Scope.PROJECT, project), (Scope.KEY, key), (Scope.JOB, str(job))])

    def of_challenger(self, project: str, challenger: str | None, _job: int | None) -> Purse | None:
        """The same for what a challenger is asked, by the row of the challenger as text.

        Its own budget pays, and that of the project. Raises `StorageError`.
        """
        new = challenger not in self._challengers
        if new or self._clock() >= self._due:
            self._look(None, at_once=new)
            # Its budget came with it.
            self._challengers.add(challenger)
        return self._purse([(Scope.PROJECT, project), (Scope.CHALLENGER, challenger)])

    def _purse(self, places: Sequence[tuple[Scope, str | None]]) -> Purse | None:
        found = [budget for place in places for budget in self._budgets.get(place, ())]  # type: ignore[arg-type]
        return Purse(found, self._slices, self._now, self._ends) if found else None

    def _look(self, job: int | None, at_once: bool) -> None:
        """Read the budgets, unless another thread does and it is not the first time."""
        if not self._looking.acquire(blocking=at_once or self._due == -math.inf):
            return
        try:
            due = self._clock() + LOOKED_AT_EVERY_S
            found = defaultdict(list)
            for budget in self._in_force():
                found[budget.scope, budget.subject].append(budget)
            self._budgets, self._due = dict(found), due
            self._newest_job = max(self._newest_job, job or 0)
        finally:
            self._looking.release()


def _named(budget: Budget) -> str:
    if budget.scope is Scope.JOB:
        return "the budget of the job"
    if budget.scope is Scope.KEY:
        return "the budget of this API key"
    if budget.scope is Scope.CHALLENGER:
        return f"the budget of challenger {budget.subject}"
    return f"the budget of project {quoted(budget.subject)}"


def _nano(dollars: float) -> int:
    """Nanodollars, rounded up, so that many small amounts are not counted as none."""
    return math.ceil(round(dollars * NANO, 3))

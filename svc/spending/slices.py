"""What this process has reserved of budgets: a slice of each, so that not every call writes.

A slice lies in the database before the first call is paid from it. It is about as large as what
calls reserved in the last seconds, and shrinks towards the single call as its budget is used up.
What calls did not need goes back every few seconds. A killed process gives nothing back: its slices
count as spent until the budget renews, so that no call is ever admitted beyond a limit.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from svc.errors import SvcError
from svc.phrases import quoted
from svc.store import NANO, Account, Budget, Claim, Grant, StorageError, WriteTimedOut

# The pause between two looks at what slices still need, in seconds.
LOOK_EVERY_S = 2.0

# After a refusal the database is not asked again for so long, unless calls leave room: at a limit
# that is reached every request would write.
REFUSED_FOR_S = 0.5

# The longest wait for other threads of this process that claim.
CLAIM_WAIT_S = 30.0

log = logging.getLogger(__name__)


class Lack(NamedTuple):
    """An account that has no room for an amount; `later` as in `Grant`."""

    account: Account
    later: bool


# See `Budgets.claim`.
ClaimAll = Callable[[Sequence[Claim]], Sequence[Grant]]


@dataclass(slots=True)
class _Slice:
    """In nanodollars: what the database has reserved, and of it for calls under way and spent."""

    granted: int = 0
    reserved: int = 0
    spent: int = 0
    # What calls reserved since the last look.
    lately: int = 0

    @property
    def free(self) -> int:
        return self.granted - self.reserved - self.spent


class Slices:
    """Reserves amounts of accounts for calls; safe across the threads of its process."""

    def __init__(
        self,
        claim: ClaimAll,
        look_every_s: float = LOOK_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """No thread is started before the first reservation; `clock` is in seconds."""
        self._claim, self._look_every_s, self._clock = claim, look_every_s, clock
        # The least that was refused lately, until when nothing like it is asked for, and the lack.
        self._refused: dict[Account, tuple[int, float, Lack]] = {}
        self._slices: dict[Account, _Slice] = {}
        self._lock = threading.Lock()
        # Held while something is claimed, so that of many threads one asks for all.
        self._claiming = threading.Lock()
        self._waiting = 0
        self._looker: threading.Thread | None = None
        self._closed = threading.Event()

    def reserve(self, accounts: Collection[Account], amount: int) -> Lack | None:
        """Reserve an amount of every account, or of none; the first that lacks it, if any does.

        It is durable on return. Raises `StorageError`.
        """
        with self._lock:
            if self._take(accounts, amount):
                return None
            if (refused := self._refused_lately(accounts, amount)) is not None:
                return refused
            self._waiting += 1
        try:
            if not self._claiming.acquire(timeout=CLAIM_WAIT_S):
                raise StorageError("the budgets wait for the database")
            try:
                return self._claim_until_taken(accounts, amount)
            finally:
                self._claiming.release()
        finally:
            with self._lock:
                self._waiting -= 1

    def settle(self, accounts: Collection[Account], amount: int, spent: int) -> None:
        """Exchange a reserved amount for what was spent of it, which may be more."""
        with self._lock:
            for account in accounts:
                one = self._slices.setdefault(account, _Slice())
                one.reserved -= amount
                one.spent += spent
                self._refused.pop(account, None)
            # What is beyond the slice, others must not take for free.
            beyond = [account for account in accounts if self._slices[account].free < 0]
        # Where that takes long, the next look does it.
        if beyond and self._claiming.acquire(timeout=CLAIM_WAIT_S):
            try:
                self._give_back(beyond)
            finally:
                self._claiming.release()

    def under_way(self, account: Account) -> bool:
        """Whether calls of this process have reserved a part of an account."""
        with self._lock:
            return account in self._slices and self._slices[account].reserved > 0

    def close(self) -> None:
        """Give back what no call has reserved; may be called again."""
        self._closed.set()
        if self._looker is not None:
            self._looker.join()
        with self._claiming:
            self._give_back(list(self._slices))

    def _take(self, accounts: Collection[Account], amount: int) -> bool:
        """Reserve from the slices, with the lock held; False where one has not enough."""
        slices = [self._slices.get(account) for account in accounts]
        if any(one is None or one.free < amount for one in slices):
            return False
        for one in slices:
            if one is not None:
                one.reserved += amount
                one.lately += amount
        return True

    def _refused_lately(self, accounts: Collection[Account], amount: int) -> Lack | None:
        """An account that refused no more than this a moment ago, with the lock held."""
        for account in accounts:
            if account in self._refused:
                least, until, lack = self._refused[account]
                if amount >= least and self._clock() < until:
                    return lack
        return None

    def _claim_until_taken(self, accounts: Collection[Account], amount: int) -> Lack | None:
        """Other threads may take from a slice before this one does, which then claims again."""
        self._start_looking()
        while True:
            with self._lock:
                if self._take(accounts, amount):
                    return None
                # Another one may have been refused while this one waited for its turn.
                if (refused := self._refused_lately(accounts, amount)) is not None:
                    return refused
                lacking = [
                    account
                    for account in accounts
                    if self._slices.setdefault(account, _Slice()).free < amount
                ]
            for account, grant in zip(lacking, self._exchange(lacking, amount), strict=True):
                if grant.refused:
                    lack = Lack(account, grant.later)
                    with self._lock:
                        self._refused[account] = amount, self._clock() + REFUSED_FOR_S, lack
                    return lack

    def _exchange(self, accounts: Sequence[Account], amount: int) -> Sequence[Grant]:
        """Hand in what was spent and what is free, for an amount that calls need, or for none."""
        with self._lock:
            claims = [self._handed_in(account, amount) for account in accounts]
        try:
            grants = self._claim(claims)
        except SvcError as error:
            self._take_back(claims, unsure=isinstance(error, WriteTimedOut))
            raise
        with self._lock:
            for claim, grant in zip(claims, grants, strict=True):
                self._slices[claim.account].granted += grant.amount
        _warn(grant.warned for grant in grants)
        return grants

    def _handed_in(self, account: Account, amount: int) -> Claim:
        one = self._slices[account]
        wish = max(amount * max(1, self._waiting), one.lately) if amount else 0
        claim = Claim(account, one.spent, one.reserved - one.granted, amount, wish)
        one.granted, one.spent = one.reserved, 0
        return claim

    def _take_back(self, claims: Iterable[Claim], unsure: bool) -> None:
        """Undo what was handed in; where it may have been written, only what counts as spent."""
        with self._lock:
            for claim in claims:
                one = self._slices[claim.account]
                one.spent += claim.spent
                one.granted -= 0 if unsure else claim.change

    def _give_back(self, accounts: Sequence[Account]) -> None:
        """Hand in what was spent and what is free."""
        with self._lock:
            # A look may have handed in all of one while the caller waited for its turn.
            held = [account for account in accounts if account in self._slices]
        if not held:
            return
        try:
            self._exchange(held, 0)
        except SvcError as error:
            # It is handed in with the next look, and counts as reserved until then.
            log.error("what was spent of budgets could not be stored: %s", error.message)

    def _start_looking(self) -> None:
        if self._looker is None and not self._closed.is_set():
            looker = threading.Thread(target=self._look, name="svc-budgets", daemon=True)
            # Where the system allows no further thread, the next claim tries anew.
            with contextlib.suppress(RuntimeError):
                looker.start()
                self._looker = looker

    def _look(self) -> None:
        while not self._closed.wait(self._look_every_s):
            with self._claiming:
                with self._lock:
                    changed = [
                        account
                        for account, one in self._slices.items()
                        if one.spent or one.granted != one.reserved
                    ]
                self._give_back(changed)
                with self._lock:
                    for account, one in list(self._slices.items()):
                        one.lately = 0
                        if one == _Slice():
                            del self._slices[account]
                    now = self._clock()
                    self._refused = {
                        account: refused
                        for account, refused in self._refused.items()
                        if refused[1] > now
                    }


def _warn(budgets: Iterable[Budget | None]) -> None:
    for budget in budgets:
        if budget is not None:
            log.warning(
                "the budget of %s %s has reached %g%% of $%g a %s",
                budget.scope,
                quoted(budget.subject),
                budget.warn_at * 100,
                budget.limit / NANO,
                budget.per,
            )

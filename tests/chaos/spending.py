"""Callers whose calls a budget in dollars pays, small enough to be used up in each life."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from svc.store import NANO, Per, Scope
from tests.chaos.callers import CONNECTIONS, Caller, Said
from tests.chaos.clock import Clock
from tests.chaos.journal import BY_BUDGET, LIMITED
from tests.chaos.ledger import PAID, PRICE, Ledger
from tests.chaos.parts import MakeCaller, Part, command
from tests.chaos.questions import BOUNDED, good_request
from tests.chaos.target import Target

LIMIT = 1.5

# Requests in a row that a spent budget has to refuse, and how long it may take until it does: a
# process keeps for seconds what it reserved for calls that did not come.
REFUSED = 20
REFUSED_WITHIN_S = 15.0

# How far sums of floats may be off, in dollars.
NOISE = 1e-6


class Sums(NamedTuple):
    """Dollars: what stored decisions cost, and what the budget says of its present period."""

    decided: float
    spent: float
    reserved: float


@dataclass(slots=True)
class Period:
    """What was charged before it began, and from which moment on its decisions are, in ms."""

    charged_before: float
    began_ms: int


class Spending(Part):
    """A hard budget a month for one project; the clock turns to another month in each life.

    At any moment, also after kills and whatever became of each request,

        stored decisions <= charged by the provider <= spent + reserved <= limit

    since a call is reserved on the disk before it is made, and its decision is stored after it. The
    middle part rests on prices that are not below what calls cost.
    """

    def __init__(self, ledger: Ledger, clock: Clock, make_caller: MakeCaller) -> None:
        self._ledger, self._clock, self._make_caller = ledger, clock, make_caller
        self._period = Period(0.0, 0)
        # One of each period: what was charged, and the sums at its end.
        self._ends: list[tuple[float, Sums]] = []

    def settings(self) -> dict[str, str]:
        return {"SVC_PROVIDER_OPENROUTER_PRICE": PRICE}

    def set_up(self, target: Target) -> None:
        which = ("--project", BOUNDED, "--usd", str(LIMIT), "--per", "month")
        command(target.db, "budget", "set", *which)
        # It applies to a running server within a second.
        time.sleep(1.0)
        self._begin()

    def look(self, db: Path) -> Iterator[str]:
        before = self._charged()
        with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
            sums = self._sums(connection)
        yield from chain(sums, before, self._charged())

    def turn(self, target: Target) -> Iterator[str]:
        yield from self._use_up()
        yield from self.look(target.db)
        with contextlib.closing(sqlite3.connect(target.db)) as connection:
            self._ends.append((self._charged(), self._sums(connection)))
        self._begin()

    def line(self) -> str:
        ends = ", ".join(
            f"${charged:.2f} charged ${sums.spent:.4f} spent ${sums.reserved:.4f} reserved "
            f"${sums.decided:.2f} of stored decisions"
            for charged, sums in self._ends
        )
        return f"a budget of ${LIMIT:.2f}, over kills and faults: {ends}"

    def _begin(self) -> None:
        """To be called before the clock turns: what is made until then is charged already."""
        self._period = Period(self._ledger.usd(PAID), int(self._clock.now * 1000))

    def _charged(self) -> float:
        return self._ledger.usd(PAID) - self._period.charged_before

    def _sums(self, connection: sqlite3.Connection) -> Sums:
        """Of one moment."""
        account = (Scope.PROJECT, BOUNDED, Per.MONTH, Per.MONTH.period(self._clock.now))
        row = connection.execute(_SUMS, (*account, BOUNDED, self._period.began_ms)).fetchone()
        return Sums(*row)

    def _use_up(self) -> Iterator[str]:
        """Ask until all is refused, and then whether it stays so."""
        give_up_at = time.monotonic() + REFUSED_WITHIN_S
        caller = self._make_caller()
        try:
            while time.monotonic() < give_up_at:
                with ThreadPoolExecutor(CONNECTIONS) as threads:
                    list(threads.map(self._ask_until_refused, [give_up_at] * CONNECTIONS))
                before = self._ledger.usd(PAID)
                said = [self._ask(caller) for _ in range(REFUSED)]
                if all(map(is_refusal, said)):
                    if self._ledger.usd(PAID) != before:
                        yield "a call was made although every request was refused by the budget"
                    return
        finally:
            caller.hang_up()
        yield f"the budget was not used up: the last request got {said[-1].status}"

    def _ask_until_refused(self, give_up_at: float) -> None:
        caller = self._make_caller()
        while self._ask(caller).status == 200 and time.monotonic() < give_up_at:
            pass
        caller.hang_up()

    def _ask(self, caller: Caller) -> Said:
        return caller.ask(good_request(BOUNDED, "mood"))


# The row of the budget is made with its first call.
_SUMS = f"""
SELECT (SELECT coalesce(sum(cost_usd), 0) FROM decisions WHERE project = ?5 AND created_at >= ?6),
coalesce(sum(spent), 0) * 1.0 / {NANO}, coalesce(sum(reserved), 0) * 1.0 / {NANO}
FROM budget_spending WHERE scope = ?1 AND subject = ?2 AND per = ?3 AND period = ?4
"""


def is_refusal(said: Said) -> bool:
    """Whether it is 429 with the budget's name; the seconds to wait are looked at elsewhere."""
    if said.status != LIMITED:
        return False
    message: Any = said.body["error"]["message"]
    return f'{BY_BUDGET}project "{BOUNDED}"' in message


def chain(sums: Sums, charged_before: float, charged: float, limit: float = LIMIT) -> Iterator[str]:
    """What is wrong with sums between whose two sides so much was charged, in dollars."""
    taken = sums.spent + sums.reserved
    if sums.decided > charged + NOISE:
        yield f"stored decisions cost ${sums.decided:.4f}, and ${charged:.4f} were charged"
    if charged_before > taken + NOISE:
        yield f"${charged_before:.4f} were charged, and the budget counts ${taken:.4f}"
    if taken > limit + NOISE:
        yield f"${taken:.4f} are taken of a budget of ${limit:.4f}"

"""A challenger that is dead, slow or hanging by turns, beside decisions that are deleted."""

from __future__ import annotations

import contextlib
import sqlite3
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from svc.store import NANO
from tests.chaos.behaviours import MOODY, Weather
from tests.chaos.clock import Clock
from tests.chaos.ledger import COST, PRICE, RIVAL, Ledger
from tests.chaos.parts import MakeCaller, Part, command
from tests.chaos.questions import AGING, good_request
from tests.chaos.target import Target

# Dollars a month, and those of calls that may be under way when the clock begins another month: of
# two processes, two threads each, in both orders, three times where the connection breaks.
CAP = 0.5
UNDER_WAY = 24 * COST

# Live decisions beside a challenger that hangs, and what half of them may take on a busy machine:
# less than the two seconds after which its calls are cut off. The last is how long it may be busy
# with what it was to be asked before.
BESIDE, USUAL_S, BUSY_S = 20, 1.0, 20.0


class Rival(Part):
    """Decisions of a project are also asked of models that are dead, slow or hang by turns.

    One costs money up to a cap, and the other one nothing.
    """

    def __init__(
        self, weather: Weather, ledger: Ledger, clock: Clock, make_caller: MakeCaller
    ) -> None:
        self._weather, self._ledger, self._clock = weather, ledger, clock
        self._make_caller = make_caller
        # What was charged until the clock was last shifted, and how often it was.
        self._charged_before, self._shifts = 0.0, 0
        self._median_s, self._most_answers, self._counts = 0.0, 0, ""

    def settings(self) -> dict[str, str]:
        return {"SVC_PROVIDER_OPENROUTER_PRICE": PRICE}

    def set_up(self, target: Target) -> None:
        caller = self._make_caller()
        for question in ("topic", "urgent"):
            caller.ask(good_request(AGING, question))
        caller.hang_up()
        each = ("challenger", "set", "--project", AGING, "--share", "1")
        costly = ("--question", "topic", "--model", f"{RIVAL}/{MOODY}")
        command(target.db, *each, *costly, "--usd", str(CAP), "--per", "month")
        command(target.db, *each, "--question", "urgent", "--model", f"@odd/{MOODY}")

    def look(self, db: Path) -> Iterator[str]:
        charged = self._ledger.usd(RIVAL)
        if self._clock.shifts != self._shifts:
            self._charged_before, self._shifts = charged, self._clock.shifts
        if (lately := charged - self._charged_before) > CAP + UNDER_WAY:
            yield f"the challenger was charged ${lately:.2f} in a month"
        with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
            yield from self._stored(connection)

    def turn(self, target: Target) -> Iterator[str]:
        """Live decisions go on beside one that hangs."""
        caller = self._make_caller()
        took_s: list[float] = []
        give_up_at = time.monotonic() + BUSY_S
        with self._weather.mood("silent"):
            before = self._weather.moody
            while len(took_s) < BESIDE or self._weather.moody == before:
                began = time.monotonic()
                said = caller.ask(good_request(AGING, "urgent"))
                took_s.append(time.monotonic() - began)
                if said.status != 200:
                    yield f"beside a challenger that hangs: {said}"
                if time.monotonic() > give_up_at:
                    yield f"no challenger was asked beside {len(took_s)} decisions"
                    break
        caller.hang_up()
        self._median_s = max(self._median_s, statistics.median(took_s))
        if self._median_s > USUAL_S:
            yield f"decisions take {self._median_s:.2f} s beside a challenger that hangs"
        yield from self.look(target.db)

    def judge(self, connection: sqlite3.Connection) -> Iterator[str]:
        yield from self._stored(connection)
        if not self._most_answers:
            yield "the challenger never answered"
        self._counts = "{} left out, {} beyond its cap".format(
            *connection.execute(_COUNTS).fetchone()
        )

    def line(self) -> str:
        return (
            f"challengers that are dead, slow or hang: up to {self._most_answers} answers "
            f"to stored decisions, {self._counts}, ${self._ledger.usd(RIVAL):.2f} charged; live "
            f"decisions beside one that hangs take {self._median_s * 1000:.0f} ms"
        )

    def _stored(self, connection: sqlite3.Connection) -> Iterator[str]:
        for taken, limit in connection.execute(_OVER_CAP):
            yield f"${taken / NANO:.4f} are taken of a challenger's cap of ${limit / NANO:.4f}"
        answers, astray = connection.execute(_ANSWERS, (AGING,)).fetchone()
        self._most_answers = max(self._most_answers, answers)
        if astray:
            yield f"{astray} answers of the challenger are to no stored decision on its question"


_OVER_CAP = (
    "SELECT spent + reserved, nanodollars FROM budget_spending JOIN budgets "
    "USING (scope, subject, per) WHERE scope = 'challenger' AND spent + reserved > nanodollars"
)
_ANSWERS = (
    "SELECT count(answer), count(*) FILTER (WHERE seq IS NULL OR project <> ? "
    "OR question_id NOT IN (SELECT value FROM json_each(question_ids))) "
    "FROM challenger_answers LEFT JOIN decisions ON seq = decision_seq "
    "LEFT JOIN (SELECT id, question_id FROM challengers) AS asked ON asked.id = challenger"
)
_COUNTS = "SELECT sum(dropped), sum(refused) FROM challengers"

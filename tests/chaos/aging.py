"""A project whose decisions are deleted after a day, while the server goes on."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.chaos.clock import Clock, oldest_kept
from tests.chaos.journal import Asked, Journal
from tests.chaos.parts import MakeCaller, Part, command
from tests.chaos.questions import AGING, good_request
from tests.chaos.target import Target

# Labels that speak against each answer, so many that a calibrator is fitted to them for sure.
TAUGHT = 60

# How long the deletion of what is old may take after a start, on a busy machine.
SWEPT_WITHIN_S = 20.0


class Calibrator(NamedTuple):
    fitted_at: int
    text: str


class Aging(Part):
    """`svc retention set --days 1`; the clock turns by more than a day in each life.

    What is older than a day at the end is gone, and all else is there; what was learned stays.
    """

    def __init__(self, journal: Journal, clock: Clock, make_caller: MakeCaller) -> None:
        self._journal, self._clock, self._make_caller = journal, clock, make_caller
        self._taught: dict[bytes, Calibrator] = {}
        self._deleted = 0

    def set_up(self, target: Target) -> None:
        command(target.db, "retention", "set", "--project", AGING, "--days", "1")
        caller = self._make_caller()
        for _ in range(TAUGHT):
            decision = caller.ask(good_request(AGING, "topic")).body
            wrong = {"billing", "shipping"} - {decision["answers"]["topic"]["choice"]}
            said = caller.label_as(decision, "topic", min(wrong))
        caller.hang_up()
        assert said.body["calibrated"], said

    def turn(self, target: Target) -> Iterator[str]:
        with contextlib.closing(sqlite3.connect(target.db)) as connection:
            self._wait_until_swept(connection)
            yield from self._learned(connection)

    def judge(self, connection: sqlite3.Connection) -> Iterator[str]:
        if old := self._count_old(connection, self._clock.latest):
            yield f"{old} decisions are older than a day and still there"
        yield from self._sums(connection)
        yield from self._learned(connection)

    def line(self) -> str:
        return (
            f"retention of a day: {self._deleted:,} answered decisions are gone, "
            f"{len(self._taught)} calibrators stayed"
        )

    def _wait_until_swept(self, connection: sqlite3.Connection) -> None:
        """Wait for what is old now, not for what was so while the clock had jumped."""
        give_up_at = time.monotonic() + SWEPT_WITHIN_S
        while time.monotonic() < give_up_at and self._count_old(connection, self._clock.now):
            time.sleep(0.1)

    def _count_old(self, connection: sqlite3.Connection, now: float) -> int:
        (old,) = connection.execute(_OLD, (AGING, oldest_kept(now))).fetchone()
        return int(old)

    def _learned(self, connection: sqlite3.Connection) -> Iterator[str]:
        """A calibrator stays until another fit: that of labels which are left, or none."""
        rows = connection.execute(_CALIBRATORS, (AGING,)).fetchall()
        now = {digest: Calibrator(fitted_at, text) for digest, fitted_at, text in rows}
        for digest, before in self._taught.items():
            found = now.get(digest)
            refitted = found is not None and found.fitted_at not in (0, before.fitted_at)
            if found != before and not refitted:
                yield f"what labels taught is {found}, and was {before}"
        self._taught = {digest: one for digest, one in now.items() if one.text}

    def _sums(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Weekly sums stay: they count what is there, and what was deleted.

        Of a request whose caller heard nothing nobody knows whether it was stored and deleted.
        """
        (weeks,) = connection.execute(_WEEKS, (AGING,)).fetchone()
        (there,) = connection.execute(_THERE, (AGING,)).fetchone()
        asked = [one for one in self._journal.asked.values() if one.project == AGING]
        gone = [one.questions * self._gone(one) for one in asked]
        unknown = sum(one.questions * one.unknown for one in asked)
        self._deleted = sum(map(self._gone, asked))
        least = there + sum(gone)
        if not least <= weeks <= least + unknown:
            yield f"{weeks} readings in the weekly sums of {least} to {least + unknown}"

    def _gone(self, one: Asked) -> int:
        """How many answered decisions on a state are deleted."""
        return sum(map(self._clock.is_old, one.answers))


_OLD = "SELECT count(*) FROM decisions WHERE project = ? AND id < ?"
_WEEKS = "SELECT coalesce(sum(decisions), 0) FROM weeks WHERE project = ?"
_CALIBRATORS = (
    "SELECT digest, coalesce(fitted_at, 0), coalesce(calibrator, '') FROM learned WHERE project = ?"
)
# In this project every answer is one of a model.
_THERE = "SELECT coalesce(sum(json_array_length(question_ids)), 0) FROM decisions WHERE project = ?"

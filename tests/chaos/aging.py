"""A project whose decisions are deleted after a day, while the server goes on."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping
from typing import Any, cast

from svc import limits
from tests.chaos.callers import Caller
from tests.chaos.clock import Clock, oldest_kept
from tests.chaos.journal import Asked, Journal
from tests.chaos.parts import MakeCaller, Part, command
from tests.chaos.questions import AGING, QUESTIONS, good_request
from tests.chaos.target import Target

# A question that nobody labels later, and labels that speak against each answer to it: as many as
# the first calibrator takes, so that no further one is fitted.
KEY = "team"
QUESTION = {**QUESTIONS["topic"], "instructions": "Which team has to answer?"}
LABELS = limits.MIN_LABELS

# How long the deletion of what is old may take after a start, on a busy machine.
SWEPT_WITHIN_S = 20.0


class Aging(Part):
    """`svc retention set --days 1`; the clock turns by more than a day in each life.

    What is older than a day at the end is gone, and all else is there; what was learned stays.
    """

    def __init__(self, journal: Journal, clock: Clock, make_caller: MakeCaller) -> None:
        self._journal, self._clock, self._make_caller = journal, clock, make_caller
        self._taught, self._deleted = "", 0

    def set_up(self, target: Target) -> None:
        command(target.db, "retention", "set", "--project", AGING, "--days", "1")
        caller = self._make_caller()
        for _ in range(LABELS):
            decision = self._ask(caller)
            wrong = {"billing", "shipping"} - {decision["answers"][KEY]["choice"]}
            caller.label_as(decision, KEY, min(wrong))
        caller.hang_up()
        with contextlib.closing(sqlite3.connect(target.db)) as connection:
            self.remember(connection)

    def remember(self, connection: sqlite3.Connection) -> None:
        """Take what labels have taught for what has to stay."""
        self._taught = _calibrator(connection)
        assert self._taught

    def turn(self, target: Target) -> Iterator[str]:
        with contextlib.closing(sqlite3.connect(target.db)) as connection:
            self._wait_until_swept(connection)
        caller = self._make_caller()
        answer = self._ask(caller)["answers"][KEY]
        caller.hang_up()
        if not answer["calibrated"]:
            yield f"a calibrator is not in effect after its labels were deleted: {answer}"

    def judge(self, connection: sqlite3.Connection) -> Iterator[str]:
        if old := self._count_old(connection, self._clock.latest):
            yield f"{old} decisions are older than a day and still there"
        yield from self._sums(connection)
        if (found := _calibrator(connection)) != self._taught:
            yield f"what labels taught is {found}, and was {self._taught}"

    def line(self) -> str:
        return (
            f"retention of a day: {self._deleted:,} answered decisions are gone, the "
            f"calibrator of {LABELS} labels stayed"
        )

    def _ask(self, caller: Caller) -> Mapping[str, Any]:
        request = {**good_request(AGING, "topic"), "questions": {KEY: QUESTION}}
        return cast(Mapping[str, Any], caller.ask(request).body)

    def _wait_until_swept(self, connection: sqlite3.Connection) -> None:
        """Wait for what is old now, not for what was so while the clock had jumped."""
        give_up_at = time.monotonic() + SWEPT_WITHIN_S
        while time.monotonic() < give_up_at and self._count_old(connection, self._clock.now):
            time.sleep(0.1)

    def _count_old(self, connection: sqlite3.Connection, now: float) -> int:
        (old,) = connection.execute(_OLD, (AGING, oldest_kept(now))).fetchone()
        return int(old)

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
_CALIBRATOR = (
    "SELECT coalesce(max(calibrator), '') FROM learned JOIN asked USING (project, question_id) "
    "WHERE project = ? AND key = ?"
)
# In this project every answer is one of a model.
_THERE = "SELECT coalesce(sum(json_array_length(question_ids)), 0) FROM decisions WHERE project = ?"


def _calibrator(connection: sqlite3.Connection) -> str:
    """What labels have taught about the question, as JSON; empty for nothing."""
    (text,) = connection.execute(_CALIBRATOR, (AGING, KEY)).fetchone()
    return str(text)

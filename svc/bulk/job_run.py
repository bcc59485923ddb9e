"""One job while it runs: which row is next, and what a failure means for the others.

It knows neither threads nor models; the runner tells it what became of each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from svc import limits
from svc.bulk.pace import Pace
from svc.bulk.row_queue import RowQueue, Seen, WaitingRow
from svc.errors import (
    LASTING_FAULT,
    ApiError,
    BudgetSpent,
    DollarsSpent,
    NoAnswer,
    NotConfigured,
    PartlyLimited,
    RateLimited,
)
from svc.schemas import DecisionRequest
from svc.store import Job, SpoolFile

__all__ = ["JobRun", "Pauses", "WaitingRow"]

# So many rows that fail one after the other are hardly a matter of the rows: the models fail.
OUTAGE_ROWS = 10

# A model that works may give some rows no answer. A run of such rows is an outage where chance, as
# far as other rows tell, makes one so long less often than this, or where it has so many rows.
SELDOM, MOST_UNANSWERED = 1e-3, 100

# The first pause of an outage, see `Pauses`.
OUTAGE_PAUSE_S = 1.0

# The longest wait for a provider's rate.
LONGEST_PAUSE_S = 60.0

# A row has its error once the rate was refused to it alone so many times one after the other, which
# takes a good quarter of an hour.
REFUSED_ALONE = 12

# Tries of rows that no waiting seems to help are so many times as far apart as others, until a
# model has answered a row.
PATIENCE = 5.0

# What says that a limit of this server is used up, and not a provider's rate.
_BUDGETS = (BudgetSpent, DollarsSpent)

DAILY_LIMIT = "the daily limit"
PROVIDER_RATE = "a provider's rate"
MODELS = "the models fail"


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses of the process that runs jobs, in seconds."""

    # Between two looks at which jobs there are.
    look: float = 1.0
    # Without work, until the runner ends.
    idle: float = 5.0
    # A row that no model answers is tried again after each of these, and then given up.
    retries: tuple[float, ...] = (2.0, 10.0)
    # In an outage one row is tried after each pause, which doubles from the first of these to the
    # second. So at most 20 rows are tried in an hour: each may cost the calls of a whole decision.
    outage: float = OUTAGE_PAUSE_S
    longest_outage: float = 300.0


class JobRun:
    """The rows of an open job, of which the runner takes one after the other."""

    def __init__(
        self,
        job: Job,
        template: DecisionRequest,
        file: SpoolFile,
        settled: bytearray,
        clock: Callable[[], float],
        pauses: Pauses,
        at_once: int = limits.JOB_THREADS,
    ) -> None:
        """`settled` has 1 at the number of each row that is; `clock` is in seconds.

        At most so many rows are asked `at_once`, which may be changed.
        """
        self.job, self.template = job, template
        self.under_way, self.at_once = 0, at_once
        self.settled = sum(settled)
        self.rows = RowQueue(file, job.rows, settled, clock)
        self.pace = Pace()
        self._is_settled, self._clock, self._pauses = settled, clock, pauses
        # The rows that failed since one was answered, and whether one of them found no model that
        # works.
        self._failing: set[int] = set()
        self._trouble = False
        # How often a row was answered, and how often a model that works gave a row no answer.
        self._answers = self._unanswered = 0
        # How many rows a provider's rate was refused to, and how many were answered that had been
        # put off alone for it.
        self._limits = self._recovered = 0
        self._pause_s, self._paused_until = 0.0, 0.0
        self._reason: str | None = None

    @property
    def is_finished(self) -> bool:
        """Whether every row is settled."""
        return self.settled >= self.job.rows

    @property
    def waiting_for(self) -> str | None:
        """Why nothing moves, None where it does."""
        return self._reason if self._is_paused or self._is_out else None

    def ends_in_s(self) -> float | None:
        """The seconds until its end at the present rate, None while there is none."""
        now = self._clock()
        self.pace.note(now, self.settled)
        if self.waiting_for is not None:
            return None
        return self.pace.left_s(now, self.settled, self.job.rows)

    def take(self) -> WaitingRow | None:
        """The next row to be asked, None where there is none now. Raises `SpoolLost`."""
        if self.under_way >= self.at_once:
            return None
        # While the models fail, one row at a time finds out whether they still do.
        if self._is_paused or (self._is_out and self.under_way):
            return None
        # While they do, it is one that was not tried, as long as there is one.
        row = self.rows.any() if self._is_out else None
        row = row or self.rows.next(has_answers=self._answers > 0)
        if row is not None:
            self.under_way += 1
        return row

    def answered(self, row: WaitingRow) -> None:
        """The row has its decision, for which a model was asked now."""
        self._settle(row)
        self._failing.clear()
        self._trouble, self._pause_s = False, 0.0
        self._answers += 1
        self._recovered += row.alone > 0

    def settled_without_model(self, row: WaitingRow) -> None:
        """The row has its error or its decision, which does not say that the models work."""
        self._settle(row)

    def dropped(self, row: WaitingRow) -> None:
        """The row was not asked, since the job has ended."""
        self.under_way -= 1

    def unstored(self, row: WaitingRow) -> None:
        """The database did not take what became of the row."""
        self.under_way -= 1
        self.rows.put_off(row, self._pauses.outage)

    def stuck(self, row: WaitingRow) -> None:
        """The row failed for good, and its error could not be stored for an unforeseen reason."""
        self.under_way -= 1
        self.rows.put_off(row, self._pauses.longest_outage)

    def failed(self, row: WaitingRow, error: ApiError) -> bool:
        """The row was not answered; whether it is given up, and still under way until it is."""
        if isinstance(error, (RateLimited, PartlyLimited)):
            if not isinstance(error, _BUDGETS) and self._is_refused_alone(row):
                return self._refused_alone(row)
            self.under_way -= 1
            self._wait_for_rate(row, error)
            return False
        if isinstance(error, NotConfigured):
            self.under_way -= 1
            self._pause_for_outage(error.message)
            # Its operator may have started the server without what it had before.
            self.rows.put_off(row, 0.0)
            return False
        if isinstance(error, LASTING_FAULT) and not self._answers:
            # All rows may have it, however long they wait, or a gateway says so for a while.
            return self._tried(row, PATIENCE)
        self._failing.add(row.number)
        # A row that gets no answer of a model that works may be at fault itself, so that its tries
        # count. It is given up once the models answer others, or where no others are left to ask.
        works = isinstance(error, (NoAnswer, *LASTING_FAULT))
        self._unanswered += works
        self._trouble |= not works
        if self._is_out and not (works and self.rows.were_all_given):
            self.under_way -= 1
            self._pause_for_outage(MODELS)
            counts = works and not self._is_last_try(row)
            self.rows.put_off(replace(row, tries=row.tries + 1) if counts else row, 0.0)
            return False
        return self._tried(row)

    @property
    def _is_paused(self) -> bool:
        return self._clock() < self._paused_until

    @property
    def _is_out(self) -> bool:
        return len(self._failing) >= (OUTAGE_ROWS if self._trouble else self._outage_rows())

    def _outage_rows(self) -> int:
        """How many rows in a row without an answer are an outage where models seem to work."""
        if not (self._answers and self._unanswered):
            return OUTAGE_ROWS
        share = self._unanswered / (self._unanswered + self._answers)
        rows = math.ceil(math.log(SELDOM) / math.log(share))
        return min(max(OUTAGE_ROWS, rows), MOST_UNANSWERED)

    def _settle(self, row: WaitingRow) -> None:
        self.under_way -= 1
        self.settled += 1
        self._is_settled[row.number] = 1

    def _wait_for_rate(self, row: WaitingRow, error: RateLimited | PartlyLimited) -> None:
        is_budget = isinstance(error, BudgetSpent)
        self._reason = DAILY_LIMIT if is_budget else PROVIDER_RATE
        if isinstance(error, DollarsSpent):
            # It may be raised before it renews, which is seen with the next try.
            self._reason = error.budget
        wait_s = error.retry_after if is_budget else min(error.retry_after, LONGEST_PAUSE_S)
        self._paused_until = max(self._paused_until, self._clock() + wait_s)
        self.rows.paused()
        # A row that was refused before says nothing of others.
        of_rate = not isinstance(error, _BUDGETS)
        self._limits += of_rate and row.seen is None
        self.rows.put_off(replace(row, alone=0, seen=self._seen) if of_rate else row, 0.0)

    def _is_refused_alone(self, row: WaitingRow) -> bool:
        """Whether others were answered since the row was refused last, and none were refused."""
        seen = row.seen
        return seen is not None and seen.limits == self._limits and seen.answers < self._answers

    def _is_last_try(self, row: WaitingRow) -> bool:
        return row.tries == len(self._pauses.retries)

    def _tried(self, row: WaitingRow, patience: float = 1.0) -> bool:
        """Put the row off for its next try, so many times as long; whether it was the last one."""
        if self._is_last_try(row):
            return True
        self.under_way -= 1
        wait_s = patience * self._pauses.retries[row.tries]
        self.rows.put_off(replace(row, tries=row.tries + 1), wait_s)
        return False

    def _refused_alone(self, row: WaitingRow) -> bool:
        """Put the row off without the others, longer and longer; whether it is given up."""
        # Where others came through that had been put off so, it may come through as well.
        is_like_others = row.seen is not None and row.seen.recovered < self._recovered
        alone = 1 if is_like_others else row.alone + 1
        if alone > REFUSED_ALONE:
            return True
        self.under_way -= 1
        wait_s = min(self._pauses.outage * 2.0**alone, self._pauses.longest_outage)
        self.rows.put_off(replace(row, alone=alone, seen=self._seen), wait_s)
        return False

    @property
    def _seen(self) -> Seen:
        return Seen(self._answers, self._limits, self._recovered)

    def _pause_for_outage(self, reason: str) -> None:
        if self._is_paused:
            # It was under way when the pause began.
            return
        self._reason = reason
        pause_s = max(self._pauses.outage, 2 * self._pause_s)
        self._pause_s = min(pause_s, self._pauses.longest_outage)
        self._paused_until = self._clock() + self._pause_s

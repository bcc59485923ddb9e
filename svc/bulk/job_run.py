"""One job while it runs: which row is next, and what a failure means for the others.

It knows neither threads nor models; the runner tells it what became of each row.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from svc import limits
from svc.bulk.pace import Pace
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
from svc.store import Job, SpoolFile, SpoolLost

# So many rows that fail one after the other are hardly a matter of the rows: the models fail.
OUTAGE_ROWS = 10

# A model that works may give some rows no answer. A run of such rows is an outage where chance, as
# far as other rows tell, makes one so long less often than this, or where it has so many rows.
SELDOM, MOST_UNANSWERED = 1e-3, 100

# In an outage a row that models answer is looked for among rows of so many characters, of all jobs
# together, and in one block of each at least.
AHEAD_CHARS = 4_000_000

# Of rows that are tried again later, so many characters of a job stay in memory. Those of others
# are read again.
LATER_CHARS = 500_000

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

# Where so many rows were put off, these are asked before any further ones.
MOST_PUT_OFF = 100

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


class Seen(NamedTuple):
    """How many rows were answered, to how many the rate was refused, and how many of these were
    answered after they had been put off alone.
    """

    answers: int
    limits: int
    recovered: int


@dataclass(frozen=True, order=True, slots=True)
class WaitingRow:
    """A row to be asked: its number, its JSON, and how often it was tried.

    Where it waits for a further try, its JSON may be empty, and is read again before that.

    `alone` counts how often a provider's rate was refused to it while others were answered. `seen`
    is what had become of its job when the rate was refused to it last, None where it never was.
    """

    number: int
    text: str = field(compare=False)
    tries: int = field(compare=False, default=0)
    alone: int = field(compare=False, default=0)
    seen: Seen | None = field(compare=False, default=None)


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
        # The runner divides them among the jobs that it runs.
        self.ahead_chars = AHEAD_CHARS
        self.pace = Pace()
        self._file, self._is_settled, self._clock = file, settled, clock
        self._pauses = pauses
        # Rows of the blocks that were read last, the last one first.
        self._block: list[WaitingRow] = []
        self._block_chars = self._later_chars = 0
        # Rows that were tried, by when they may be tried again.
        self._later: list[tuple[float, WaitingRow]] = []
        # Whether the row that was taken last was tried before, and whether the rate was waited for
        # since one was taken that was not.
        self._again = self._has_paused = False
        self._read = False
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
        row = self._next()
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
        self._put_off(row, self._pauses.outage)

    def stuck(self, row: WaitingRow) -> None:
        """The row failed for good, and its error could not be stored for an unforeseen reason."""
        self.under_way -= 1
        self._put_off(row, self._pauses.longest_outage)

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
            self._put_off(row, 0.0)
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
        if self._is_out and not (works and self._read and not self._block):
            self.under_way -= 1
            self._pause_for_outage(MODELS)
            counts = works and not self._is_last_try(row)
            self._put_off(replace(row, tries=row.tries + 1) if counts else row, 0.0)
            return False
        return self._tried(row)

    def follow(self, renewed: Callable[[SpoolFile], SpoolFile]) -> None:
        """Go on with the file that took the place of its own, if one did. Raises `SpoolLost`."""
        self._file = renewed(self._file)

    def close(self) -> None:
        """Close its file."""
        self._file.close()

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

    def _put_off(self, row: WaitingRow, seconds: float) -> None:
        if self._later_chars + len(row.text) > LATER_CHARS:
            row = replace(row, text="")
        self._later_chars += len(row.text)
        heapq.heappush(self._later, (self._clock() + seconds, row))

    def _put_off_first(self) -> WaitingRow:
        """The row that was due first of those that were put off. Raises `SpoolLost`."""
        _, row = heapq.heappop(self._later)
        self._later_chars -= len(row.text)
        return row if row.text else replace(row, text=self._file.row(row.number))

    def _wait_for_rate(self, row: WaitingRow, error: RateLimited | PartlyLimited) -> None:
        is_budget = isinstance(error, BudgetSpent)
        self._reason = DAILY_LIMIT if is_budget else PROVIDER_RATE
        if isinstance(error, DollarsSpent):
            # It may be raised before it renews, which is seen with the next try.
            self._reason = error.budget
        wait_s = error.retry_after if is_budget else min(error.retry_after, LONGEST_PAUSE_S)
        self._paused_until = max(self._paused_until, self._clock() + wait_s)
        self._has_paused = True
        # A row that was refused before says nothing of others.
        of_rate = not isinstance(error, _BUDGETS)
        self._limits += of_rate and row.seen is None
        self._put_off(replace(row, alone=0, seen=self._seen) if of_rate else row, 0.0)

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
        self._put_off(replace(row, tries=row.tries + 1), wait_s)
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
        self._put_off(replace(row, alone=alone, seen=self._seen), wait_s)
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

    def _next(self) -> WaitingRow | None:
        while not self._block and not self._read:
            self._read_block()
        if self._is_out and self._block:
            # Any row that did not fail itself: neighbours may fail for a reason that they share.
            while self._block_chars < self.ahead_chars and not self._read:
                self._read_block()
            return self._from_block(random.randrange(len(self._block)))
        is_due = bool(self._later) and self._later[0][0] <= self._clock()
        if not (is_due or self._answers) and len(self._later) >= MOST_PUT_OFF:
            # No row was answered yet, and many are to be tried again.
            return None
        # Rows that were put off and others take turns, since it may be only the former that fail.
        # Where many were put off, one other is taken after each pause.
        takes_turns = self._again and (len(self._later) < MOST_PUT_OFF or self._has_paused)
        self._again = is_due and not (takes_turns and self._block)
        if self._again:
            return self._put_off_first()
        self._has_paused = False
        return self._from_block(-1) if self._block else None

    def _from_block(self, index: int) -> WaitingRow:
        row = self._block.pop(index)
        self._block_chars -= len(row.text)
        return row

    def _read_block(self) -> None:
        found = self._file.rows(self._has_unsettled)
        if found is None:
            self._read = True
            if self._file.read_to < self.job.rows:
                raise SpoolLost("its rows beside the database are cut short")
            return
        first, texts = found
        rows = [WaitingRow(number, text) for number, text in enumerate(texts, first)]
        further = [row for row in reversed(rows) if not self._is_settled[row.number]]
        self._block = further + self._block
        self._block_chars += sum(len(row.text) for row in further)

    def _has_unsettled(self, numbers: range) -> bool:
        return 0 in self._is_settled[numbers.start : numbers.stop]

"""The rows of one job that are still to be asked: those not yet read, and those to try again."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from svc import limits
from svc.store import SpoolFile, SpoolLost

# Of rows that are tried again later, so many characters of a job stay in memory. Those of others
# are read again.
LATER_CHARS = 500_000

# Where so many rows were put off, these are asked before any further ones.
MOST_PUT_OFF = 100


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


class RowQueue:
    """Gives one row after the other, and takes back those that are to be tried again."""

    def __init__(
        self, file: SpoolFile, rows: int, settled: bytearray, clock: Callable[[], float]
    ) -> None:
        """The file has so many `rows`; `settled` has 1 at the number of each that is over.

        `clock` is in seconds.
        """
        self._file, self._rows, self._settled, self._clock = file, rows, settled, clock
        # What is read ahead in an outage; the runner divides it among the jobs that it runs.
        self.ahead_chars = limits.JOB_AHEAD_CHARS
        # Rows of the blocks that were read last, the last one first.
        self._block: list[WaitingRow] = []
        self._block_chars = self._later_chars = 0
        # Rows that were tried, by when they may be tried again.
        self._later: list[tuple[float, WaitingRow]] = []
        # Whether the row that was given last was tried before, and whether the job has paused since
        # one was given that was not.
        self._again = self._has_paused = False
        self._is_read = False

    @property
    def were_all_given(self) -> bool:
        """Whether each row was given at least once."""
        return self._is_read and not self._block

    def put_off(self, row: WaitingRow, seconds: float) -> None:
        """Give the row again, in so many seconds at the earliest."""
        if self._later_chars + len(row.text) > LATER_CHARS:
            row = replace(row, text="")
        self._later_chars += len(row.text)
        heapq.heappush(self._later, (self._clock() + seconds, row))

    def paused(self) -> None:
        """The job waits for a rate, after which a further row may be given beside many put off."""
        self._has_paused = True

    def next(self, has_answers: bool) -> WaitingRow | None:
        """The next row, None where none may be asked now. Raises `SpoolLost`.

        `has_answers` is whether a row of the job was answered yet.
        """
        self._read_some()
        is_due = bool(self._later) and self._later[0][0] <= self._clock()
        if not (is_due or has_answers) and len(self._later) >= MOST_PUT_OFF:
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

    def any(self) -> WaitingRow | None:
        """Any row that was not tried, None where there is none. Raises `SpoolLost`.

        It comes from anywhere: neighbours may fail for a reason that they share.
        """
        self._read_some()
        if not self._block:
            return None
        while self._block_chars < self.ahead_chars and not self._is_read:
            self._read_block()
        return self._from_block(random.randrange(len(self._block)))

    def follow(self, renewed: Callable[[SpoolFile], SpoolFile]) -> None:
        """Go on with the file that took the place of its own, if one did. Raises `SpoolLost`."""
        self._file = renewed(self._file)

    def close(self) -> None:
        """Close its file."""
        self._file.close()

    def _put_off_first(self) -> WaitingRow:
        """The row that was due first of those that were put off. Raises `SpoolLost`."""
        _, row = heapq.heappop(self._later)
        self._later_chars -= len(row.text)
        return row if row.text else replace(row, text=self._file.row(row.number))

    def _from_block(self, index: int) -> WaitingRow:
        row = self._block.pop(index)
        self._block_chars -= len(row.text)
        return row

    def _read_some(self) -> None:
        while not self._block and not self._is_read:
            self._read_block()

    def _read_block(self) -> None:
        found = self._file.rows(self._has_unsettled)
        if found is None:
            self._is_read = True
            if self._file.read_to < self._rows:
                raise SpoolLost("its rows beside the database are cut short")
            return
        first, texts = found
        rows = [WaitingRow(number, text) for number, text in enumerate(texts, first)]
        further = [row for row in reversed(rows) if not self._settled[row.number]]
        self._block = further + self._block
        self._block_chars += sum(len(row.text) for row in further)

    def _has_unsettled(self, numbers: range) -> bool:
        return 0 in self._settled[numbers.start : numbers.stop]

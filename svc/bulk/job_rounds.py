"""The rows of a job, answered in rounds of batches.

A row is settled in the database, in one transaction with its decision, so that nothing is kept here
of what was answered. What has no reply yet is in the job's book.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing

from svc.bulk.block_rounds import BlockRounds, how_far, under_way
from svc.bulk.book import Book, blocks_of
from svc.bulk.replayed_rows import ReplayedRows
from svc.bulk.sending import UNATTENDED, RoundsEnd
from svc.engine.decide import Engine
from svc.errors import Pending
from svc.shares import Shares
from svc.store import Job, SpoolFile

# Makes what decides about rows with an engine.
RowsOf = Callable[[Engine], ReplayedRows]


class JobRounds:
    """Brings the rows of one job through their rounds, by small steps."""

    def __init__(
        self,
        job: Job,
        book: Book,
        rows: ReplayedRows,
        opened: Callable[[], SpoolFile],
        settled: Callable[[], bytearray],
        check: Callable[[], None],
        in_turn: Callable[[], AbstractContextManager[None]],
        room: Shares,
        bytes_of: Callable[[range], int],
        poll_s: float,
        hindrance: Callable[[], str | None],
    ) -> None:
        """`opened` gives the job's inputs, `settled` has 1 at the number of each settled row.

        `check` is called between any two rows and may raise to end the rounds. Rows are decided
        about inside `in_turn`, and blocks begin when `room` has that for the bytes of their
        calls, which `bytes_of` gives for the numbers of their rows. Batches are looked after every
        `poll_s` seconds. `hindrance` says why no further batch may be made, if that is so; what is
        at the providers is looked after all the same.
        """
        self._job, self._book, self._rows = job, book, rows
        self._opened, self._settled, self._check = opened, settled, check
        self._in_turn, self._room, self._poll_s = in_turn, room, poll_s
        self._bytes_of = bytes_of
        self._find_hindrance = hindrance
        # As of the last step.
        self._hindrance: str | None = None
        self._blocks = list(blocks_of(job.rows, book.block_rows or 1))
        self._running = [BlockRounds(book.block(number)) for number in range(len(self._blocks))]
        # The blocks whose bytes were taken.
        self._taken: set[int] = set()
        done = settled()
        for running in self._running:
            running.open(poll_s, UNATTENDED)
            # Of rows that are settled nothing is kept, and nothing needs room.
            running.answered = not running.round and 0 not in _part(
                done, self._blocks[running.block.number]
            )
        # Only now, as a record that cannot be read ends this, and nobody would give it back.
        for running in self._running:
            if running.round:
                self._takes_room(running)

    @property
    def finished(self) -> bool:
        """Whether every row is settled, and the provider has nothing left of them."""
        return all(one.answered and not one.sendings for one in self._running)

    @property
    def waiting_for(self) -> str | None:
        """Who is at work, and how far; None where that is nobody."""
        batches = under_way(self._running)
        if self._hindrance is not None and not any(one.made for one in batches):
            return self._hindrance
        if not batches:
            return None if self.finished else "room for its calls, which other jobs have now"
        failing = sorted({one.file.provider for one in batches if one.fails})
        if failing:
            why = sorted({one.refusal for one in batches if one.refusal is not None})
            told = "which does not take or show batches just now"
            return ": ".join([f"provider {', '.join(failing)}, {told}", *why])
        names = ", ".join(sorted({one.file.provider for one in batches}))
        last = max(running.round for running in self._running)
        return f"provider {names}, which is at work: {how_far(batches)}, round {last}"

    def step(self) -> None:
        """Do what is due for each block. Raises `RoundsEnd`, `SpoolLost` and what rows raise."""
        refused: RoundsEnd | None = None
        self._hindrance = self._find_hindrance()
        for running in self._running:
            if not (running.round or self._takes_room(running)):
                # Those after it have to wait as well.
                break
            try:
                self._advance(running)
            except RoundsEnd as error:
                # What was paid already is not lost with the others.
                refused = error
        if refused is not None:
            raise refused

    def _advance(self, running: BlockRounds) -> None:
        self._check()
        try:
            self._send(running)
        finally:
            # Results that are there count also where another batch is refused.
            while running.due:
                self._replay(running)
        self._send(running)
        running.sendings = [one for one in running.sendings if not one.cleared]
        if running.answered and not running.sendings:
            # Its rows are settled in the database.
            running.block.remove()
            self.leave_room(running)

    def _send(self, running: BlockRounds) -> None:
        for sending in running.sendings:
            self._check()
            if sending.made or self._hindrance is None:
                sending.step()

    def leave_room(self, *blocks: BlockRounds) -> None:
        """Give back the room that blocks have, or all where none is named."""
        for running in blocks or self._running:
            if running.block.number in self._taken:
                self._taken.remove(running.block.number)
                self._room.give_back(self._job.api_key, self._bytes(running))

    def _takes_room(self, running: BlockRounds) -> bool:
        """Whether there is room for the calls of a block, which takes it."""
        if running.answered or running.block.number in self._taken:
            return True
        if not self._room.take(self._job.api_key, self._bytes(running)):
            return False
        self._taken.add(running.block.number)
        return True

    def _bytes(self, running: BlockRounds) -> int:
        return self._bytes_of(self._blocks[running.block.number])

    def _replay(self, running: BlockRounds) -> None:
        """Decide about the rows that lacked replies; what they want further is the next round."""
        pending, rows = 0, self._blocks[running.block.number]
        if 0 in _part(self._settled(), rows):
            with self._in_turn(), running.block.replay() as replay:
                for number, text in unsettled(self._opened, self._settled(), rows):
                    self._check()
                    replay.begin(number)
                    try:
                        self._rows.answer(number, text)
                    except Pending:
                        pending += 1
                self._rows.stored()
        running.answered = not pending
        if pending:
            running.open(self._poll_s, UNATTENDED)


def unsettled(
    opened: Callable[[], SpoolFile], settled: bytearray, among: range
) -> Iterator[tuple[int, str]]:
    """The rows among these numbers that have neither decision nor error, with their JSON.

    Raises `SpoolLost`.
    """

    def wanted(numbers: range) -> bool:
        start, stop = max(among.start, numbers.start), min(among.stop, numbers.stop)
        return start < stop and 0 in settled[start:stop]

    if 0 not in _part(settled, among):
        return
    with closing(opened()) as file:
        while (found := file.rows(wanted)) is not None:
            for number, text in enumerate(found[1], found[0]):
                if number in among and not settled[number]:
                    yield number, text


def _part(settled: bytearray, rows: range) -> bytearray:
    return settled[rows.start : rows.stop]

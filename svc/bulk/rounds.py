"""Rows answered in rounds: what they want is sent in batches, until they want nothing more.

Blocks of rows go their rounds independently of each other, so that a million rows are in the
provider's queue at once while no more than one block is ever read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby

from svc.batch import Form, InputLine, Kind, Result
from svc.bulk.answered import Answered
from svc.bulk.book import Block, Book
from svc.bulk.sending import RoundsEnd, Sending
from svc.errors import Pending

# The most rows of a block, and the calls of one: a batch of a provider.
BLOCK_ROWS = 10_000
BLOCK_CALLS = 50_000

Work = Callable[[InputLine], Result]


@dataclass(slots=True)
class _Running:
    """A block with the batches of its present round."""

    block: Block
    form: Form
    results: Answered
    round: int = 0
    sendings: list[Sending] = field(default_factory=list)
    answered: bool = False

    @property
    def due(self) -> bool:
        """Whether its rows are to be replayed."""
        return not self.answered and all(one.over for one in self.sendings)


def cancel(book: Book) -> None:
    """Ask providers to carry out no more of the batches that are under way."""
    for block in book.blocks():
        for file in block.batches:
            if file.provider in book.apis:
                Sending(file, book.apis[file.provider], 0.0).cancel()


class Rounds:
    """Answers the lines of a run; each result comes after those of all lines before it."""

    def __init__(
        self,
        book: Book,
        work: Work,
        calls: int,
        poll_s: float,
        pause: Callable[[float], None] = time.sleep,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """`work` answers a line from the book's replies, and makes about so many `calls`.

        Batches are looked after every `poll_s` seconds. `pause` waits for so many seconds, and may
        raise to end the run, as it is called between any two lines too. `tell` is told how far the
        batches are.
        """
        self._book, self._work, self._poll_s = book, work, poll_s
        self._pause, self._tell = pause, tell
        self._rows = max(1, min(BLOCK_ROWS, BLOCK_CALLS // max(1, calls)))
        self._running: deque[_Running] = deque()
        self._told = ""

    def results(self, lines: Iterator[InputLine]) -> Iterator[Result]:
        """The result of each line, and one of the kind `END` where the provider refuses batches."""
        try:
            for number, rows in groupby(lines, lambda line: (line.number - 1) // self._rows):
                self._begin(number, rows)
            while self._running:
                yield from self._finished()
                if self._running:
                    self._step()
        except RoundsEnd as error:
            yield from self._finished()
            yield Result(Kind.END, b"", error.message)

    def _begin(self, number: int, rows: Iterator[InputLine]) -> None:
        block = self._book.block(number)
        first = next(rows)
        block.keep_rows(chain([first], rows))
        running = _Running(block, first.form, Answered(block.folder))
        running.results.forget()
        self._running.append(running)
        self._open(running)
        self._advance(running)

    def _finished(self) -> Iterator[Result]:
        """The results of the first blocks, as far as they are answered."""
        while self._running and self._running[0].answered:
            yield from self._running[0].results
            self._running.popleft()

    def _step(self) -> None:
        """Look after every block, and wait where nothing is to be done for any."""
        for running in self._running:
            self._advance(running)
        self._report()
        if not self._running[0].answered:
            self._pause(self._poll_s)

    def _advance(self, running: _Running) -> None:
        for sending in running.sendings:
            sending.step()
            self._pause(0)
        while running.due:
            self._replay(running)

    def _open(self, running: _Running) -> None:
        """Go on with the batches of the round that the book has last."""
        batches = running.block.batches
        running.round = max([int(one.stem.partition("-")[0]) for one in batches], default=0)
        running.sendings = [
            Sending(one, self._book.apis[one.provider], self._poll_s)
            for one in batches
            if not one.replies.exists()
        ]

    def _replay(self, running: _Running) -> None:
        """Make the decisions that lacked replies; the next round is sent where some still do."""
        pending = 0
        with running.block.replay() as replay, running.results.renewed() as results:
            for line in running.block.rows(running.form):
                self._pause(0)
                if results.has(line.number):
                    continue
                replay.begin(line.number)
                try:
                    results.add(line.number, self._work(line))
                except Pending:
                    pending += 1
        running.answered = not pending
        if pending:
            self._open(running)
            for sending in running.sendings:
                sending.step()

    def _report(self) -> None:
        batches = [one for running in self._running for one in running.sendings if not one.over]
        if not batches:
            return
        done, wanted = sum(one.done for one in batches), sum(one.file.lines for one in batches)
        last = max(running.round for running in self._running)
        noun = "batch" if len(batches) == 1 else "batches"
        told = f"Round {last}: {done:,} of {wanted:,} requests done in {len(batches):,} {noun}"
        if told != self._told:
            self._told = told
            self._tell(told)

"""Rows answered in rounds: what they want is sent in batches, until they want nothing more.

Blocks of rows go their rounds independently of each other, so that a million rows are in the
provider's queue at once while no more than one block is ever read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby

from svc.batch import Form, InputLine, Kind, Result
from svc.bulk.answered import Answered
from svc.bulk.block_lines import BlockLines
from svc.bulk.block_rounds import BlockRounds, how_far, under_way
from svc.bulk.book import Book, rows_of_block
from svc.bulk.sending import RoundsEnd, readable
from svc.errors import Pending

Work = Callable[[InputLine], Result]


@dataclass(slots=True, kw_only=True)
class _Running(BlockRounds):
    """A block with its lines, the form of these, and their results."""

    lines: BlockLines
    form: Form
    results: Answered


def give_up(book: Book) -> int:
    """Have providers carry out no more of what the book has sent, and delete its files.

    Returns of how many batches something is left at a provider, or may be.
    """
    batches, damaged = book.readable()
    sendings = readable(batches, book.apis)
    return damaged + sum(one is None or not one.give_up() for one in sendings)


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
        self._rows = rows_of_block(calls)
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
        kept, results = BlockLines(block.folder), Answered(block.folder)
        kept.keep(chain([first], rows))
        running = _Running(block, lines=kept, form=first.form, results=results)
        running.results.forget()
        self._running.append(running)
        running.open(self._poll_s)
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

    def _replay(self, running: _Running) -> None:
        """Make the decisions that lacked replies; the next round is sent where some still do."""
        pending = 0
        with running.block.replay() as replay, running.results.renewed() as results:
            for line in running.lines.read(running.form):
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
            running.open(self._poll_s)
            for sending in running.sendings:
                sending.step()

    def _report(self) -> None:
        batches = under_way(self._running)
        if not batches:
            return
        last = max(running.round for running in self._running)
        told = f"Round {last}: {how_far(batches)}"
        if told != self._told:
            self._told = told
            self._tell(told)

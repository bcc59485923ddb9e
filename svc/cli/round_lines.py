"""The lines of a run, answered in rounds of batches whose replies are kept beside the output."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path

from svc import inprocess
from svc.batch import (
    RUN_SUFFIX,
    Ahead,
    AnswerLine,
    InputLine,
    Interruptions,
    Kind,
    Progress,
    Result,
    answer_line,
)
from svc.bulk.book import FACTS, Book
from svc.bulk.rounds import Rounds, give_up
from svc.cli.batch_options import Batch
from svc.cli.notices import notice
from svc.errors import Damaged
from svc.inprocess import InProcess
from svc.providers import BatchClient

# The longest time between two looks for a signal, in seconds.
_LOOK_S = 0.5

# So many of the first lines are tried until one can be asked directly.
_TRIED = 100


class RoundWork:
    """Turns lines into results in rounds of batches."""

    # A call is sent several times before it has failed, so that no outage is left to wait for.
    outage: int | None = None
    # The lines of a block come together, hours after its calls were sent.
    steady = False

    def __init__(
        self,
        batch: Batch,
        answering: Callable[[InProcess], AnswerLine],
        models: Sequence[str],
        calls: int,
        apis: Mapping[str, BatchClient],
    ) -> None:
        """A line takes about so many `calls` of the `models`, whose providers have these `apis`."""
        self._batch, self._answering = batch, answering
        self._models, self._calls, self._apis = models, calls, apis
        self._book: Book | None = None
        self._complete = False

    def waiting(self) -> float:
        """No rate limit delays a batch."""
        return 0.0

    @contextmanager
    def over(
        self, lines: Iterator[InputLine], at_once: int, progress: Progress, _ahead: Ahead, _run: str
    ) -> Iterator[Iterable[Result]]:
        """The results of the lines, in their order; what is ahead is in the book."""
        self._book = book = self._opened()
        if book.known is None:
            lines = self._learn(book, lines)
        woken = threading.Event()
        with (
            inprocess.replay(book, book.known or {}) as engine,
            Interruptions(woken.set) as interruptions,
        ):
            pause = partial(_pause, woken, interruptions)
            work = partial(answer_line, self._answering(engine))
            rounds = Rounds(book, work, self._calls, engine.poll_s, pause, progress.tell)
            yield self._all(rounds.results(lines))

    def finish(self) -> None:
        """Delete the replies, unless some are still needed."""
        if self._book is not None and self._complete:
            _give_up(self._book)
            self._book.remove()

    def _all(self, results: Iterator[Result]) -> Iterator[Result]:
        for result in results:
            yield result
            if result.kind is Kind.END:
                return
        self._complete = True

    def _opened(self) -> Book:
        """The book beside the output, a new one where the run starts again."""
        # Lines that are asked again have other replies.
        suffix = ".retried.batch" if self._batch.retry_failed else ".batch"
        folder = Path(self._batch.output + suffix)
        record = Path(self._batch.output + RUN_SUFFIX).read_bytes()
        if self._batch.restart:
            _start_again(folder, partial(Book, folder, self._apis, record))
        book = Book(folder, self._apis, record)
        book.check()
        return book

    def _learn(self, book: Book, lines: Iterator[InputLine]) -> Iterator[InputLine]:
        """Ask about one line directly, to learn how its models can be asked; all the lines.

        Otherwise each line would find out by itself, in rounds of its own.
        """
        tried = []
        with inprocess.engine(False, 1) as engine:
            answer = self._answering(engine)
            for line in islice(lines, _TRIED):
                tried.append(line)
                if answer_line(answer, line).kind is not Kind.REFUSED:
                    break
            book.know({model: engine.traits(model) for model in self._models})
        return chain(tried, lines)


def _start_again(folder: Path, opened: Callable[[], Book]) -> None:
    """Have nothing left of what is in the folder."""
    try:
        book = opened()
    except Damaged:
        # Its batches have records of their own, which a new book finds.
        (folder / FACTS).unlink()
        book = opened()
    _give_up(book)
    book.remove()


def _give_up(book: Book) -> None:
    """Leave nothing at the providers that nobody needs any more."""
    if left := give_up(book):
        batches = "one batch" if left == 1 else f"{left:,} batches"
        notice(f"the provider still has {batches} of this run or files of it, named svc-{book.run}")


def _pause(woken: threading.Event, interruptions: Interruptions, seconds: float) -> None:
    """Wait, unless a signal ends the run."""
    end = time.monotonic() + seconds
    while True:
        interruptions.check()
        left = end - time.monotonic()
        if left <= 0:
            return
        woken.wait(min(left, _LOOK_S))

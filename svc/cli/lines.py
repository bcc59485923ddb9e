"""How the lines of a run are answered: what is settled before the first one, and by whom."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from svc import inprocess
from svc.batch import (
    FAILURES,
    Ahead,
    AnswerLine,
    InputLine,
    Progress,
    Result,
    Workers,
    answer_line,
    forked,
)
from svc.cli.plans import ModelOptions
from svc.engine.assembly import SharedCalls
from svc.inprocess import Forecast, InProcess, PaidBy, forecast_by
from svc.jsontext import JsonObject
from svc.schemas import DecisionRequest, load_decision

# One process works on so many lines at once. With more, a fast provider would wait for it.
LINES_A_PROCESS = 32

Answering = Callable[[InProcess, DecisionRequest], AnswerLine]


class LineWork(Protocol):
    """Turns lines into results.

    `waiting` says for how many seconds a rate limit still delays the lines. After `outage`
    failures in a row the models are taken to be down. Where lines do not come one by one, the work
    is not `steady`.
    """

    @property
    def waiting(self) -> Callable[[], float]: ...
    @property
    def outage(self) -> int | None: ...
    @property
    def steady(self) -> bool: ...

    def over(
        self, lines: Iterator[InputLine], at_once: int, progress: Progress, ahead: Ahead, run: str
    ) -> AbstractContextManager[Iterable[Result]]:
        """The results of the lines, in their order, `at_once` of which are under way.

        Those that are there before earlier ones are kept in `ahead`. `run` is a random id of all
        runs that write this output.
        """


@dataclass(frozen=True, slots=True)
class ThreadedWork:
    """Lines that are turned into results in threads.

    `work` is the function that does it, and `cut` the one that ends this work.
    """

    work: Callable[[InputLine], Result]
    cut: Callable[[], None]
    waiting: Callable[[], float]
    outage: int | None = FAILURES
    steady: bool = True

    def over(
        self, lines: Iterator[InputLine], at_once: int, progress: Progress, ahead: Ahead, _run: str
    ) -> AbstractContextManager[Iterable[Result]]:
        return in_threads(lines, self.work, at_once, self.cut, progress, ahead)


def in_threads(
    lines: Iterator[InputLine],
    work: Callable[[InputLine], Result],
    at_once: int,
    cut: Callable[[], None],
    progress: Progress,
    ahead: Ahead,
) -> Workers[InputLine, Result]:
    """Work on lines in `at_once` threads, which `cut` ends; what is early is kept in `ahead`."""
    ahead_or_work = partial(ahead.work, work)
    return Workers(lines, ahead_or_work, at_once, cut, progress.refresh, ahead.keep, ahead.clear)


@dataclass(frozen=True, slots=True)
class Settled:
    """What is settled before the first line.

    `identity` holds what a run must have in common with the one that it continues, and `request`
    has an empty state in place of one of the input. `at_once` lines are answered at a time, while
    the block of `start()` lasts. `forecast` says what so many lines take by a sample of their
    states, as `POST /v1/forecast` answers it.
    """

    identity: JsonObject
    request: DecisionRequest
    at_once: int
    start: Callable[[], AbstractContextManager[LineWork]]
    forecast: Forecast


class Answerer(Protocol):
    """Whoever answers the lines of a run."""

    def settle(self, questions: JsonObject, at_once: int) -> Settled:
        """Settle how lines are answered, `at_once` of them at a time; leaves no thread running."""


class InProcessAnswerer:
    """Answers lines in this process, or in several where one would be too slow."""

    def __init__(
        self, asking: ModelOptions, answering: Answering, paid_by: PaidBy | None = None
    ) -> None:
        """`answering` makes the function that answers the value of a line."""
        self._asking, self._answering, self._paid_by = asking, answering, paid_by

    def settle(self, questions: JsonObject, at_once: int) -> Settled:
        with inprocess.engine(self._asking.demo, 1, paid_by=self._paid_by) as engine:
            fields = engine.settle(self._asking.fields)
            request = load_decision({**fields, "questions": questions, "state": {}})
            at_once = engine.at_once(request, at_once)
            engine.check_prices(request)
            # A process that is forked ends without giving back what it has of a budget.
            alone = engine.budgeted or self._paid_by is not None
            processes = 1 if alone else min(os.cpu_count() or 1, _processes(at_once))
            threads = [len(range(first, at_once, processes)) for first in range(processes)]
            identity = {"config": engine.config, **fields}
            start = partial(self._start, request, threads)
            forecast = forecast_by(engine.forecaster(request))
            return Settled(identity, request, at_once, start, forecast)

    @contextmanager
    def _start(self, request: DecisionRequest, threads: list[int]) -> Iterator[LineWork]:
        with closing(SharedCalls()) as shared:
            here = partial(self._here, request, shared)
            if len(threads) == 1:
                with here(threads[0]) as lines:
                    yield lines
            else:
                with forked(threads, here) as children:
                    yield ThreadedWork(children.work, children.cut, shared.pauses.left)

    @contextmanager
    def _here(
        self, request: DecisionRequest, shared: SharedCalls, threads: int
    ) -> Iterator[ThreadedWork]:
        with inprocess.engine(self._asking.demo, threads, shared, self._paid_by) as engine:
            work = partial(answer_line, self._answering(engine, request))
            yield ThreadedWork(work, engine.cut, shared.pauses.left)


def _processes(at_once: int) -> int:
    return -(-at_once // LINES_A_PROCESS)

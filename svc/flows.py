"""Jobs that run at the same time, each in a thread of its own above the threads of calls.

A flow waits for calls, a call waits for nothing, and only a request's thread starts flows. So they
cannot wait for each other in a circle, whatever the load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from svc import limits
from svc.deadline import Deadline
from svc.errors import ENDING, ApiError, Pending, Timeout
from svc.shares import Shares
from svc.threads import Threads

T = TypeVar("T")
R = TypeVar("R")
Job = Callable[[Deadline], T]


class Race(Generic[T]):
    """Jobs of which the first valid outcome counts."""

    def __init__(self, jobs: int, valid: Callable[[T], bool], lane: Deadline) -> None:
        self.lane = lane
        # The first valid outcome. Where the race ends without one, the first outcome.
        self.winner: tuple[int, T] | None = None
        self.failures: list[ApiError] = []
        self.running = True
        self._valid, self._left = valid, jobs

    def finish(self, index: int, outcome: T | BaseException) -> None:
        """Take in one job's outcome; raises an error that ends the whole request."""
        if not self.running:
            # The race is decided, and this job lost it.
            return
        self._left -= 1
        self.running = self._left > 0
        if isinstance(outcome, ApiError) and not isinstance(outcome, ENDING):
            self.failures.append(outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        elif self._valid(outcome):
            self.winner = (index, outcome)
            self.running = False
            self.lane.cancel()
        else:
            self.winner = self.winner or (index, outcome)


class FlowPool:
    """Bounded threads for the flows of every request."""

    def __init__(self, threads: int) -> None:
        self._threads = Threads(threads, "svc-flow")
        self._places = Shares(threads)

    def run(
        self, jobs: Sequence[Job[T]], deadline: Deadline, caller: str | None = None
    ) -> list[T | ApiError]:
        """The outcome of each job, all run at the same time; the last in this thread.

        So are those for which there is no place in the share of `caller`, one after the other.
        Raises one of `ENDING` as soon as a job does, since no other job could make up for it.
        """
        if not jobs:
            return []
        futures = [self._started(caller, deadline, _outcome, job, deadline) for job in jobs[:-1]]
        left = [job for job, future in zip(jobs, futures, strict=False) if future is None]
        here = iter([_outcome(job, deadline) for job in left])
        last = _outcome(jobs[-1], deadline)
        try:
            ended = [_result(future, deadline) if future else next(here) for future in futures]
        except TimeoutError:
            raise Timeout("the request exceeded its deadline") from None
        return [*ended, last]

    def race(
        self,
        races: Sequence[Sequence[Job[T]]],
        valid: Callable[[T], bool],
        deadline: Deadline,
        caller: str | None = None,
    ) -> list[Race[T]]:
        """Run all jobs of all races at the same time; each ends with its first valid outcome.

        Those for which there is no place in the share of `caller` begin when there is one.

        The other jobs are cut off and not waited for. Raises `Timeout` when the deadline passes
        first.
        """
        finished: SimpleQueue[tuple[Race[T], int, T | BaseException]] = SimpleQueue()
        running = [Race[T](len(jobs), valid, deadline.branch()) for jobs in races]
        waiting = [
            (race, index, job)
            for race, jobs in zip(running, races, strict=True)
            for index, job in enumerate(jobs)
        ]
        try:
            while any(race.running for race in running):
                waiting = [one for one in waiting if one[0].running]
                while waiting and self._started(caller, deadline, _report, finished, *waiting[0]):
                    waiting.pop(0)
                wait_s = min(deadline.left(), limits.ROOM_LOOK_S) if waiting else deadline.left()
                try:
                    race, index, outcome = finished.get(timeout=max(0.0, wait_s))
                except Empty:
                    deadline.check()
                else:
                    race.finish(index, outcome)
        finally:
            for race in running:
                race.lane.cancel()
        return running

    def _started(
        self, caller: str | None, deadline: Deadline, work: Callable[..., R], *arguments: Any
    ) -> Future[R] | None:
        """Work that a thread has begun, None where the caller has no place for it now."""
        if not self._places.take(caller):
            return None

        def shared() -> R:
            try:
                with deadline.effort.counted():
                    return work(*arguments)
            finally:
                self._places.give_back(caller)

        return self._threads.submit(shared)

    def close(self) -> None:
        """Let no further flow start, and wait for those under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)


class FlowsInTurn(FlowPool):
    """Runs the jobs of a decision one after the other, in the caller's thread.

    For decisions from replies that are known: `Pending` is raised after all jobs that are run at
    the same time elsewhere, so that each of them has made its calls.
    """

    def __init__(self) -> None:
        """No thread is started."""

    def run(
        self, jobs: Sequence[Job[T]], deadline: Deadline, caller: str | None = None
    ) -> list[T | ApiError]:
        """The outcome of each job. Raises one of `ENDING` and `Pending`."""
        return each_of([partial(_outcome, job, deadline) for job in jobs])

    def race(
        self,
        races: Sequence[Sequence[Job[T]]],
        valid: Callable[[T], bool],
        deadline: Deadline,
        caller: str | None = None,
    ) -> list[Race[T]]:
        """The first valid outcome of each race, in the order of its jobs, as nobody is faster.

        A job is run only where those before it gave no valid outcome. Raises as `run` does.
        """
        return each_of([partial(_raced, jobs, valid, deadline) for jobs in races])

    def close(self) -> None:
        """Nothing is under way."""


def each_of(steps: Sequence[Callable[[], T]]) -> list[T]:
    """The result of each step. All are taken before `Pending` is raised where one raised it."""
    results, pending = [], None
    for step in steps:
        try:
            results.append(step())
        except Pending as error:
            pending = error
    if pending is not None:
        raise pending
    return results


def _raced(jobs: Sequence[Job[T]], valid: Callable[[T], bool], deadline: Deadline) -> Race[T]:
    race = Race(len(jobs), valid, deadline.branch())
    for index, job in enumerate(jobs):
        race.finish(index, _outcome(job, deadline))
        if not race.running:
            break
    return race


def _result(future: Future[T], deadline: Deadline) -> T:
    return future.result(timeout=max(0.0, deadline.left()))


def _outcome(job: Job[T], deadline: Deadline) -> T | ApiError:
    try:
        return job(deadline)
    except ENDING:
        raise
    except ApiError as error:
        return error


def _report(
    finished: SimpleQueue[tuple[Race[T], int, T | BaseException]],
    race: Race[T],
    index: int,
    job: Job[T],
) -> None:
    try:
        finished.put((race, index, job(race.lane)))
    except ApiError as error:
        # Its traceback would hold this frame, and this frame the queue and all that is in it.
        finished.put((race, index, error.with_traceback(None)))
    except BaseException as error:  # noqa: BLE001 - passed on to the thread that waits
        finished.put((race, index, error))

"""Decisions about a job's rows from known replies, which other threads store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from svc import limits
from svc.bulk.answering import Answering, JobFails
from svc.deadline import Deadline
from svc.engine.decide import Engine
from svc.errors import ApiError
from svc.records import Decision
from svc.schemas import DecisionRequest, parsed_row, with_row
from svc.store import Job, JobRow, ProjectFull, UnreadableKey

# So many decisions wait to be stored at a time.
_WAITING = 4 * limits.JOB_THREADS


class ReplayedRows:
    """Makes the decisions of a job's rows from known replies, and has threads store them."""

    def __init__(
        self,
        job: Job,
        template: DecisionRequest,
        answering: Answering,
        pool: ThreadPoolExecutor,
        engine: Engine,
    ) -> None:
        """`answering` stores what became of rows, in threads of the `pool`."""
        self._job, self._template, self._engine = job, template, engine
        self._answering, self._pool = answering, pool
        self._room = threading.Semaphore(_WAITING)
        self._storing: list[Future[None]] = []

    def answer(self, number: int, text: str) -> None:
        """Decide about a row. Raises `Pending` where a reply is missing, and `JobFails`."""
        given = parsed_row(text)
        if not given:
            self._store(partial(self._answering.forget, self._job.seq, number))
            return
        row, began = JobRow(self._job.seq, number, given["id"]), time.monotonic()
        try:
            self._engine.decide(
                with_row(self._template, given),
                Deadline(limits.REQUEST_DEADLINE_S),
                self._job.api_key,
                keep=partial(self._keep, row, began),
            )
        except (ProjectFull, UnreadableKey) as error:
            raise JobFails(error.message) from None
        except ApiError as error:
            # A call was sent several times before it has failed.
            self._store(partial(self._answering.give_up, row, error))

    def stored(self) -> None:
        """Wait until all of them are. Raises `JobFails` and `StorageError` where one was not."""
        storing, self._storing = self._storing, []
        try:
            for one in storing:
                one.result()
        except ProjectFull as error:
            raise JobFails(error.message) from None

    def _keep(self, row: JobRow, began: float, decision: Decision) -> str:
        seconds = time.monotonic() - began
        self._store(partial(self._answering.keep, row, decision, seconds))
        return ""

    def _store(self, write: Callable[[], None]) -> None:
        self._room.acquire()
        future = self._pool.submit(write)
        future.add_done_callback(lambda _: self._room.release())
        self._storing.append(future)

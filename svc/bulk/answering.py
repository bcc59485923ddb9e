"""One row of a job: asked like a request, and stored with its decision or its error."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from functools import partial

from svc import jsontext
from svc.deadline import Deadline
from svc.engine.decide import Engine
from svc.errors import (
    MODELS_FAULT,
    ApiError,
    InternalError,
    JobSpent,
    ModelUnavailable,
    NotConfigured,
)
from svc.records import Decision, Source
from svc.schemas import DecisionRequest, parsed_row, with_row
from svc.store import JobRow, Jobs, ProjectFull, StorageError, UnreadableKey
from svc.threads import Threads

# The pause before something is stored again that the database did not take, in seconds.
STORED_AGAIN_S = 1.0

# Jobs have such a share of each provider's rate.
SHARE_OF_RATE = 0.5

# How many rows are stored at a time.
_STORING = 16

log = logging.getLogger(__name__)


class Settled(Enum):
    """How a row was settled: only a model that answers it now shows that the models work."""

    BY_MODEL = auto()
    WITHOUT_MODEL = auto()


class JobEnded(Exception):
    """The job has ended, and its row was not asked."""


class JobFails(Exception):
    """No row of the job can be asked; the message says why."""


class Answering:
    """Answers rows, in whichever thread calls."""

    def __init__(
        self,
        engine: Engine,
        add: Callable[[Decision, JobRow], str],
        jobs: Jobs,
        stop: threading.Event,
        counted: Callable[[float, Decision], None],
        deadline: Callable[[], Deadline],
    ) -> None:
        """`add` stores a decision with its row, and returns its id.

        `counted` is told of each decision, and of the seconds that it took. `deadline` is called
        for that of each row.
        """
        self._engine, self._add, self._jobs = engine, add, jobs
        self._stop, self._counted, self._deadline = stop, counted, deadline

    def at_once(self, template: DecisionRequest, wanted: int) -> int:
        """How many of the `wanted` rows to ask at a time.

        What cannot be asked in time is left out of an answer: an order of options, or a member of a
        council.
        """
        return self._engine.at_once(template, wanted, SHARE_OF_RATE)

    def answer(
        self, job: int, number: int, text: str, template: DecisionRequest, key_id: str | None
    ) -> ApiError | Settled:
        """Ask about a row, and store its decision, or its error where it cannot be asked.

        Returns how it is settled, or why no model answered. Raises `JobEnded` and `JobFails`,
        and `StorageError` where nothing could be stored until the process had to stop.
        """
        if not self._jobs.is_open(job):
            raise JobEnded
        if self._jobs.is_settled(JobRow(job, number, "")):
            # It was forgotten while it waited.
            return Settled.WITHOUT_MODEL
        given = parsed_row(text)
        if not given:
            self.forget(job, number)
            return Settled.WITHOUT_MODEL
        row = JobRow(job, number, given["id"])
        began = time.monotonic()
        try:
            decision = self._engine.decide(
                with_row(template, given),
                self._deadline(),
                key_id,
                keep=partial(self._keep, row),
                job=job,
            )
        except (ProjectFull, UnreadableKey) as error:
            raise JobFails(error.message) from None
        except JobSpent as error:
            if error.calls_under_way:
                # They may leave room for this row.
                return error
            raise JobFails(error.message) from None
        except ModelUnavailable as error:
            # To wait for a model that is not there helps no row.
            self.give_up(row, error)
            return Settled.WITHOUT_MODEL
        except (*MODELS_FAULT, InternalError, NotConfigured) as error:
            return error
        except ApiError as error:
            self.give_up(row, error)
            return Settled.WITHOUT_MODEL
        self._counted(time.monotonic() - began, decision)
        return Settled.BY_MODEL if _is_by_model(decision) else Settled.WITHOUT_MODEL

    def give_up(self, row: JobRow, error: ApiError) -> None:
        """Store that a row has no answer. Raises `JobFails` and `StorageError` as `answer` does."""
        text = jsontext.dumps({"type": error.type, "message": error.message})
        try:
            self._store(row, lambda: self._jobs.fail(row, text))
        except ProjectFull as refused:
            raise JobFails(refused.message) from None

    def forget(self, job: int, number: int) -> None:
        """Settle as deleted a row that was taken out of the file of its job.

        It was settled with that, in a database that an older one took the place of: a backup was
        put back. Raises `StorageError` as `answer` does.
        """
        self._store(JobRow(job, number, ""), lambda: self._jobs.forget(job, [number]))

    def keep(self, row: JobRow, decision: Decision, seconds: float) -> None:
        """Store the decision of a row, which took so long.

        Raises `ProjectFull`, and `StorageError` as `answer` does.
        """
        self._keep(row, decision)
        self._counted(seconds, decision)

    def _keep(self, row: JobRow, decision: Decision) -> str:
        """Store the decision of a row: it was paid, and is not given up for a full disk."""
        stored: list[str] = []
        self._store(row, lambda: stored.append(self._add(decision, row)))
        return stored[0] if stored else ""

    def _store(self, row: JobRow, write: Callable[[], object]) -> None:
        """Write what became of a row, once, however often the database has to be asked."""
        while True:
            try:
                write()
                return
            except StorageError:
                # A write that was waited for too long may have come into the database all the same.
                if self._is_settled(row):
                    return
                if self._stop.wait(STORED_AGAIN_S):
                    raise

    def _is_settled(self, row: JobRow) -> bool:
        try:
            return self._jobs.is_settled(row)
        except StorageError:
            return False


def _is_by_model(decision: Decision) -> bool:
    """Whether a model was asked for it, and neither rules nor the cache gave all of its answers."""
    answers = decision.answers.values()
    return not decision.cached and any(one.source is Source.MODELS for one in answers)


def storing_threads() -> Threads:
    """Threads that store what became of rows, which so comes into one transaction."""
    return Threads(_STORING, "svc-store")


def unforeseen(error: Exception) -> ApiError:
    """What stands for an error that nobody thought of; it is logged without its message."""
    log.error("a row of a job failed in an unforeseen way: %s", type(error).__name__)
    return InternalError("something failed on the server while the row was answered")

"""Jobs whose rows are answered in batches of providers: each waits in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from svc.bootstrap import Services
from svc.bulk.answering import Answering, JobEnded, JobFails, storing_threads
from svc.bulk.batched_job import BatchedJob
from svc.bulk.leaving import Leaving
from svc.bulk.replayed_rows import ReplayedRows
from svc.errors import Damaged, NotConfigured, SettingsError, SvcError
from svc.schemas import DecisionRequest
from svc.store import Job, StorageError, job_of

# The pause before a job goes on that met an error which may pass, in seconds.
_AGAIN_S = 10.0

# The same where a provider is not configured.
_CONFIGURED_AGAIN_S = 60.0

# How long threads have to end when the process does.
_CLOSING_S = 10.0

# What a job waits for after an error.
_DISK = "the server's database or disk, which failed just now"
_UNFORESEEN = "the server, which met an error that its log names"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Running:
    """A job, the thread that runs it, and why it cannot go on."""

    job: BatchedJob
    thread: threading.Thread | None = None
    failure: str | None = None


class BatchedJobs:
    """Runs such jobs; the runner says which begin and which have ended."""

    def __init__(self, services: Services, answering: Answering) -> None:
        """`answering` asks about single rows, and stores what became of any."""
        self._services, self._answering = services, answering
        self._pool = storing_threads()
        self._running: dict[str, _Running] = {}
        self._leaving = Leaving(services)

    @property
    def ids(self) -> set[str]:
        """The ids of the jobs that were begun here."""
        return set(self._running)

    def begin(self, job: Job, template: DecisionRequest) -> None:
        """Run a job, or go on with it."""
        rows_of = partial(ReplayedRows, job, template, self._answering, self._pool)
        parts = (self._services, job, template, self._answering, rows_of)
        one = _Running(BatchedJob(*parts))
        one.thread = threading.Thread(target=self._work, args=(one,), name="svc-batch", daemon=True)
        self._running[job.id] = one
        try:
            one.thread.start()
        except RuntimeError:
            # The system allows no further thread; it is begun again with the next look.
            one.thread = None

    def has(self, job_id: str) -> bool:
        """Whether the job runs, or has failed."""
        one = self._running.get(job_id)
        if one is None or one.thread is None:
            return False
        return one.failure is not None or one.thread.is_alive()

    def failure(self, job_id: str) -> str | None:
        """Why the job cannot go on, None where it can."""
        return self._running[job_id].failure

    def waiting_for(self, job_id: str) -> str | None:
        """What the job waits for."""
        return self._running[job_id].job.waiting_for

    def end(self, job_id: str) -> None:
        """Have nothing left of a job that has ended, neither here nor at its providers."""
        one = self._running.pop(job_id, None)
        if one is not None:
            one.job.end()
        if one is not None or self._services.spool.book(job_id).exists():
            thread = None if one is None else one.thread
            self._leaving.add(job_id, lambda: thread is None or not thread.is_alive())

    def sweep(self, is_open: Callable[[str], bool]) -> None:
        """The same for all jobs that are not open any more."""
        for job_id in self._services.spool.books():
            if not is_open(job_id):
                self.end(job_id)

    def leave_aside(self) -> None:
        """The same for books that were put aside, of jobs that go on with others."""
        for name in self._services.spool.books_aside():
            one = self._running.get(job_of(name))
            if one is not None and name not in self._leaving:
                # It is begun again, with another book.
                one.job.end()
            self.end(name)

    def close(self) -> None:
        """End all threads; what is under way is cut off, and goes on with the next start."""
        running = list(self._running.values())
        for one in running:
            one.job.end()
        give_up_at = time.monotonic() + _CLOSING_S
        for thread in [one.thread for one in running]:
            if thread is not None:
                thread.join(max(0.0, give_up_at - time.monotonic()))
        self._leaving.close(max(0.0, give_up_at - time.monotonic()))
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _work(self, one: _Running) -> None:
        """In the job's thread: all that is to be done for it."""
        try:
            one.job.run()
        except JobEnded:
            pass
        except StorageError as error:
            self._later(one, error.message, _DISK, _AGAIN_S)
        except Damaged as error:
            log.error("job %s fails: %s", one.job.job.id, error)
            one.failure = "what the server keeps of its batches is damaged"
        except NotConfigured as error:
            # Its operator may have started the server without what it had when the job was taken.
            why = "its provider is not configured"
            self._later(one, why, error.message, _CONFIGURED_AGAIN_S)
        except (JobFails, SettingsError, SvcError) as error:
            one.failure = str(error)
        except Exception as error:  # noqa: BLE001 - the others go on, and this one later
            waiting_for = _DISK if isinstance(error, OSError) else _UNFORESEEN
            self._later(one, type(error).__name__, waiting_for, _AGAIN_S)

    def _later(self, one: _Running, why: str, waiting_for: str, wait_s: float) -> None:
        """Have the job go on after a while; the log is told why, callers what it waits for."""
        one.job.waiting_for = waiting_for
        log.error("job %s goes on later: %s", one.job.job.id, why)
        one.job.wait(wait_s)

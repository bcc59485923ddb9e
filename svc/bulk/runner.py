"""Runs open jobs: a few rows at a time, of each job one in turn."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from queue import Empty, Queue
from typing import NamedTuple

from svc import limits
from svc.bulk.answering import Answering, JobEnded, JobFails, Settled, unforeseen
from svc.bulk.batched_jobs import BatchedJobs
from svc.bulk.job_run import JobRun, Pauses, WaitingRow
from svc.errors import ApiError
from svc.schemas import is_batched, load_template, parsed_row, parsed_shared
from svc.store import (
    MASTER_KEY,
    Job,
    JobRow,
    Jobs,
    JobStatus,
    Spool,
    SpoolLost,
    StorageError,
)
from svc.threads import Threads

__all__ = ["Pauses", "Runner"]

# The pause between two notes of how far a job is.
NOTED_EVERY_S = 5.0

# So many threads are left to API keys without a row under way, or one would wait for rows of
# others, which may take minutes.
SPARE_THREADS = 2

# The pause before it is looked again whether a row may be asked.
TURN_S = 0.05

_REVOKED = "the API key that handed it in was revoked"

log = logging.getLogger(__name__)

# What became of a row.
_Outcome = Settled | ApiError | JobEnded | JobFails | StorageError


class _Share(NamedTuple):
    """How many rows of a key, and of each of its jobs, may be under way."""

    key: int
    job: int


class Runner:
    """Its own thread decides what is next, and a few others ask."""

    def __init__(
        self,
        jobs: Jobs,
        spool: Spool,
        answering: Answering,
        stop: threading.Event,
        revoked: Callable[[], Collection[str]],
        batched: BatchedJobs,
        pauses: Pauses,
        threads: int = limits.JOB_THREADS,
    ) -> None:
        """`revoked` gives the ids of API keys that are; `stop` ends `run` once rows have ended.

        `batched` runs the jobs whose rows are answered in batches of providers.
        """
        self._jobs, self._spool, self._answering = jobs, spool, answering
        self._batched = batched
        self._stop, self._revoked = stop, revoked
        self._threads, self._pauses = threads, pauses
        self._pool = Threads(threads, "svc-job")
        self._runs: dict[str, JobRun] = {}
        # Whose row is next.
        self._turns: deque[str] = deque()
        # Whose row it was, the row, whether it was given up, and what became of it. A `SimpleQueue`
        # waits for ever where a signal comes at the end of its timeout (CPython 3.11).
        self._outcomes: Queue[tuple[JobRun, WaitingRow, bool, _Outcome]] = Queue()
        # How many rows of each key are under way.
        self._under_way: Counter[str | None] = Counter()
        # What was noted of each job last, and when.
        self._noted: dict[str, tuple[float, str | None]] = {}
        # Why jobs cannot go on of which the database did not take the end yet.
        self._failing: dict[str, str] = {}

    def run(self) -> None:
        """Answer rows until there were no open jobs for a while, or it is to stop."""
        next_look, idle_since = 0.0, time.monotonic()
        while self._under_way.total() or not self._stop.is_set():
            now = time.monotonic()
            if now >= next_look and not self._stop.is_set():
                next_look = now + self._pauses.look
                if self._look() or self._under_way.total():
                    idle_since = now
                elif now - idle_since >= self._pauses.idle:
                    break
            if not self._stop.is_set():
                self._start_rows()
            self._take_outcomes()
        self._batched.close()
        self._pool.shutdown()
        for run in self._runs.values():
            run.rows.close()

    def _look(self) -> bool:
        """Begin new jobs, end those that are over; whether there are open ones."""
        try:
            self._jobs.forget_old()
            open_jobs = {job.id: job for job in self._jobs.open()}
            revoked = self._revoked()
            self._batched.leave_aside()
            for job_id in (self._runs.keys() | self._batched.ids) - open_jobs.keys():
                self._forget(job_id)
        except StorageError as error:
            log.error("jobs wait for the database: %s", error.message)
            return True
        for job in open_jobs.values():
            try:
                self._look_at(job, revoked)
            except StorageError as error:
                # The others go on.
                log.error("job %s waits: %s", job.id, error.message)
        return bool(open_jobs)

    def _look_at(self, job: Job, revoked: Collection[str]) -> None:
        if time.time() * 1000 >= job.expires_at:
            self._end(job.id, JobStatus.EXPIRED)
        elif job.api_key in revoked:
            self._end(job.id, JobStatus.FAILED, _REVOKED)
        elif job.id in self._failing:
            self._end(job.id, JobStatus.FAILED, self._failing[job.id])
        elif not self._spool.has_key:
            self._note(job.id, f"{MASTER_KEY}, which is not set", None)
        elif self._batched.has(job.id):
            self._look_at_batched(job)
        elif job.id not in self._runs:
            self._begin(job)
        else:
            self._go_on(self._runs[job.id])

    def _go_on(self, run: JobRun) -> None:
        try:
            run.rows.follow(self._spool.renewed)
        except SpoolLost as error:
            self._fail_job(run.job.id, error.message)
            return
        # How a model has to be asked may have been learnt since.
        run.at_once = self._answering.at_once(run.template, self._threads)
        run.rows.ahead_chars = limits.JOB_AHEAD_CHARS // len(self._runs)
        self._tell(run)

    def _look_at_batched(self, job: Job) -> None:
        if reason := self._batched.failure(job.id):
            self._end(job.id, JobStatus.FAILED, reason)
        else:
            self._note(job.id, self._batched.waiting_for(job.id), None)

    def _begin(self, job: Job) -> None:
        try:
            file = self._spool.opened(job.id)
        except SpoolLost as error:
            self._end(job.id, JobStatus.FAILED, error.message)
            return
        try:
            shared = parsed_shared(file.request)
            template = load_template(shared)
        except ApiError as error:
            file.close()
            self._end(job.id, JobStatus.FAILED, error.message)
            return
        template = replace(template, project=job.project)
        if is_batched(shared):
            file.close()
            self._batched.begin(job, template)
            return
        settled, clock = self._jobs.settled(job), time.monotonic
        at_once = self._answering.at_once(template, self._threads)
        self._runs[job.id] = JobRun(job, template, file, settled, clock, self._pauses, at_once)
        self._turns.append(job.id)
        self._tell(self._runs[job.id])

    def _tell(self, run: JobRun) -> None:
        """Note how far a job is, from time to time."""
        left_s = run.ends_in_s()
        ends_at = None if left_s is None else int((time.time() + left_s) * 1000)
        self._note(run.job.id, run.waiting_for, ends_at)

    def _note(self, job_id: str, waiting_for: str | None, ends_at: int | None) -> None:
        now = time.monotonic()
        noted_at, before = self._noted.get(job_id, (-NOTED_EVERY_S, None))
        if now - noted_at >= NOTED_EVERY_S or waiting_for != before:
            self._noted[job_id] = now, waiting_for
            self._jobs.note(job_id, waiting_for, ends_at)

    def _end(self, job_id: str, status: JobStatus, reason: str | None = None) -> None:
        if self._jobs.end(job_id, status, reason):
            log.info("job %s ended: %s", job_id, status)
        self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        """Delete the inputs of a job that has ended; rows under way hold theirs."""
        run = self._runs.pop(job_id, None)
        if run is not None:
            self._turns.remove(job_id)
            run.rows.close()
        self._noted.pop(job_id, None)
        self._failing.pop(job_id, None)
        self._spool.delete(job_id)
        self._batched.end(job_id)

    def _start_rows(self) -> None:
        """Give a row of each job in turn to a thread, as long as there are both.

        A key has no more threads than its share, and of these none of its jobs more than its own:
        rows that take long, or wait for a provider's rate in their thread, would soon have all.
        """
        without, share_of = 0, self._shares()
        while self._under_way.total() < self._threads and without < len(self._turns):
            job_id = self._turns[0]
            self._turns.rotate(-1)
            run = self._runs[job_id]
            try:
                # Where the end of a job that fails is not stored yet, it is not read any further.
                may_go_on = job_id not in self._failing and self._has_room(run, share_of)
                row = run.take() if may_go_on else None
            except SpoolLost as error:
                self._fail_job(job_id, error.message)
                continue
            if row is None:
                without += 1
                continue
            without = 0
            self._hand_over(run, row, None)

    def _has_room(self, run: JobRun, share_of: Mapping[str | None, _Share]) -> bool:
        share = share_of[run.job.api_key]
        return self._under_way[run.job.api_key] < share.key and run.under_way < share.job

    def _shares(self) -> dict[str | None, _Share]:
        """How many rows of each key, and of each of its jobs, may be under way."""
        runs = self._runs.values()
        moving = Counter(run.job.api_key for run in runs if run.waiting_for is None)
        spare = SPARE_THREADS if self._threads > SPARE_THREADS else 0
        of_key = max(1, min(self._threads - spare, self._threads // max(1, len(moving))))
        return {
            key: _Share(of_key, max(1, of_key // max(1, moving[key])))
            for key in {run.job.api_key for run in runs}
        }

    def _hand_over(self, run: JobRun, row: WaitingRow, given_up: ApiError | None) -> None:
        self._under_way[run.job.api_key] += 1
        self._pool.submit(self._work, run, row, given_up)

    def _work(self, run: JobRun, row: WaitingRow, given_up: ApiError | None) -> None:
        """In a thread: ask about a row, or store that it is given up."""
        outcome: _Outcome
        job = run.job
        try:
            if given_up is None:
                answer = self._answering.answer
                outcome = answer(job.seq, row.number, row.text, run.template, job.api_key)
            else:
                row_id = parsed_row(row.text)["id"]
                self._answering.give_up(JobRow(job.seq, row.number, row_id), given_up)
                outcome = Settled.WITHOUT_MODEL
        except (JobEnded, JobFails, StorageError) as error:
            outcome = error
        except Exception as error:  # noqa: BLE001 - the others must go on
            outcome = unforeseen(error)
        self._outcomes.put((run, row, given_up is not None, outcome))

    def _take_outcomes(self) -> None:
        """Wait a moment for what became of rows."""
        wait_s = TURN_S
        while True:
            try:
                ended = self._outcomes.get(timeout=wait_s)
            except Empty:
                return
            self._under_way[ended[0].job.api_key] -= 1
            self._take(*ended)
            wait_s = 0.0

    def _take(self, run: JobRun, row: WaitingRow, given_up: bool, outcome: _Outcome) -> None:
        if isinstance(outcome, Settled):
            by_model = outcome is Settled.BY_MODEL
            (run.answered if by_model else run.settled_without_model)(row)
            if run.is_finished and run.job.id in self._runs:
                self._forget(run.job.id)
        elif isinstance(outcome, ApiError):
            if given_up:
                run.stuck(row)
            elif run.failed(row, outcome):
                self._hand_over(run, row, outcome)
        elif isinstance(outcome, StorageError):
            run.unstored(row)
        else:
            run.dropped(row)
            if isinstance(outcome, JobFails):
                self._fail_job(run.job.id, str(outcome))

    def _fail_job(self, job_id: str, reason: str) -> None:
        """End a job that cannot go on, now or with a later look."""
        self._failing[job_id] = reason
        try:
            self._end(job_id, JobStatus.FAILED, reason)
        except StorageError as error:
            log.error("a job could not be ended: %s", error.message)

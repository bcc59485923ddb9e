"""The desk of jobs: takes them in, and gives out what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace

from flask import g

from svc import jsontext, limits
from svc.deadline import Deadline
from svc.errors import InvalidRequest, NotFound, RateLimited
from svc.jsontext import JsonObject
from svc.schemas import BATCH, PROVIDER, DecisionRequest, JobRequest
from svc.store import (
    MASTER_KEY,
    Job,
    Jobs,
    JobStatus,
    KeptAnswer,
    RowResult,
    Spool,
    TooManyJobs,
    new_id,
)
from svc.web.decision_json import decision_json
from svc.web.repeats import take_over

HOUR_MS = 3_600_000

# When a key that has as many jobs as it may is to try again, in seconds.
TRY_AGAIN_S = 60.0

# The fields of a job that its callers read, in their order.
_SHOWN = (
    *("id", "status", "project", "created_at", "expires_at", "ended_at", "rows", "answered"),
    *("failed", "cost_usd", "budget_usd", "ends_at", "waiting_for", "reason"),
)


# Raises an `ApiError` where a request could not be carried out.
Check = Callable[[DecisionRequest, Deadline, str | None], None]


class JobDesk:
    """Takes jobs in, and gives out what became of them."""

    def __init__(
        self,
        jobs: Jobs,
        spool: Spool,
        ring: Callable[[], None],
        check: Check,
        settle: Callable[[DecisionRequest, object, str | None], JsonObject],
    ) -> None:
        """`ring` is called when a job has come; `check` refuses what no row could be asked.

        `settle` gives the fields that hold for all rows of a job in batches, see `BatchPlanner`.
        """
        self._jobs, self._spool, self._ring = jobs, spool, ring
        self._check, self._settle = check, settle

    def submit(
        self, given: JobRequest, project: str, key_id: str | None, deadline: Deadline
    ) -> JsonObject:
        """Take a job in; it is durable on return.

        Raises `InvalidRequest` without a master key, `RateLimited` where there are too many jobs,
        what `check` and `settle` raise, and `StorageError`.
        """
        if not self._spool.has_key:
            raise InvalidRequest(
                f"jobs need {MASTER_KEY} on the server, with which their rows are encrypted while "
                "they wait; its operator can set it"
            )
        template = replace(given.template, project=project)
        self._check(template, deadline, key_id)
        job = _new(given, project, key_id)
        shown = shown_job(job)
        shared = given.shared
        if given.batched:
            settled = self._settle(template, shared.get("model"), key_id)
            shared = {**shared, **settled, BATCH: PROVIDER}
        request = jsontext.dumps(shared)
        try:
            # Before the rows are sealed, which costs far more; and once more with the job.
            self._jobs.check_room(key_id)
            with self._spool.writing(job.id, request, given.rows):
                self._jobs.add(job, _kept(shown))
        except TooManyJobs as error:
            raise RateLimited(error.message, TRY_AGAIN_S) from None
        self._ring()
        return shown

    def get(self, job_id: str) -> Job:
        """A job that the caller may see. Raises `NotFound`."""
        job = self._jobs.get(job_id)
        if not g.access.sees(job.project):
            raise NotFound("there is no such job")
        return job

    def page(self, project: str, limit: int, before: str | None) -> JsonObject:
        """Jobs of a project, newest first. Raises `NotFound`."""
        page = self._jobs.page(project, limit, before)
        return {
            "jobs": [shown_job(job) for job in page.jobs],
            "next_before": page.next_before,
        }

    def cancel(self, job_id: str) -> JsonObject:
        """Have no further row asked. Raises `NotFound`."""
        if self.get(job_id).is_open and self._jobs.end(job_id, JobStatus.CANCELLED):
            self._spool.delete(job_id)
        return shown_job(self._jobs.get(job_id))

    def results(self, job_id: str, after: int) -> tuple[str, int | None]:
        """Lines of what became of rows, and the row that leads on. Raises `NotFound`."""
        self.get(job_id)
        found, on = self._jobs.results(job_id, after, limits.PAGE_BYTES, decision_json)
        return "".join(map(_line, found)), on


def shown_job(job: Job) -> JsonObject:
    """A job as its callers see it."""
    fields = asdict(job)
    return {name: fields[name] for name in _SHOWN}


def _new(given: JobRequest, project: str, key_id: str | None) -> Job:
    now = int(time.time() * 1000)
    return Job(
        id=new_id(),
        project=project,
        api_key=key_id,
        created_at=now,
        expires_at=now + given.expires_after_hours * HOUR_MS,
        rows=len(given.rows),
        budget_usd=given.budget_usd,
    )


def _kept(shown: JsonObject) -> KeptAnswer | None:
    """What is kept for repeats, which is stored with the job: no repeat makes a second one."""
    to_keep = take_over()
    return None if to_keep is None else to_keep(jsontext.dumps(shown).encode(), g.access.only)


def _line(result: RowResult) -> str:
    head = jsontext.dumps({"row": result.number, "id": result.id})[:-1]
    name = "error" if result.decision is None else "decision"
    return f'{head},"{name}":{result.decision or result.error}}}\n'

"""`/v1/batch`: jobs of many rows, handed in at once and answered in the background."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from flask import Blueprint, Response, g

from svc import jsontext, limits
from svc.deadline import Deadline
from svc.errors import InvalidRequest, NotFound, RateLimited
from svc.jsontext import JsonObject
from svc.schemas import DecisionRequest, JobRequest, JobRequestSchema
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
from svc.web.batch_schemas import (
    RESULTS,
    JobPathSchema,
    JobSchema,
    JobsQuerySchema,
    JobsSchema,
    ResultsQuerySchema,
)
from svc.web.body import LINES, check_parts
from svc.web.decorators import MODEL_FAILURES, Decorator, body, fails, path, query, report, response

NEXT = "x-next-after"
HOUR_MS = 3_600_000

# When a key that has as many jobs as it may is to try again, in seconds.
TRY_AGAIN_S = 60.0

# The fields of a job that its callers read, in their order.
_SHOWN = (
    *("id", "status", "project", "created_at", "expires_at", "ended_at", "rows", "answered"),
    *("failed", "cost_usd", "ends_at", "waiting_for", "reason"),
)


# Raises an `ApiError` where a request could not be carried out.
Check = Callable[[DecisionRequest, Deadline], None]


class JobDesk:
    """Takes jobs in, and gives out what became of them."""

    def __init__(self, jobs: Jobs, spool: Spool, ring: Callable[[], None], check: Check) -> None:
        """`ring` is called when a job has come; `check` refuses what no row could be asked."""
        self._jobs, self._spool, self._ring, self._check = jobs, spool, ring, check

    def submit(
        self, given: JobRequest, project: str, key_id: str | None, deadline: Deadline
    ) -> JsonObject:
        """Take a job in; it is durable on return.

        Raises `InvalidRequest` without a master key, `RateLimited` where there are too many jobs,
        what `check` raises, and `StorageError`.
        """
        if not self._spool.has_key:
            raise InvalidRequest(
                f"jobs need {MASTER_KEY} on the server, with which their rows are encrypted while "
                "they wait; its operator can set it"
            )
        self._check(replace(given.template, project=project), deadline)
        job = _new(given, project, key_id)
        shown = shown_job(job)
        request = jsontext.dumps(given.shared)
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
        found, on = self._jobs.results(job_id, after, limits.PAGE_BYTES, _decision)
        return "".join(map(_line, found)), on


def blueprint(desk: JobDesk, once: Decorator) -> Blueprint:
    """The routes of jobs."""
    routes = Blueprint("batch", __name__)

    @routes.post("/v1/batch")
    @body(JobRequestSchema, lines=from_lines, most_parts=limits.JOB_PARTS, held=True)
    @once
    @response(JobSchema, status=202)
    @fails(*MODEL_FAILURES)
    def submit_job(given: JobRequest) -> JsonObject:
        """Hand in a job: the same questions about up to 100,000 rows.

        As one JSON object, or as JSON lines: that object without `rows`, and then a row in each
        line. Every row is checked before the job is taken, and so is whether its models have
        providers. The rows wait encrypted beside the database, and are deleted when the job ends;
        the server needs `SVC_MASTER_KEY` for it. Each row becomes a decision as `POST /v1/decide`
        makes it. The request counts against the key's rate, and its rows do not; a key may have
        {JOBS_OPEN} jobs that have not ended, and all keys together {ALL_JOBS_OPEN}. A job is kept
        for {JOB_KEPT_DAYS} days after its end.
        """
        project = g.access.project(given.template.project)
        return desk.submit(given, project, g.access.key_id, g.deadline)

    @routes.get("/v1/batch")
    @query(JobsQuerySchema)
    @response(JobsSchema)
    @fails(404)
    def list_jobs(limit: int, project: str | None = None, before: str | None = None) -> JsonObject:
        """List jobs of a project, newest first."""
        return desk.page(g.access.reading(project), limit, before)

    @routes.get("/v1/batch/<job_id>")
    @path(JobPathSchema)
    @response(JobSchema)
    @fails(404)
    def job(job_id: str) -> JsonObject:
        """Show how far a job is, what it has cost, and when it may end."""
        return shown_job(desk.get(job_id))

    @routes.get("/v1/batch/<job_id>/results")
    @path(JobPathSchema)
    @query(ResultsQuerySchema)
    @report
    @response(RESULTS, media=LINES[:1], headers=(NEXT,))
    @fails(404)
    def job_results(job_id: str, after: int) -> Response:
        """Get what became of a job's rows, as JSON lines in the order of the rows.

        Each line has the `row`'s number, the caller's `id` of it, and its `decision` or `error`. Of
        a job that runs these are the rows so far; of one that ended before its last row, those
        that were asked. A page ends with the row with which it has about 2 MB. `x-next-after`
        leads on, and is missing on the last page.
        """
        text, on = desk.results(job_id, after)
        answer = Response(text, mimetype=LINES[0])
        if on is not None:
            answer.headers[NEXT] = str(on)
        return answer

    @routes.post("/v1/batch/<job_id>/cancel")
    @path(JobPathSchema)
    @response(JobSchema)
    @fails(404)
    def cancel_job(job_id: str) -> JsonObject:
        """Cancel a job: rows under way are finished, and no other one is asked.

        A job that has ended stays as it is.
        """
        return desk.cancel(job_id)

    return routes


def from_lines(sent: bytes) -> Any:
    """A body of JSON lines as the object whose `rows` are all lines but the first.

    Raises `InvalidJson` or `InvalidRequest`.
    """
    check_parts(sent, limits.JOB_PARTS)
    # Blank lines are no parts, and to split the body at millions of them takes seconds.
    most = 2 * limits.JOB_ROWS
    if sent.count(b"\n") > most:
        raise InvalidRequest(f"the body has more than {most:,} line breaks")
    lines = [line for line in sent.split(b"\n") if line.strip()]
    shared = jsontext.loads(lines[0] if lines else b"", "the first line", one_line=True)
    if not isinstance(shared, dict):
        return shared
    if "rows" in shared:
        raise InvalidRequest("rows: with JSON lines, each row is a line after the first")
    return {**shared, "rows": lines[1:]}


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
    )


def _kept(shown: JsonObject) -> KeptAnswer | None:
    """What is kept for repeats, which is stored with the job: no repeat makes a second one."""
    to_keep = g.get("to_keep")
    return None if to_keep is None else to_keep(jsontext.dumps(shown).encode())


def _decision(fields: JsonObject, answers: str, tags: str | None) -> str:
    """The JSON of a decision as `POST /v1/decide` answers it."""
    head = {"id": fields.pop("id")}
    if ref := fields.pop("ref"):
        head["ref"] = ref
    given = "" if tags is None else f',"tags":{tags}'
    rest = jsontext.dumps(fields)[1:-1]
    return f'{jsontext.dumps(head)[:-1]}{given},{rest},"answers":{answers}}}'


def _line(result: RowResult) -> str:
    head = jsontext.dumps({"row": result.number, "id": result.id})[:-1]
    name = "error" if result.decision is None else "decision"
    return f'{head},"{name}":{result.decision or result.error}}}\n'

"""`/v1/batch`: jobs of many rows, handed in at once and answered in the background."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, g

from svc import jsontext, limits
from svc.errors import InvalidRequest
from svc.jsontext import JsonObject
from svc.schemas import JobRequest, JobRequestSchema
from svc.web.batch_schemas import (
    RESULTS,
    JobPathSchema,
    JobSchema,
    JobsQuerySchema,
    JobsSchema,
    ResultsQuerySchema,
)
from svc.web.body import LINES, check_parts
from svc.web.decorators import (
    MODEL_FAILURES,
    Decorator,
    body,
    brief,
    fails,
    path,
    query,
    report,
    response,
)
from svc.web.job_desk import JobDesk, shown_job

NEXT = "x-next-after"


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
    @brief
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

"""What the routes of jobs take in paths and queries, and what they answer."""

from __future__ import annotations

from svc import limits
from svc.schemas import ResponseSchema, Shown
from svc.shapes import AMOUNT, COUNT, TEXT, Json, array, nullable, one_of
from svc.store import JobStatus
from svc.web.query import PathPart, QuerySchema, QueryText, QueryWhole, project_field

JOB_ID: Json = {"type": "string", "pattern": "^job_[0-9a-f]{24}$"}
_MOMENT = "in milliseconds since the epoch"


# Lines of JSON, which the route describes.
RESULTS = TEXT


class JobSchema(ResponseSchema):
    """A job, and how far it is."""

    id = Shown(JOB_ID)
    status = Shown(
        one_of(JobStatus),
        "`waiting` before its first row, `running`, or how it ended: with an answer or an error "
        "for every row (`done`), or before.",
    )
    project = Shown(TEXT, "The project of its decisions.")
    created_at = Shown(COUNT, f"When it was handed in, {_MOMENT}.")
    expires_at = Shown(COUNT, f"From when on no row is asked any more, {_MOMENT}.")
    ended_at = Shown(nullable(COUNT), f"When it ended, {_MOMENT}; null before.")
    rows = Shown(COUNT, "How many there are.")
    answered = Shown(COUNT, "How many of them have a decision.")
    failed = Shown(COUNT, "How many of them have an error.")
    cost_usd = Shown(AMOUNT, "What the decisions so far cost, in dollars.")
    budget_usd = Shown(nullable(AMOUNT), "What it may cost, in dollars; null for no bound.")
    ends_at = Shown(
        nullable(COUNT), f"When it will end at the rate of the last minutes, {_MOMENT}; or null."
    )
    waiting_for = Shown(nullable(TEXT), "Why nothing moves; null where it does.")
    reason = Shown(nullable(TEXT), "Why it failed; null unless it did.")


class JobsSchema(ResponseSchema):
    """Jobs of a project, newest first."""

    jobs = Shown(array(JobSchema))
    next_before = Shown(nullable(JOB_ID), "`before` of the next page; null at the end.")


class JobsQuerySchema(QuerySchema):
    project = project_field()
    limit = QueryWhole(
        *limits.JOBS_PAGE,
        description="Jobs on the page.",
        load_default=limits.JOBS_PAGE_DEFAULT,
    )
    before = QueryText("Only jobs older than this one: `next_before` of a page.")


class JobPathSchema(ResponseSchema):
    job_id = PathPart(JOB_ID, "The `id` of a job.")


class ResultsQuerySchema(QuerySchema):
    after = QueryWhole(
        0,
        limits.JOB_ROWS,
        description="Only rows after this one: `x-next-after` of a page.",
        load_default=0,
    )

"""Jobs of a running server in words."""

from __future__ import annotations

import time

from svc.batch import duration
from svc.cli.jobs import Job
from svc.cli.server import URL
from svc.cli.tables import dollars, moment, table

_HEAD = ("id", "status", "rows", "answered", "failed", "cost", "handed in")
# The places of the columns that hold words.
_TEXT = {0, 1, 6}


def status_lines(job: Job, now_s: float | None = None) -> list[str]:
    """What a job is like, a fact in each line; `now_s` is in seconds since the epoch."""
    now_s = time.time() if now_s is None else now_s
    facts = {
        "status": job.status,
        "why": job.reason,
        "waits for": job.waiting_for,
        "rows": settled_text(job),
        "cost": dollars(job.cost_usd),
        "project": job.project,
        "handed in": moment(job.created_at),
        "ended": None if job.ended_at is None else moment(job.ended_at),
        "may end": _estimate(job, now_s),
        "expires": moment(job.expires_at) if job.is_open else None,
    }
    rows = [(name, text) for name, text in facts.items() if text is not None]
    return [job.id, *table((), rows, {0, 1})]


def settled_text(job: Job, unit: str = "") -> str:
    """How many rows are settled, and how many of them have an error."""
    failed = f", {job.failed:,} of them with an error" if job.failed else ""
    return f"{job.settled:,} of {job.rows:,}{unit}{failed}"


def summary(job: Job) -> str:
    """What became of a job."""
    took = "" if job.ended_at is None else f", {duration((job.ended_at - job.created_at) / 1000)}"
    why = f" ({job.reason})" if job.reason else ""
    return f"{job.status}{why}: {settled_text(job, ' rows')}, {dollars(job.cost_usd)}{took}"


def handed_in(job: Job, before: bool) -> str:
    """That a job was taken in, now or before."""
    if before:
        return f"This job was handed in before, and is {job.status}; nothing is asked twice."
    return f"{job.rows:,} rows were handed in."


def next_lines(job: Job, url: str) -> list[str]:
    """What can be typed next about a job of the server there."""
    there = "" if url == URL else f" --url {url}"
    return [
        f"svc batch status {job.id}{there} shows how far it is,",
        f"svc batch results {job.id} -o FILE{there} writes its answers.",
    ]


def list_lines(jobs: list[Job]) -> list[str]:
    """A table of jobs."""
    return table(_HEAD, [_row(job) for job in jobs], _TEXT)


def _row(job: Job) -> tuple[str, ...]:
    counts = (f"{job.rows:,}", f"{job.answered:,}", f"{job.failed:,}")
    return job.id, job.status, *counts, dollars(job.cost_usd), moment(job.created_at)


def _estimate(job: Job, now_s: float) -> str | None:
    if job.ends_at is None:
        return None
    left = max(0.0, job.ends_at / 1000 - now_s)
    return f"{moment(job.ends_at)}, in {duration(left)}"

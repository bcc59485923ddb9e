"""What an event says: ids, names and figures, and never a text that somebody sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from svc.jsontext import JsonObject, dumps
from svc.store import Alarm, EndedJob, HookKind, NewEvent


def body(kind: str, at_ms: int, data: JsonObject) -> str:
    """The JSON that a receiver gets."""
    return dumps({"type": kind, "timestamp": moment(at_ms), "data": data})


def of_alarm(alarm: Alarm) -> str:
    """What is told of something that lasts."""
    data = {"project": alarm.project, **json.loads(alarm.data)}
    return body(alarm.kind, alarm.since, data)


def of_job(job: EndedJob) -> NewEvent:
    """The event for one hook that a job has ended."""
    data = {
        "project": job.project,
        "id": job.id,
        "status": job.status,
        "rows": job.rows,
        "answered": job.answered,
        "failed": job.failed,
        "cost_usd": job.cost_usd,
        "created_at": job.created_at,
        "ended_at": job.ended_at,
    }
    kind = HookKind.BATCH_DONE
    told = body(kind, job.ended_at, data)
    return NewEvent(job.hook, f"{kind} {job.id}", f"job {job.id}", told, job.ended_at)


def moment(at_ms: int) -> str:
    """A moment such as `2026-11-23T15:04:05.120Z`."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03}Z"

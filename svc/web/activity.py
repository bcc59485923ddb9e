"""`GET /v1/activity`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from flask import Blueprint, g

from svc.errors import InvalidRequest
from svc.jsontext import JsonObject
from svc.schemas import ResponseSchema, Shown
from svc.shapes import AMOUNT, COUNT, TEXT, array, nullable, one_of
from svc.store import (
    ANSWERED_DAYS,
    KEPT_NAMES,
    NAME_CHARS,
    OTHERS,
    Activity,
    By,
    Spans,
    Sums,
    TooManySums,
)
from svc.web.decorators import query, report, response
from svc.web.query import ProjectQuerySchema, QueryWord


class Last(StrEnum):
    """How far a report goes back."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Steps:
    """So many spans of so many seconds, the current one included."""

    span_s: int
    count: int


STEPS = {
    Last.HOUR: Steps(Spans.FIVE_MINUTES, 12),
    Last.DAY: Steps(Spans.HOUR, 24),
    Last.WEEK: Steps(Spans.HOUR, 168),
    Last.MONTH: Steps(Spans.DAY, 30),
    Last.YEAR: Steps(Spans.DAY, 365),
}


class SumsSchema(ResponseSchema):
    """Sums over some decisions."""

    decisions = Shown(COUNT, "Those that were answered.")
    failed = Shown(COUNT, "Those that no model answered, which are in no other figure.")
    cached = Shown(COUNT, "Those whose every call was served from the cache.")
    answers = Shown(COUNT, "The answers in them, without those of skipped questions.")
    abstained = Shown(COUNT, "The answers below the `min_confidence` of their question.")
    cost_usd = Shown(AMOUNT, "What models cost, in dollars; 0 by question, which share calls.")
    latency_ms = Shown(
        nullable(AMOUNT), "Mean milliseconds of those not from the cache; null by question."
    )


class StepSchema(SumsSchema):
    """The sums of one span."""

    start = Shown(COUNT, "When it begins, in milliseconds since the epoch.")


class NameSchema(SumsSchema):
    """The sums of one project, of the models that answered together, or of one question."""

    name = Shown(
        TEXT,
        "The project; the ids of the models, joined by commas; the question's key; or "
        f"`{OTHERS}`, where a day has more than {KEPT_NAMES:,} names, or one of over {NAME_CHARS} "
        f"characters, or models failed that answered nothing in {ANSWERED_DAYS} days.",
    )


class ActivitySchema(ResponseSchema):
    """What happened over time."""

    project = Shown(nullable(TEXT), "Null where all projects are told apart.")
    last = Shown(one_of(Last))
    by = Shown(one_of(By))
    span_s = Shown(COUNT, "The seconds of each step.")
    steps = Shown(array(StepSchema), "Oldest first, with those in which nothing happened.")
    names = Shown(array(NameSchema), "Those with the most decisions, at most 100.")


class ActivityQuerySchema(ProjectQuerySchema):
    last = QueryWord(Last, "How far to go back, the current span included.", load_default=Last.DAY)
    by = QueryWord(
        By,
        "What to tell apart. By `project` all projects that the key may see are counted, unless "
        "one is named.",
        load_default=By.MODEL,
    )


def blueprint(activity: Activity, clock: Callable[[], float] = time.time) -> Blueprint:
    """The route that shows sums over time; `clock` gives seconds since the epoch."""
    routes = Blueprint("activity", __name__)

    @routes.get("/v1/activity")
    @query(ActivityQuerySchema)
    @report
    @response(ActivitySchema)
    def read(last: Last, by: By, project: str | None = None) -> JsonObject:
        """Show decisions, failures, abstentions, dollars and milliseconds over time.

        By project, by answering models or by question. Hours go back nine days, days for ever.
        """
        everything = by is By.PROJECT and project is None and g.access.only is None
        project = None if everything else g.access.reading(project)
        steps = STEPS[last]
        first = (int(clock()) // steps.span_s - steps.count + 1) * steps.span_s
        starts = range(first, first + steps.count * steps.span_s, steps.span_s)
        try:
            found = activity.read(by, starts, project)
        except TooManySums as error:
            raise InvalidRequest(
                f"last: {error} of projects and models in this time; name a project, or go back "
                "less far"
            ) from None
        return {
            "project": project,
            "last": last,
            "by": by,
            "span_s": steps.span_s,
            "steps": [
                {"start": start * 1_000, **_shown(found.by_start.get(start, Sums()), by)}
                for start in starts
            ],
            "names": [{"name": name, **_shown(sums, by)} for name, sums in found.by_name.items()],
        }

    return routes


def _shown(sums: Sums, by: By) -> Mapping[str, object]:
    asked = sums.decisions - sums.cached
    mean = None if by is By.QUESTION or not asked else round(sums.latency_ms / asked, 1)
    return {**asdict(sums), "cost_usd": round(sums.cost_usd, 9), "latency_ms": mean}

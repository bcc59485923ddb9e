"""`GET /v1/drift`."""

from __future__ import annotations

from flask import Blueprint, g

from svc import limits
from svc.jsontext import JsonObject
from svc.learning import Reporter
from svc.schemas import ResponseSchema, Shown
from svc.shapes import COUNT, FLAG, NUMBER, PROBABILITY, TEXT, array, mapping, nullable
from svc.web.decorators import fails, query, response
from svc.web.query import QueryWhole, QuestionQuerySchema


class DriftQuerySchema(QuestionQuerySchema):
    weeks = QueryWhole(
        *limits.DRIFT_WEEKS,
        description="How many weeks, the current one included.",
        load_default=limits.DRIFT_WEEKS_DEFAULT,
    )


class DriftWeekSchema(ResponseSchema):
    """One week of answers; the latest week has the changes as well."""

    week = Shown({"type": "string", "pattern": "^[0-9]{4}-W[0-9]{2}$"}, "ISO, UTC.")
    decisions = Shown(COUNT)
    mix = Shown(
        nullable(mapping(PROBABILITY)),
        "The share of each top answer; null for extracted values.",
    )
    confidence = Shown(PROBABILITY, "The mean raw probability of the top answer.")
    mix_change = Shown(
        nullable(PROBABILITY), "Total-variation distance from the earlier mean mix.", optional=True
    )
    confidence_change = Shown(nullable(NUMBER), optional=True)
    drift = Shown(FLAG, "Whether either has moved further than it may.", optional=True)


class DriftReportSchema(ResponseSchema):
    """Oldest week first; weeks without decisions are left out."""

    project = Shown(TEXT)
    question = Shown(TEXT)
    weeks = Shown(array(DriftWeekSchema))


def blueprint(reporter: Reporter) -> Blueprint:
    """The route that says how a question's answers change over the weeks."""
    routes = Blueprint("drift", __name__)

    @routes.get("/v1/drift")
    @query(DriftQuerySchema)
    @response(DriftReportSchema)
    @fails(404)
    def drift(question: str, weeks: int, project: str | None = None) -> JsonObject:
        """Report a question's answers week by week, and whether they drift."""
        return reporter.drift(g.access.project(project), question, weeks)

    return routes

"""`GET /v1/drift`."""

from __future__ import annotations

from flask import Blueprint, g

from svc.jsontext import JsonObject
from svc.learning import Reporter
from svc.schemas import ResponseSchema, Shown
from svc.shapes import COUNT, FLAG, NUMBER, PROBABILITY, TEXT, array, mapping, nullable
from svc.web.decorators import fails, query, report, response
from svc.web.query import WeeksQuerySchema


class DriftWeekSchema(ResponseSchema):
    """One week of answers; the latest week has the changes as well."""

    week = Shown({"type": "string", "pattern": "^[0-9]{4}-W[0-9]{2}$"}, "ISO, UTC.")
    decisions = Shown(COUNT, "Those in which a model answered the question; rules do not count.")
    mix = Shown(
        nullable(mapping(PROBABILITY)),
        "The share of each top answer, before calibration; null for extracted values.",
    )
    confidence = Shown(PROBABILITY, "The mean raw probability of the top answer.")
    mix_change = Shown(
        nullable(PROBABILITY), "Total-variation distance from the earlier mean mix.", optional=True
    )
    confidence_change = Shown(nullable(NUMBER), optional=True)
    drift = Shown(FLAG, "Whether either has moved further than it may.", optional=True)


class ComparisonSchema(ResponseSchema):
    """What was compared, and how often chance alone would have done it."""

    change = Shown(NUMBER, "Of a mix the total-variation distance, of confidence the difference.")
    by_chance = Shown(NUMBER, "The size of the change that chance alone makes on average.")
    p = Shown(PROBABILITY, "How often chance alone makes a change as large.")
    yearly = Shown(
        PROBABILITY, "`p` with all tests of a year allowed for; an alarm has 0.05 or less."
    )
    alarm = Shown(FLAG)


class DriftTestSchema(ResponseSchema):
    """The latest week with decisions, tested; false alarms come in 5% of years, over all weeks."""

    week = Shown({"type": "string", "pattern": "^[0-9]{4}-W[0-9]{2}$"}, "ISO, UTC.")
    finished = Shown(FLAG, "Whether the week is over; one that is not has fewer tests.")
    mix = Shown(nullable(ComparisonSchema), "Against all earlier weeks of a year together.")
    confidence = Shown(nullable(ComparisonSchema), "The same of mean raw confidence.")
    slow_mix = Shown(nullable(ComparisonSchema), "The latest four weeks against the first four.")
    slow_confidence = Shown(nullable(ComparisonSchema), "The same of mean raw confidence.")
    alarm = Shown(FLAG, "Whether any of them is an alarm.")


class DriftReportSchema(ResponseSchema):
    """Oldest week first; weeks without decisions are left out."""

    project = Shown(TEXT)
    question = Shown(TEXT)
    weeks = Shown(array(DriftWeekSchema))
    test = Shown(nullable(DriftTestSchema), "Null before the first decision.")


def blueprint(reporter: Reporter) -> Blueprint:
    """The route that says how a question's answers change over the weeks."""
    routes = Blueprint("drift", __name__)

    @routes.get("/v1/drift")
    @query(WeeksQuerySchema)
    @report
    @response(DriftReportSchema)
    @fails(404)
    def drift(question: str, weeks: int, project: str | None = None) -> JsonObject:
        """Report a question's answers week by week, and whether they drift.

        Where the weeks have more than about 2 MB, the oldest are left out.
        """
        return reporter.drift(g.access.reading(project), question, weeks)

    return routes

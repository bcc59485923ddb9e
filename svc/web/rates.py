"""`GET /v1/rates`."""

from __future__ import annotations

from flask import Blueprint, g

from svc import limits
from svc.jsontext import JsonObject
from svc.learning import RateReporter
from svc.schemas import ResponseSchema, Shown
from svc.shapes import AMOUNT, COUNT, FLAG, PROBABILITY, TEXT, array, nullable
from svc.web.calibration import IntervalSchema, SamplingSchema
from svc.web.decorators import fails, query, report, response
from svc.web.query import WeeksQuerySchema

_SHARE = nullable(PROBABILITY)


class RateSchema(ResponseSchema):
    """How common one answer truly is where models answer; null without labels, but for `naive`."""

    option = Shown(TEXT, "The option; the level's index; `true` or `false`.")
    estimate = Shown(_SHARE, "Its share, by the labels and all probabilities.")
    low = Shown(_SHARE, "From here the 95% interval of the share goes.")
    high = Shown(_SHARE, "Up to here.")
    naive = Shown(
        _SHARE, "Its share of what models answered, before calibration; null without decisions."
    )
    labels_alone = Shown(nullable(IntervalSchema), "Its share of the labels.")
    power = Shown(_SHARE, "How far the probabilities are believed; 0 is not at all.")
    worth = Shown(nullable(AMOUNT), "How many labels it would take in place of one without them.")


class RatesReportSchema(ResponseSchema):
    """The share of each answer in a period, where models answered; rules have no part in it."""

    project = Shown(TEXT)
    question = Shown(TEXT)
    type = Shown(TEXT, "The question's type.")
    since = Shown(COUNT, "When the period begins, in milliseconds since the epoch.")
    decisions = Shown(
        {**COUNT, "maximum": limits.RATES_DECISIONS + limits.QUESTIONS},
        "The answers of models in it, without those of rules: the "
        f"{limits.RATES_DECISIONS:,} most recent ones to the question in the project's last "
        f"{limits.RATES_DEPTH:,} decisions, fewer where these have many other questions.",
    )
    cut = Shown(FLAG, "Whether there are more, so that the period begins later than asked for.")
    labels = Shown(COUNT, f"The labels of these; the {limits.LABELS_READ:,} most recent ones.")
    rates = Shown(array(RateSchema), "By option in the order of their names, or by level.")
    sampling = Shown(SamplingSchema)


def blueprint(reporter: RateReporter) -> Blueprint:
    """The route that says how common each answer to a question truly is."""
    routes = Blueprint("rates", __name__)

    @routes.get("/v1/rates")
    @query(WeeksQuerySchema)
    @report
    @response(RatesReportSchema)
    @fails(404)
    def rates(question: str, weeks: int, project: str | None = None) -> JsonObject:
        """Report how common each answer to a question truly is, with 95% intervals.

        From the answers to all decisions of the last weeks and the labels that some of them have,
        which have to be drawn by chance. Of choice, score and noul questions, and of the answers
        that models gave: those of rules are left out.
        """
        return reporter.report(g.access.reading(project), question, weeks)

    return routes

"""`GET /v1/calibration`."""

from __future__ import annotations

from flask import Blueprint, g

from svc.jsontext import JsonObject
from svc.learning import Reporter
from svc.schemas import ResponseSchema, Shown
from svc.shapes import (
    AMOUNT,
    COUNT,
    NUMBER,
    PROBABILITY,
    TEXT,
    array,
    mapping,
    nullable,
    one_of,
)
from svc.stats import AUTOMATE_FROM, BINS
from svc.web.decorators import fails, query, response
from svc.web.feedback import LabelledSchema
from svc.web.query import QuestionQuerySchema

SHARE = nullable(PROBABILITY)


class TemperatureSchema(ResponseSchema):
    """Of choice and score: p' is p^(1/t), times e^bias where there is one, normalised."""

    kind = Shown({"const": "temperature"})
    t = Shown(NUMBER)
    bias = Shown(
        array(NUMBER), "One per option or level, in the definition's order.", optional=True
    )


class PlattSchema(ResponseSchema):
    """Of all others: p' is the logistic function of a·logit(p) + b."""

    kind = Shown({"const": "platt"})
    a = Shown(NUMBER)
    b = Shown(NUMBER)


class CalibratorSchema(ResponseSchema):
    """What makes the probabilities of a question true."""

    one_of = (TemperatureSchema, PlattSchema)


class PoolLossSchema(ResponseSchema):
    """Held-out log-losses, each followed by a temperature."""

    equal = Shown(AMOUNT, "Of the mean of all members.")
    pool = Shown(AMOUNT, "Of the pool.")


class PoolSchema(ResponseSchema):
    """How the answers of a council's members are weighed."""

    kind = Shown(
        one_of(("arithmetic", "geometric")),
        "`arithmetic`: the weighted mean of probabilities; `geometric`: the product of their "
        "powers, normalised.",
    )
    weights = Shown(mapping(AMOUNT), "By model; of a geometric pool they need not sum to 1.")
    labels = Shown(COUNT, "The labels that it was fitted on.")
    log_loss = Shown(PoolLossSchema)


class ReliabilityBinSchema(ResponseSchema):
    """The answers whose confidence lies within one range."""

    _from = Shown(PROBABILITY, data_key="from")
    to = Shown(PROBABILITY)
    count = Shown(COUNT)
    confidence = Shown(SHARE, "The mean confidence of the answers in it.")
    accuracy = Shown(SHARE, "The share of them that were right.")


class ScoresSchema(ResponseSchema):
    """Null where there are no labels to say it."""

    accuracy = Shown(SHARE)
    ece = Shown(SHARE, "Expected calibration error.")
    brier = Shown(nullable(NUMBER))
    automated = Shown(SHARE, f"The share with a confidence of {AUTOMATE_FROM} or more.")
    accuracy_when_automated = Shown(SHARE)
    bins = Shown(array(ReliabilityBinSchema, BINS, BINS))


class ThresholdSchema(ResponseSchema):
    """From which confidence on answers may be automated."""

    target = Shown(PROBABILITY, "The accuracy that is wanted.")
    min_confidence = Shown(SHARE, "From here on that accuracy is promised, with 95% certainty.")
    automated = Shown(SHARE, "The share of answers that reach it.")
    reason = Shown(nullable(TEXT), "Why there is no such threshold.")


class CalibrationReportSchema(LabelledSchema):
    """How well the probabilities of a question match its labels."""

    project = Shown(TEXT)
    question = Shown(TEXT)
    type = Shown(TEXT, "The question's type.")
    calibrator = Shown(nullable(CalibratorSchema))
    pool = Shown(
        nullable(PoolSchema),
        "Of the council that has the most labels; null while members count alike.",
    )
    before = Shown(ScoresSchema, "Of the raw probabilities.")
    after = Shown(
        ScoresSchema, "Held out: each half of the labels calibrated by a fit on the other half."
    )
    thresholds = Shown(array(ThresholdSchema))


def blueprint(reporter: Reporter) -> Blueprint:
    """The route that says how true the probabilities of a question are."""
    routes = Blueprint("calibration", __name__)

    @routes.get("/v1/calibration")
    @query(QuestionQuerySchema)
    @response(CalibrationReportSchema)
    @fails(404)
    def calibration(question: str, project: str | None = None) -> JsonObject:
        """Report how well a question's probabilities match the labels given for it.

        Of the most recent wording of the question in the project.
        """
        return reporter.calibration(g.access.project(project), question)

    return routes

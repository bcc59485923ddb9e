"""`GET /v1/calibration`."""

from __future__ import annotations

from flask import Blueprint, g

from svc.jsontext import JsonObject
from svc.learning import Reporter
from svc.schemas import ResponseSchema, Shown
from svc.shapes import (
    AMOUNT,
    COUNT,
    FLAG,
    NUMBER,
    PROBABILITY,
    TEXT,
    array,
    mapping,
    nullable,
    one_of,
)
from svc.stats import AUTOMATE_FROM, BINS, MOST_OPTIONS
from svc.web.decorators import fails, query, report, response
from svc.web.feedback_schemas import LabelledSchema
from svc.web.query import QuestionQuerySchema

SHARE = nullable(PROBABILITY)


class TemperatureSchema(ResponseSchema):
    """Of choice and score: p' is p^(1/t), times e^bias where there is one, normalised."""

    kind = Shown({"const": "temperature"})
    t = Shown(NUMBER)
    labels = Shown(COUNT, "The labels that it was fitted on.")
    bias = Shown(
        array(NUMBER), "One per option or level, in the definition's order.", optional=True
    )


class PlattSchema(ResponseSchema):
    """Of all others: p' is the logistic function of a·logit(p) + b."""

    kind = Shown({"const": "platt"})
    a = Shown(NUMBER)
    b = Shown(NUMBER)
    labels = Shown(COUNT, "The labels that it was fitted on.")


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


class OwnCalibratorSchema(ResponseSchema):
    """What makes the probabilities of one answering model true."""

    model = Shown(
        TEXT, "Its full id; those of a council joined by `+`, with `!` before a member that failed."
    )
    mode = Shown(
        TEXT, "How its probabilities were read, and `-one-order` where one of two orders failed."
    )
    labels = Shown(COUNT, "The labels of its answers.")
    own = Shown(FLAG, "Whether it was fitted for this model, and not for all together.")
    calibrator = Shown(nullable(CalibratorSchema))


class IntervalSchema(ResponseSchema):
    """An estimate with its 95% interval."""

    estimate = Shown(NUMBER)
    low = Shown(NUMBER)
    high = Shown(NUMBER)


class CalibrationErrorSchema(ResponseSchema):
    """Expected calibration error beside what chance makes of none."""

    observed = Shown(PROBABILITY)
    by_chance = Shown(PROBABILITY, "What a perfectly calibrated model shows with these labels.")
    p = Shown(PROBABILITY, "How often a perfectly calibrated model shows as much.")
    corrected = Shown(IntervalSchema, "The error without chance.")


class UncertainScoresSchema(ResponseSchema):
    """How far the scores may be off, for want of labels."""

    accuracy = Shown(IntervalSchema)
    brier = Shown(IntervalSchema)
    ece = Shown(nullable(CalibrationErrorSchema))


class UncertaintySchema(ResponseSchema):
    """The same of `before` and `after`; null without labels."""

    before = Shown(nullable(UncertainScoresSchema))
    after = Shown(nullable(UncertainScoresSchema))


class OptionSetsSchema(ResponseSchema):
    """How often prediction sets hold one option where it is the true one."""

    coverage = Shown(PROBABILITY, "What is promised for all answers together.")
    covered = Shown(
        nullable(IntervalSchema), "Each label left out of those that its own set is made with."
    )
    guaranteed = Shown(FLAG, "Whether `coverage_per: option` can promise it for this option.")


class OptionScoresSchema(ResponseSchema):
    """How one option or level does, held out."""

    option = Shown(TEXT)
    labels = Shown(COUNT, "The labels that name it.")
    answers = Shown(COUNT, "The labelled decisions that were answered with it.")
    probability = Shown(PROBABILITY, "Its mean probability.")
    share = Shown(IntervalSchema, "Its share of the labels.")
    ece = Shown(
        nullable(CalibrationErrorSchema),
        f"Of its own probability; of the {MOST_OPTIONS} options that were most often true or the "
        "answer, and null of others.",
    )
    precision = Shown(nullable(IntervalSchema))
    recall = Shown(nullable(IntervalSchema))
    f1 = Shown(nullable(PROBABILITY))
    sets = Shown(array(OptionSetsSchema), "Of choice and noul questions.")


class ConfusionSchema(ResponseSchema):
    """How many labels of one option got one answer."""

    true = Shown(TEXT)
    answer = Shown(TEXT)
    count = Shown(COUNT)


class SamplingSchema(ResponseSchema):
    """How labels came about."""

    labels = Shown(mapping(COUNT), "By `sampled` of the feedback, `unknown` without it.")
    meaning = Shown(nullable(TEXT), "What that leaves to be promised.")


class DifferenceSchema(ResponseSchema):
    """How far labelled decisions are from a random draw of the same weeks."""

    change = Shown(
        NUMBER, "Of the mix the total-variation distance, of confidence the difference of means."
    )
    p = Shown(PROBABILITY, "How often a random draw is as far.")


class SamplingTestSchema(ResponseSchema):
    """Labelled decisions beside all decisions of the same weeks, of the past year."""

    labels = Shown(COUNT, "The labels without a known chance.")
    decisions = Shown(COUNT, "All decisions of the weeks that they lie in.")
    mix = Shown(nullable(DifferenceSchema), "Of choice, score and noul questions.")
    confidence = Shown(DifferenceSchema)
    differs = Shown(FLAG, "Whether a random draw is as far in at most 1%, in either.")


class TestedSamplingSchema(SamplingSchema):
    """How labels came about, and whether they look like a random draw."""

    test = Shown(nullable(SamplingTestSchema), "Null where the chance of each label is known.")


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
    labels_needed = Shown(
        nullable(COUNT), "About how many more labels it takes; null where none suffice."
    )
    since = Shown(COUNT, "The place of the first label that counts, since accuracy fell; else 0.")


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
    models = Shown(
        array(OwnCalibratorSchema),
        "An entry for each answering model and mode, those with most labels first; at most 1 MB.",
    )
    changed_at = Shown(
        nullable(COUNT),
        "When the answers changed, in milliseconds since the epoch: labels of answers from before "
        "count little. Null where they did not.",
    )
    labels_since_change = Shown(
        nullable(COUNT),
        "How many labels are of answers since then: `before`, `after`, `uncertainty`, `options` "
        "and `confusion` are of these alone. Null where the answers did not change.",
    )
    before = Shown(ScoresSchema, "Of the raw probabilities.")
    after = Shown(
        ScoresSchema,
        "Held out: each half of the labels calibrated by a fit on the other half. Without a "
        "calibrator in effect it is `before`.",
    )
    uncertainty = Shown(UncertaintySchema)
    options = Shown(array(OptionScoresSchema), "Of choice, score and noul questions.")
    confusion = Shown(
        array(ConfusionSchema), "Pairs without any labels are left out, and what is beyond 1 MB."
    )
    sampling = Shown(TestedSamplingSchema)
    thresholds = Shown(array(ThresholdSchema))


def blueprint(reporter: Reporter) -> Blueprint:
    """The route that says how true the probabilities of a question are."""
    routes = Blueprint("calibration", __name__)

    @routes.get("/v1/calibration")
    @query(QuestionQuerySchema)
    @report
    @response(CalibrationReportSchema)
    @fails(404)
    def calibration(question: str, project: str | None = None) -> JsonObject:
        """Report how well a question's probabilities match the labels given for it.

        Of the most recent wording of the question in the project.
        """
        return reporter.calibration(g.access.reading(project), question)

    return routes

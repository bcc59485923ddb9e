"""`POST /v1/feedback`."""

from __future__ import annotations

from flask import Blueprint, g

from svc import limits
from svc.jsontext import JsonObject
from svc.learning import Learner
from svc.schemas import DECISION_ID, Feedback, FeedbackRequestSchema, ResponseSchema, Shown
from svc.shapes import COUNT, FLAG, TEXT
from svc.web.decorators import body, fails, response


class LabelledSchema(ResponseSchema):
    """How far a question has come towards a calibrator."""

    labels = Shown(COUNT, "Labels collected for this exact question in the project.")
    min_labels = Shown({"const": limits.MIN_LABELS}, "Labels before a first fit.")


class FeedbackResponseSchema(LabelledSchema):
    """What the question has learned so far, this label included."""

    decision_id = Shown(DECISION_ID)
    question = Shown(TEXT)
    calibrated = Shown(FLAG, "Whether a calibrator is in effect for the question.")


def blueprint(learner: Learner) -> Blueprint:
    """The route that takes true answers."""
    routes = Blueprint("feedback", __name__)

    @routes.post("/v1/feedback")
    @body(FeedbackRequestSchema)
    @response(FeedbackResponseSchema)
    @fails(404)
    def feedback(given: Feedback) -> JsonObject:
        """Give the true answer to a question of a decision.

        A further label for the same decision and question replaces the earlier one. From
        {MIN_LABELS} labels on, a calibrator is fitted where it clearly helps.
        """
        counted = learner.label(given, g.access.only)
        return {
            "decision_id": given.decision_id,
            "question": given.question,
            "labels": counted.labels,
            "min_labels": limits.MIN_LABELS,
            "calibrated": counted.calibrated,
        }

    return routes

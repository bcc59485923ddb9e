"""`POST /v1/feedback`."""

from __future__ import annotations

from flask import Blueprint, Response, g

from svc import limits
from svc.learning.learner import Learner
from svc.schemas.feedback import load_feedback
from svc.web.body import json_response, read_json


def blueprint(learner: Learner) -> Blueprint:
    """The route that takes true answers."""
    routes = Blueprint("feedback", __name__)

    @routes.post("/v1/feedback")
    def feedback() -> Response:
        """Give the true answer to a question of a decision."""
        given = load_feedback(read_json())
        counted = learner.label(given, g.access.only)
        return json_response(
            {
                "decision_id": given.decision_id,
                "question": given.question,
                "labels": counted.labels,
                "min_labels": limits.MIN_LABELS,
                "calibrated": counted.calibrated,
            }
        )

    return routes

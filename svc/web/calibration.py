"""`GET /v1/calibration`."""

from __future__ import annotations

from flask import Blueprint, Response, g, request

from svc.learning.reports import Reporter
from svc.web import query
from svc.web.body import json_response


def blueprint(reporter: Reporter) -> Blueprint:
    """The route that says how true the probabilities of a question are."""
    routes = Blueprint("calibration", __name__)

    @routes.get("/v1/calibration")
    def calibration() -> Response:
        """Report how well a question's probabilities match the labels given for it."""
        project = g.access.project(request.args.get("project") or None)
        return json_response(reporter.calibration(project, query.text("question")))

    return routes

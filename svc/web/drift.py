"""`GET /v1/drift`."""

from __future__ import annotations

from flask import Blueprint, Response, g, request

from svc import limits
from svc.learning.reports import Reporter
from svc.web import query
from svc.web.body import json_response


def blueprint(reporter: Reporter) -> Blueprint:
    """The route that says how a question's answers change over the weeks."""
    routes = Blueprint("drift", __name__)

    @routes.get("/v1/drift")
    def drift() -> Response:
        """Report a question's answers week by week, and whether they drift."""
        project = g.access.project(request.args.get("project") or None)
        weeks = query.whole("weeks", limits.DRIFT_WEEKS_DEFAULT, limits.DRIFT_WEEKS)
        return json_response(reporter.drift(project, query.text("question"), weeks))

    return routes

"""`GET /health` and `GET /metrics`."""

from __future__ import annotations

from flask import Blueprint, Response, request

from svc import __version__
from svc.metrics import Metrics
from svc.web.body import json_response


def blueprint(metrics: Metrics) -> Blueprint:
    """The routes for those who operate the server."""
    routes = Blueprint("ops", __name__)

    @routes.get("/health")
    def health() -> Response:
        """Say that the server answers, and its version."""
        return json_response({"status": "ok", "version": __version__})

    @routes.get("/metrics")
    def show_metrics() -> Response:
        """Show what was counted since the server's start."""
        names = request.args.getlist("name[]")
        text, content_type = metrics.render(request.headers.get("Accept"), names or None)
        return Response(text, content_type=content_type)

    return routes

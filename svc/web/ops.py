"""`GET /health`."""

from __future__ import annotations

from flask import Blueprint, Response

from svc import __version__
from svc.web.body import json_response


def blueprint() -> Blueprint:
    """The route that says the server is up."""
    routes = Blueprint("ops", __name__)

    @routes.get("/health")
    def health() -> Response:
        """Say that the server answers, and its version."""
        return json_response({"status": "ok", "version": __version__})

    return routes

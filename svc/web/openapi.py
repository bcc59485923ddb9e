"""`GET /openapi.json`."""

from __future__ import annotations

from functools import cache

from flask import Blueprint, Response, current_app

from svc import jsontext
from svc.openapi import document
from svc.shapes import OBJECT
from svc.web import decorators
from svc.web.decorators import open_to_all, response


def blueprint() -> Blueprint:
    """The route that describes all routes."""
    routes = Blueprint("openapi", __name__)

    @cache
    def text() -> str:
        """The document, made at the first request, when all routes are registered."""
        return jsontext.dumps(document(decorators.routes(current_app)))

    @routes.get("/openapi.json")
    @response(OBJECT)
    @open_to_all
    def openapi() -> Response:
        """Describe this interface in OpenAPI 3.1."""
        return Response(text(), mimetype="application/json")

    return routes

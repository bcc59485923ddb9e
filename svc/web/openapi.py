"""`GET /openapi.json`."""

from __future__ import annotations

from functools import cache

from flask import Blueprint, Response

from svc import jsontext
from svc.openapi import document


def blueprint() -> Blueprint:
    """The route that describes all routes."""
    routes = Blueprint("openapi", __name__)

    @routes.get("/openapi.json")
    def openapi() -> Response:
        """Describe this interface in OpenAPI 3.1."""
        return Response(_text(), mimetype="application/json")

    return routes


@cache
def _text() -> str:
    """The document, made when it is first asked for."""
    return jsontext.dumps(document())

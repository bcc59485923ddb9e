"""`GET /v1/models`."""

from __future__ import annotations

from flask import Blueprint, Response

from svc.pins import LATEST, PINS
from svc.web.body import json_response


def blueprint(latest: str) -> Blueprint:
    """The route that lists configs; `latest` is the pin that `svc-latest` stands for."""
    routes = Blueprint("models", __name__)
    newest = PINS[latest]
    rows = [(LATEST, f"Points to {latest}. {newest.description}", newest.release_date)]
    rows += [(pin.name, pin.description, pin.release_date) for pin in PINS.values()]
    keys = ("name", "description", "release_date")
    listing = {"models": [dict(zip(keys, row, strict=True)) for row in rows]}

    @routes.get("/v1/models")
    def models() -> Response:
        """List every config that a request may name."""
        return json_response(listing)

    return routes

"""`GET /v1/models`."""

from __future__ import annotations

from flask import Blueprint

from svc.jsontext import JsonObject
from svc.pins import LATEST, PINS
from svc.schemas import ResponseSchema, Shown
from svc.shapes import TEXT, array
from svc.web.decorators import response


class ConfigSchema(ResponseSchema):
    """A pinned prompt with its defaults."""

    name = Shown(TEXT)
    description = Shown(TEXT)
    release_date = Shown({"type": "string", "format": "date"})


class ConfigListSchema(ResponseSchema):
    """Every config, the operator's choice first."""

    models = Shown(array(ConfigSchema))


def blueprint(latest: str) -> Blueprint:
    """The route that lists configs; `latest` is the pin that `svc-latest` stands for."""
    routes = Blueprint("models", __name__)
    newest = PINS[latest]
    rows = [(LATEST, f"Points to {latest}. {newest.description}", newest.release_date)]
    rows += [(pin.name, pin.description, pin.release_date) for pin in PINS.values()]
    keys = ("name", "description", "release_date")
    listing = {"models": [dict(zip(keys, row, strict=True)) for row in rows]}

    @routes.get("/v1/models")
    @response(ConfigListSchema)
    def models() -> JsonObject:
        """List every config that a request may name."""
        return listing

    return routes

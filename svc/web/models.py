"""`GET /v1/models`."""

from __future__ import annotations

from datetime import UTC, datetime

from flask import Blueprint

from svc.jsontext import JsonObject
from svc.pins import LATEST, PINS
from svc.schemas import ResponseSchema, Shown
from svc.shapes import COUNT, TEXT, array
from svc.web.decorators import response


class ConfigSchema(ResponseSchema):
    """A pinned prompt with its defaults."""

    name = Shown(TEXT)
    description = Shown(TEXT)
    release_date = Shown({"type": "string", "format": "date"})


class ModelSchema(ResponseSchema):
    """Something that `model` may be, as OpenAI's clients read it."""

    id = Shown(TEXT)
    object = Shown({"const": "model"})
    created = Shown(COUNT, "Seconds since 1970; 0 where nobody knows.")
    owned_by = Shown(TEXT)


class ConfigListSchema(ResponseSchema):
    """Every config, the operator's choice first."""

    models = Shown(array(ConfigSchema))
    object = Shown({"const": "list"}, "For clients of OpenAI's.")
    data = Shown(array(ModelSchema), "What `model` may be: the server's own model, and configs.")


def blueprint(latest: str, default: str | None = None) -> Blueprint:
    """The route that lists configs; `latest` is the pin that `svc-latest` stands for.

    `default` is the id of the model that answers requests which name none.
    """
    routes = Blueprint("models", __name__)
    newest = PINS[latest]
    rows = [(LATEST, f"Points to {latest}. {newest.description}", newest.release_date)]
    rows += [(pin.name, pin.description, pin.release_date) for pin in PINS.values()]
    keys = ("name", "description", "release_date")
    data = [_model(name, released) for name, _, released in rows]
    if default is not None:
        # Nobody here knows when its provider made it.
        data.insert(0, _model(default, "1970-01-01"))
    configs = [dict(zip(keys, row, strict=True)) for row in rows]
    listing = {"models": configs, "object": "list", "data": data}

    @routes.get("/v1/models")
    @response(ConfigListSchema)
    def models() -> JsonObject:
        """List every config that a request may name."""
        return listing

    return routes


def _model(model_id: str, released: str) -> JsonObject:
    midnight = datetime.fromisoformat(released).replace(tzinfo=UTC)
    created = int(midnight.timestamp())
    return {"id": model_id, "object": "model", "created": created, "owned_by": "svc"}

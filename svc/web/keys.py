"""`GET /v1/keys`."""

from __future__ import annotations

from dataclasses import asdict

from flask import Blueprint, g

from svc.errors import Forbidden
from svc.jsontext import JsonObject
from svc.schemas import ResponseSchema, Shown
from svc.shapes import COUNT, TEXT, array, nullable
from svc.store import ApiKeys
from svc.web.decorators import report, response


class KeySchema(ResponseSchema):
    """What is kept of an API key; its text is not."""

    id = Shown(TEXT, "What `svc keys revoke` takes.")
    name = Shown(TEXT)
    project = Shown(nullable(TEXT), "The one project that it is for; null for every project.")
    rpm = Shown(COUNT, "Requests a minute.")
    concurrency = Shown(
        nullable(COUNT), "Requests under way at the same time; null for the server's default."
    )
    created_at = Shown(COUNT, "Milliseconds since the epoch.")
    revoked_at = Shown(nullable(COUNT), "The same; null while the key is active.")


class KeysSchema(ResponseSchema):
    """Every API key, the oldest first."""

    keys = Shown(array(KeySchema))


def blueprint(stored: ApiKeys) -> Blueprint:
    """The route that lists API keys."""
    routes = Blueprint("keys", __name__)

    @routes.get("/v1/keys")
    @report
    @response(KeysSchema)
    def keys() -> JsonObject:
        """List the API keys, revoked ones too, without their texts.

        A key that is for one project may not see them.
        """
        if g.access.only is not None:
            raise Forbidden("this API key is for one project, and may not see who has keys")
        return {"keys": [asdict(key) for key in stored.all()]}

    return routes

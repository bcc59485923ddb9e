"""`POST /v1/decide`."""

from __future__ import annotations

from dataclasses import replace

from flask import Blueprint, Response, g

from svc.engine.decide import Engine
from svc.schemas import load_decision
from svc.web.body import json_response, read_json


def blueprint(engine: Engine) -> Blueprint:
    """The route that answers typed questions about a state."""
    routes = Blueprint("decide", __name__)

    @routes.post("/v1/decide")
    def decide() -> Response:
        """Answer typed questions about a state."""
        asked = load_decision(read_json())
        asked = replace(asked, project=g.access.project(asked.project))
        g.decision = engine.decide(asked, g.deadline, g.access.key_id)
        return json_response(g.decision.response())

    return routes

"""`POST /v1/decide`."""

from __future__ import annotations

from dataclasses import replace

from flask import Blueprint, g

from svc.engine.decide import Engine
from svc.jsontext import JsonObject
from svc.schemas import DecisionRequest, DecisionRequestSchema, DecisionResponseSchema
from svc.web.decorators import MODEL_FAILURES, Decorator, body, fails, response


def blueprint(engine: Engine, once: Decorator) -> Blueprint:
    """The route that answers typed questions about a state."""
    routes = Blueprint("decide", __name__)

    @routes.post("/v1/decide")
    @body(DecisionRequestSchema)
    @once
    @response(DecisionResponseSchema)
    @fails(*MODEL_FAILURES)
    def decide(decision_request: DecisionRequest) -> JsonObject:
        """Answer typed questions about a state.

        At most {MODEL_CALLS} model calls and {REQUEST_DEADLINE_S:g} seconds a request. Equal
        requests may be served from a cache.
        """
        access = g.access
        project = access.project(decision_request.project)
        decision_request = replace(decision_request, project=project)
        g.decision = decision = engine.decide(decision_request, g.deadline, access.key_id)
        return decision.response()

    return routes

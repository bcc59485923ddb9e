"""`POST /v1/decide`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from flask import Blueprint, g

from svc.engine.decide import Engine
from svc.jsontext import JsonObject
from svc.records import Decision
from svc.schemas import DecisionRequest, DecisionRequestSchema, DecisionResponseSchema
from svc.store.decisions import Decisions
from svc.web.decorators import MODEL_FAILURES, Decorator, body, fails, response
from svc.web.repeats import ToKeep, has_secrets, take_over


def blueprint(engine: Engine, once: Decorator, decisions: Decisions) -> Blueprint:
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
        to_keep = take_over()
        keep = None if to_keep is None else partial(_keep, decisions, to_keep)
        decision = engine.decide(decision_request, g.deadline, access.key_id, keep=keep)
        g.decision, g.asked = decision, decision_request
        return decision.response()

    return routes


def _keep(decisions: Decisions, to_keep: ToKeep, decision: Decision) -> str:
    """Store a decision, and that repeats of its request get it."""
    debiased = None if has_secrets(decision) else decision.debiased
    # It counts in no room: the decision does, and is far larger.
    return decisions.add(decision, kept=to_keep(None, None, debiased=debiased))

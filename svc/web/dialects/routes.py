"""`POST /v1/decisions`, and the same on `/v1beta/decisions`, where Google's clients look for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from flask import Blueprint, g

from svc.engine.decide import Engine
from svc.jsontext import JsonObject
from svc.records import Answer, Decision
from svc.schemas import DecisionRequest
from svc.web import error_handlers
from svc.web.decorators import Decorator, body, fails_as, response
from svc.web.dialects.errors import failures, in_a_dialect
from svc.web.dialects.schemas import MOST_PARTS, AnyRequestSchema, AnyResponseSchema


class Asked(Protocol):
    """A checked request of a dialect, and how its answers are stored and returned."""

    @property
    def request(self) -> DecisionRequest: ...
    def present(self, key: str, answer: Answer) -> Answer: ...
    def response(self, decision: Decision) -> JsonObject: ...


def blueprint(engine: Engine, once: Decorator) -> Blueprint:
    """The routes that answer typed questions in the words of other clients."""
    routes = Blueprint("dialects", __name__)
    error_handlers.register(routes, in_a_dialect)

    @routes.post("/v1/decisions")
    @body(AnyRequestSchema, most_parts=MOST_PARTS)
    @once
    @response(AnyResponseSchema)
    @fails_as(failures())
    def create_decision(asked: Asked) -> JsonObject:
        """Answer typed questions as the clients of OpenAI and of Google ask them.

        A list of up to {LISTED_QUESTIONS} questions, or a map of up to {MAPPED_QUESTIONS:,}; up to
        {QUESTIONS} of them share a model call, and {MODEL_CALLS} calls are the most. A question
        that no model could answer is refused where the others are answered. Errors have the shape
        that the client reads, and a bad request the status 400.
        """
        return _answered(engine, asked)

    @routes.post("/v1beta/decisions")
    @body(AnyRequestSchema, most_parts=MOST_PARTS)
    @once
    @response(AnyResponseSchema)
    @fails_as(failures())
    def create_decision_beta(asked: Asked) -> JsonObject:
        """The same as `/v1/decisions`, where Google's clients look for it."""
        return _answered(engine, asked)

    return routes


def _answered(engine: Engine, asked: Asked) -> JsonObject:
    project = g.access.project(asked.request.project)
    decision_request = replace(asked.request, project=project)
    g.decision = engine.decide(decision_request, g.deadline, g.access.key_id, asked.present)
    g.asked = decision_request
    return asked.response(g.decision)

"""`GET /v1/decisions/{decision_id}`."""

from __future__ import annotations

from flask import Blueprint, Response, g

from svc.errors import NotFound
from svc.schemas import DECISION_ID
from svc.store import Labels, QuestionVersions
from svc.store.decisions import Decisions
from svc.web.decorators import brief, fails, path, response
from svc.web.entries import StoredDecisionSchema, entry_text, with_labels, with_questions
from svc.web.query import PathPart, QuerySchema


class DecisionPathSchema(QuerySchema):
    decision_id = PathPart(DECISION_ID, "The `id` of the decision.")


def blueprint(decisions: Decisions, labels: Labels, versions: QuestionVersions) -> Blueprint:
    """The route that shows one decision."""
    routes = Blueprint("decisions", __name__)

    @routes.get("/v1/decisions/<decision_id>")
    @path(DecisionPathSchema)
    @brief
    @response(StoredDecisionSchema)
    @fails(404)
    def decision(decision_id: str) -> Response:
        """Show one decision as the audit log has it, its labels, and its questions as asked."""
        entry = decisions.entry(decision_id)
        if entry is None or not g.access.sees(entry.facts.project):
            raise NotFound("there is no such decision")
        given = labels.of_decisions([entry.seq]).get(entry.seq, [])
        text = with_labels(entry_text(entry), given)
        asked = versions.definitions(entry.question_ids)
        return Response(with_questions(text, entry, asked), mimetype="application/json")

    return routes

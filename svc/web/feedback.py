"""`POST /v1/feedback` and `POST /v1/feedback/bulk`."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

from flask import Blueprint, g

from svc import limits
from svc.jsontext import JsonObject
from svc.learning import Learner
from svc.schemas import BulkFeedback, BulkFeedbackSchema, Feedback, FeedbackRequestSchema
from svc.web.body import parse_lines
from svc.web.decorators import Decorator, body, fails, query, response
from svc.web.feedback_schemas import (
    BulkFeedbackQuerySchema,
    BulkFeedbackResponseSchema,
    FeedbackResponseSchema,
)
from svc.web.label_turns import LabelTurns


def labels_of_lines(sent: bytes) -> JsonObject:
    """A body of JSON lines as the object whose `labels` they are."""
    return {"labels": parse_lines(sent)}


def blueprint(learner: Learner, once: Decorator, turns: LabelTurns) -> Blueprint:
    """The routes that take true answers, and store them in `turns`."""
    routes = Blueprint("feedback", __name__)

    @routes.post("/v1/feedback")
    @body(FeedbackRequestSchema)
    @once
    @response(FeedbackResponseSchema)
    @fails(404, 504)
    def feedback(given: Feedback) -> JsonObject:
        """Give the true answer to a question of a decision.

        A further label for the same decision and question replaces the earlier one. From
        {MIN_LABELS} labels on, a calibrator is fitted where it clearly helps.
        """
        turn = partial(turns.of_one, g.access.key_id, g.deadline)
        counted = learner.label(given, g.access.only, turn)
        # Its id is in the answer, which is kept for repeats no longer than the decision.
        g.labelled = given.decision_id
        return {
            "decision_id": given.decision_id,
            "question": given.question,
            "labels": counted.labels,
            "min_labels": limits.MIN_LABELS,
            "calibrated": counted.calibrated,
        }

    @routes.post("/v1/feedback/bulk")
    @body(BulkFeedbackSchema, lines=labels_of_lines)
    @query(BulkFeedbackQuerySchema)
    @once
    @response(BulkFeedbackResponseSchema)
    @fails(504)
    def feedback_bulk(given: BulkFeedback, atomic: bool, project: str | None = None) -> JsonObject:
        """Give true answers to questions of many decisions, at most 5,000 labels.

        As one JSON object, or as JSON lines with `project` and `atomic` in the query. Every label
        that is right is stored, {BULK_STORED_AT_ONCE} in one transaction, and every other one is
        reported with its line; with `atomic`, either all are stored or none, and they have
        {ATOMIC_CHARS} characters at most, with the keys of their questions. After an answer of
        500 or none, some may be stored: sent again, each takes its own place. Calibrators are
        fitted in the background.
        """
        whole = replace(given, atomic=given.atomic or atomic)
        of_refs = g.access.reading(given.project if project is None else project)
        labels = sum(len(line.labels) for line in whole.lines)
        with turns.of_many(g.access.key_id, max(labels, len(whole.lines)), g.deadline):
            taken = learner.label_all(whole, of_refs, g.access.only)
        errors = [asdict(error) for error in taken.errors]
        # Messages about errors may quote labels.
        g.partly_failed = bool(errors)
        return {"lines": given.count, "taken": taken.labels, "errors": errors}

    return routes

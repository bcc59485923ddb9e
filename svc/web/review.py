"""`GET /v1/review`, `POST /v1/review/skip` and `GET /v1/review/disagreements`."""

from __future__ import annotations

from flask import Blueprint, g

from svc.jsontext import JsonObject
from svc.learning import ReviewDesk, Reviewers
from svc.web.decorators import body, brief, fails, query, report, response
from svc.web.review_schemas import (
    Answers,
    DisagreementsQuerySchema,
    DisagreementsSchema,
    ReviewQuerySchema,
    ReviewSchema,
    SkippedSchema,
    SkipRequestSchema,
)


def blueprint(desk: ReviewDesk, reviewers: Reviewers) -> Blueprint:
    """The routes of the review queue."""
    routes = Blueprint("review", __name__)

    @routes.get("/v1/review")
    @query(ReviewQuerySchema)
    @report
    @response(ReviewSchema)
    @fails(404)
    def review(
        question: str, reviewer: str, limit: int, answers: Answers, project: str | None = None
    ) -> JsonObject:
        """Take decisions to label, which nobody else gets meanwhile.

        Doubtful ones come more often, and every one has a chance that the server knows and keeps
        with the label, so that labels speak for all decisions. Of the most recent wording of the
        question. A decision that is not labelled in time goes to another reviewer. The list also
        ends after about 2 MB: what does not fit is this reviewer's too, and comes once some of
        these are labelled.
        """
        project = g.access.reading(project)
        return desk.hand_out(project, question, reviewer, limit, answers is Answers.SHOWN)

    @routes.post("/v1/review/skip")
    @body(SkipRequestSchema)
    @brief
    @response(SkippedSchema)
    @fails(404)
    def skip(given: JsonObject) -> JsonObject:
        """Give a decision back without a label.

        The same reviewer does not get it again, until {JUDGEMENTS_KEPT} others gave it back too.
        """
        reviewers.skip(given["decision_id"], given["question"], given["reviewer"], g.access.only)
        return given

    @routes.get("/v1/review/disagreements")
    @query(DisagreementsQuerySchema)
    @report
    @response(DisagreementsSchema)
    @fails(404)
    def disagreements(question: str, limit: int, project: str | None = None) -> JsonObject:
        """List decisions of which reviewers say different things.

        Of the most recent wording of the question in the project, among its last {JUDGEMENTS_READ}
        judgements, fewer where their labels are long: {JUDGEMENTS_CHARS} characters of judgements
        are looked through, and as many of the decisions found among them. What the last
        {JUDGEMENTS_KEPT} reviewers of a decision said last is kept. The list also ends after about
        2 MB.
        """
        return reviewers.disagreements(g.access.reading(project), question, limit)

    return routes

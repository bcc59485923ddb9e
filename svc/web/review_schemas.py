"""What the routes of the review queue take and answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from marshmallow import RAISE, Schema

from svc import limits
from svc.questions import TextField, WordsField
from svc.schemas import (
    DECISION_ID,
    ResponseSchema,
    ReviewerField,
    Shown,
    any_answer,
    any_label,
)
from svc.shapes import COUNT, OBJECT, SHA256, TEXT, array, mapping, nullable
from svc.web import systemone
from svc.web.calibration import IntervalSchema, ThresholdSchema
from svc.web.query import QueryKey, QueryWhole, QueryWord, QuestionQuerySchema


class QueryReviewer(QueryKey):
    """The name of somebody who labels."""

    default_error_messages = {  # noqa: RUF012
        "required": "is required in the query, such as ?reviewer=..."
    }
    form = ReviewerField.form

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name: str = ReviewerField().deserialize(value)
        return name


class Answers(StrEnum):
    """Whether reviewers see answers before they label."""

    HIDDEN = "hidden"
    SHOWN = "shown"


class ReviewedQuestionQuerySchema(QuestionQuerySchema):
    """A query that a typo must not change: unknown parameters are refused."""

    class Meta:
        unknown = RAISE

    error_messages = {"unknown": "unknown parameter"}  # noqa: RUF012


class ReviewQuerySchema(ReviewedQuestionQuerySchema):
    reviewer = QueryReviewer(
        "Who labels: a short name. Asking again gives the same reviewer what is not labelled yet.",
        required=True,
    )
    limit = QueryWhole(
        *limits.REVIEW_PAGE,
        description="The most decisions that this reviewer has at once.",
        load_default=limits.REVIEW_PAGE_DEFAULT,
    )
    answers = QueryWord(
        Answers,
        "`shown` tells the model's answers, which make reviewers agree with them.",
        load_default=Answers.HIDDEN,
    )


class ReviewItemSchema(ResponseSchema):
    """A decision to label, which nobody else has."""

    id = Shown(DECISION_ID)
    question = Shown(TEXT, "The question's key in this decision.")
    ref = Shown(nullable(TEXT), "The caller's own id of what was decided about.")
    tags = Shown(mapping(TEXT), "As the caller gave them.")
    created_at = Shown(COUNT, "Milliseconds since the epoch.")
    state_hash = Shown(SHA256, "Salted SHA-256 of the state, which itself is not kept.")
    leased_until = Shown(COUNT, "Nobody else gets it until then, in milliseconds since the epoch.")
    answer = Shown(
        {"anyOf": [any_answer, systemone.any_answer]}, "With `answers=shown`.", optional=True
    )


class ReviewProgressSchema(ResponseSchema):
    """How far the labels of a question have come."""

    labels = Shown(COUNT, "Labels collected for this exact question in the project.")
    min_labels = Shown({"const": limits.MIN_LABELS}, "Labels before a first fit.")
    decisions = Shown(
        COUNT,
        "Decisions that entered the queue, of which labels speak: the "
        f"{limits.REVIEW_DECISIONS:,} most recent ones at each look, among the project's last "
        f"{limits.REVIEW_DEPTH:,}.",
    )
    reviewed = Shown(COUNT, f"Those that reviewers labelled, up to {limits.REVIEW_COUNTED:,}.")
    waiting = Shown(COUNT, "Those that are left.")
    leased = Shown(COUNT, "Those that reviewers have now.")
    skipped = Shown(COUNT, f"Those that were ever given back, up to {limits.REVIEW_COUNTED:,}.")
    accuracy = Shown(
        nullable(IntervalSchema),
        "The share of raw answers that are right among all of `decisions`; null without labels of "
        "decisions that were handed out, and where labels from elsewhere are over 1% as many.",
    )
    thresholds = Shown(
        array(ThresholdSchema), "As in the calibration report, with about how many labels to go."
    )


class ReviewSchema(ResponseSchema):
    """Decisions to label."""

    project = Shown(TEXT)
    question = Shown(TEXT)
    reviewer = Shown(TEXT)
    definition = Shown(OBJECT, "The exact question: its type, its words, its options or levels.")
    items = Shown(
        array(ReviewItemSchema, 0, limits.REVIEW_PAGE[1]), "Oldest first; empty when none is left."
    )
    progress = Shown(ReviewProgressSchema)


class SkipRequestSchema(Schema):
    """A decision that a reviewer gives back."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    decision_id = WordsField("The `id` of the decision.", required=True)
    question = TextField("The key of the question in that decision.", required=True)
    reviewer = ReviewerField("Who gives it back.", required=True)


class SkippedSchema(ResponseSchema):
    """What was given back."""

    decision_id = Shown(DECISION_ID)
    question = Shown(TEXT)
    reviewer = Shown(TEXT)


class DisagreementsQuerySchema(ReviewedQuestionQuerySchema):
    limit = QueryWhole(
        *limits.REVIEW_PAGE,
        description="The most decisions, the newest first.",
        load_default=limits.REVIEW_PAGE[1],
    )


class JudgementSchema(ResponseSchema):
    """What a reviewer said last."""

    reviewer = Shown(TEXT)
    label = Shown(any_label)
    created_at = Shown(COUNT, "Milliseconds since the epoch.")


class DisagreementSchema(ResponseSchema):
    """A decision of which reviewers say different things."""

    id = Shown(DECISION_ID)
    question = Shown(TEXT, "The question's key in this decision.")
    label = Shown(nullable(any_label), "The label that counts: the newest.")
    judgements = Shown(array(JudgementSchema), "In the order in which they were given.")


class DisagreementsSchema(ResponseSchema):
    """Decisions of which reviewers say different things, the newest first."""

    project = Shown(TEXT)
    question = Shown(TEXT)
    disagreements = Shown(array(DisagreementSchema, 0, limits.REVIEW_PAGE[1]))

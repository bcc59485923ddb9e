"""Turns JSON into frozen requests, and checks it before any model is asked.

A body that is no object, an unknown `mode` and an unknown question `type` are `InvalidJson` (400).
Anything else that is wrong is `InvalidRequest` (422), whose message names question and field.
"""

from __future__ import annotations

from svc.schemas.decision import (
    DEFAULT_PROJECT,
    MODES,
    DecisionRequest,
    DecisionRequestSchema,
    OneOf,
    QuestionsField,
    State,
    StateField,
    any_question,
    check_conditions,
    check_size,
    load_decision,
    load_questions,
    remembering,
    with_state,
)
from svc.schemas.feedback import (
    BulkFeedback,
    BulkFeedbackSchema,
    Feedback,
    FeedbackRequestSchema,
    LabelledLine,
    LabelledLineSchema,
    LineError,
    NumberedLine,
    any_label,
)
from svc.schemas.forecasts import ForecastRequest, ForecastRequestSchema
from svc.schemas.images import ImageField
from svc.schemas.jobs import (
    BATCH,
    PROVIDER,
    JobRequest,
    JobRequestSchema,
    is_batched,
    load_template,
    parsed_row,
    parsed_shared,
    with_row,
)
from svc.schemas.loading import load, refuse_many_unknown
from svc.schemas.messages import listed, walk
from svc.schemas.plan import PlanField, model_plan
from svc.schemas.references import ReviewerField
from svc.schemas.responses import (
    DECISION_ID,
    REFUSED,
    DecidedSchema,
    DecisionResponseSchema,
    ResponseSchema,
    Shown,
    answer,
    any_answer,
    columns,
    redacted_answer,
)

__all__ = [
    "BATCH",
    "DECISION_ID",
    "DEFAULT_PROJECT",
    "MODES",
    "PROVIDER",
    "REFUSED",
    "BulkFeedback",
    "BulkFeedbackSchema",
    "DecidedSchema",
    "DecisionRequest",
    "DecisionRequestSchema",
    "DecisionResponseSchema",
    "Feedback",
    "FeedbackRequestSchema",
    "ForecastRequest",
    "ForecastRequestSchema",
    "ImageField",
    "JobRequest",
    "JobRequestSchema",
    "LabelledLine",
    "LabelledLineSchema",
    "LineError",
    "NumberedLine",
    "OneOf",
    "PlanField",
    "QuestionsField",
    "ResponseSchema",
    "ReviewerField",
    "Shown",
    "State",
    "StateField",
    "answer",
    "any_answer",
    "any_label",
    "any_question",
    "check_conditions",
    "check_size",
    "columns",
    "is_batched",
    "listed",
    "load",
    "load_decision",
    "load_questions",
    "load_template",
    "model_plan",
    "parsed_row",
    "parsed_shared",
    "redacted_answer",
    "refuse_many_unknown",
    "remembering",
    "walk",
    "with_row",
    "with_state",
]

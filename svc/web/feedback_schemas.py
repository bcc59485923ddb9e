"""What the routes of feedback answer, and the query of labels in bulk."""

from __future__ import annotations

from svc import limits
from svc.schemas import DECISION_ID, ResponseSchema, Shown
from svc.shapes import COUNT, FLAG, TEXT, array
from svc.web.query import QueryFlag, StrictQuerySchema, project_field


class LabelledSchema(ResponseSchema):
    """How far a question has come towards a calibrator."""

    labels = Shown(COUNT, "Labels collected for this exact question in the project.")
    min_labels = Shown({"const": limits.MIN_LABELS}, "Labels before a first fit.")


class FeedbackResponseSchema(LabelledSchema):
    """What the question has learned so far, this label included."""

    decision_id = Shown(DECISION_ID)
    question = Shown(TEXT)
    calibrated = Shown(FLAG, "Whether a calibrator is in effect for the question.")


class BulkFeedbackQuerySchema(StrictQuerySchema):
    project = project_field()
    atomic = QueryFlag("Take all labels, or none where anything is wrong.", load_default=False)


class LineErrorSchema(ResponseSchema):
    """What is wrong with a line."""

    line = Shown(COUNT, "The number of the line or element, from 1.")
    field = Shown(TEXT, "Such as `ref` or `labels.refund`; empty where it is the whole line.")
    message = Shown(TEXT, "What is wrong, and what is allowed.")


class BulkFeedbackResponseSchema(ResponseSchema):
    """What became of many labels."""

    lines = Shown(COUNT, "How many lines were read.")
    taken = Shown(
        COUNT,
        "How many labels were taken; with `atomic` all or none. Of several for one question of a "
        "decision the last one counts.",
    )
    errors = Shown(array(LineErrorSchema), "In the order of the lines.")

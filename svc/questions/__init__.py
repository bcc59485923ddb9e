"""The question types: one file each; this table is all that knows them by name."""

from __future__ import annotations

from svc.questions.base import Question, Reading, Unreadable
from svc.questions.choice import ChoiceSchema
from svc.questions.multi import MultiSchema
from svc.questions.noul import NoulSchema
from svc.questions.number import IntegerSchema, NumberSchema
from svc.questions.schema import QuestionSchema
from svc.questions.score import ScoreSchema
from svc.questions.text import TextSchema

TYPES: dict[str, QuestionSchema] = {
    schema.model.type: schema
    for schema in (
        ChoiceSchema(),
        ScoreSchema(),
        NoulSchema(),
        MultiSchema(),
        TextSchema(),
        NumberSchema(),
        IntegerSchema(),
    )
}

__all__ = ["TYPES", "Question", "QuestionSchema", "Reading", "Unreadable"]

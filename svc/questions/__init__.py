"""The question types, one file each; nothing but this table knows them by name."""

from __future__ import annotations

import json

from svc.memo import Memo
from svc.questions.choice import ESCAPE, ChoiceSchema
from svc.questions.dependencies import UnsoundDependency, stages
from svc.questions.kit import (
    ANSWER_MARK,
    BOTH,
    CHOICE,
    DECIMALS,
    SCORE,
    Anything,
    Condition,
    ConditionValues,
    Described,
    Descriptions,
    FlagField,
    LabelLine,
    LabelQuestion,
    Levels,
    NumberField,
    OneOfField,
    Opinions,
    PlainQuestion,
    Question,
    QuestionSchema,
    Reading,
    TextField,
    Unreadable,
    WholeField,
    WordsField,
    amount,
    check_search,
    component,
    count_entries,
    object_schema,
    one_line,
    to_digits,
)
from svc.questions.multi import MultiSchema
from svc.questions.noul import EVEN, Noul, NoulSchema
from svc.questions.number import IntegerSchema, NumberSchema
from svc.questions.score import ScoreSchema
from svc.questions.text import Text, TextSchema

TYPES: dict[str, QuestionSchema] = {}

# The same with the other names that requests may use.
NAMES: dict[str, QuestionSchema] = {}


def register(schema: QuestionSchema) -> None:
    """Make a question type known under its name."""
    TYPES[schema.model.type] = schema
    NAMES.update(dict.fromkeys((schema.model.type, *schema.model.other_names), schema))


register(ChoiceSchema())
register(ScoreSchema())
register(NoulSchema())
register(MultiSchema())
register(TextSchema())
register(NumberSchema())
register(IntegerSchema())


def from_definition(definition: str) -> Question:
    """The exact question that a stored definition describes, its options in definition order."""
    return _remembered(definition)


@Memo
def _remembered(definition: str) -> Question:
    exact = json.loads(definition)
    question: Question = TYPES[exact["type"]].load(exact)
    return question


__all__ = [
    "ANSWER_MARK",
    "BOTH",
    "CHOICE",
    "DECIMALS",
    "ESCAPE",
    "EVEN",
    "NAMES",
    "SCORE",
    "TYPES",
    "Anything",
    "Condition",
    "ConditionValues",
    "Described",
    "Descriptions",
    "FlagField",
    "LabelLine",
    "LabelQuestion",
    "Levels",
    "Noul",
    "NumberField",
    "OneOfField",
    "Opinions",
    "PlainQuestion",
    "Question",
    "QuestionSchema",
    "Reading",
    "Text",
    "TextField",
    "Unreadable",
    "UnsoundDependency",
    "WholeField",
    "WordsField",
    "amount",
    "check_search",
    "component",
    "count_entries",
    "from_definition",
    "object_schema",
    "one_line",
    "register",
    "stages",
    "to_digits",
]

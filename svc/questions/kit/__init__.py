"""What a question type is made with: its interface, its schema, and what several types share."""

from __future__ import annotations

from svc.questions.kit.answers import ABSTAIN, CONFIDENCE, COVERAGE, OF_OPTIONS, RULED, SET
from svc.questions.kit.base import (
    LabelLine,
    LabelQuestion,
    Question,
    Reading,
    Unreadable,
    object_schema,
    probability_schema,
    to_digits,
)
from svc.questions.kit.conditions import ANSWER_MARK
from svc.questions.kit.distribution import (
    Distribution,
    Lettered,
    lettered,
    option_text,
    probabilities_schema,
)
from svc.questions.kit.fields import (
    Anything,
    Described,
    Descriptions,
    FlagField,
    Levels,
    NumberField,
    TextField,
    WholeField,
    WordsField,
    amount,
)
from svc.questions.kit.lettering import DECIMALS, argmax, complete, letters, one_line
from svc.questions.kit.plain import CHOICE, SCORE, YES_NO, PlainQuestion
from svc.questions.kit.schema import (
    Examples,
    QuestionSchema,
    component,
    coverage_field,
    min_confidence_field,
)
from svc.questions.kit.verbal import BOTH, SHARES, Stated, number_of, stated

__all__ = [
    "ABSTAIN",
    "ANSWER_MARK",
    "BOTH",
    "CHOICE",
    "CONFIDENCE",
    "COVERAGE",
    "DECIMALS",
    "OF_OPTIONS",
    "RULED",
    "SCORE",
    "SET",
    "SHARES",
    "YES_NO",
    "Anything",
    "Described",
    "Descriptions",
    "Distribution",
    "Examples",
    "FlagField",
    "LabelLine",
    "LabelQuestion",
    "Lettered",
    "Levels",
    "NumberField",
    "PlainQuestion",
    "Question",
    "QuestionSchema",
    "Reading",
    "Stated",
    "TextField",
    "Unreadable",
    "WholeField",
    "WordsField",
    "amount",
    "argmax",
    "complete",
    "component",
    "coverage_field",
    "lettered",
    "letters",
    "min_confidence_field",
    "number_of",
    "object_schema",
    "one_line",
    "option_text",
    "probabilities_schema",
    "probability_schema",
    "stated",
    "to_digits",
]

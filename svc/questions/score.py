"""`score`: one of several ordered levels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svc import limits
from svc.jsontext import finite
from svc.lazy import lazy
from svc.questions.kit import (
    ABSTAIN,
    CONFIDENCE,
    DECIMALS,
    SCORE,
    Examples,
    Lettered,
    Levels,
    PlainQuestion,
    QuestionSchema,
    Reading,
    argmax,
    min_confidence_field,
    one_line,
)
from svc.shapes import AMOUNT, COUNT, PROBABILITY, array, described, record
from svc.terms import TaskKind


@dataclass(frozen=True, kw_only=True)
class Score(Lettered):
    """Which of `levels`, lowest first; the answer is the expected level, 0 for the lowest."""

    type = "score"
    task = TaskKind.CLASSES
    names_options = True
    guidance = "Pick the one level that fits best; neighbouring levels are close in meaning."
    display = "level"
    usual_instructions = "Which of these levels fits the input best?"
    label_schema = described(COUNT, "A level index, 0 for the lowest.")
    answer_schema = record(
        {
            "score": described(AMOUNT, "The expected level, 0 for the lowest."),
            "probabilities": described(array(PROBABILITY, 2), "One per level, lowest first."),
            "confidence": CONFIDENCE,
        },
        ABSTAIN,
    )

    levels: tuple[str, ...]

    @lazy
    def option_texts(self) -> tuple[str, ...]:
        return tuple(one_line(level) for level in self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        return self.option_texts

    def plain(self, backwards: bool) -> list[PlainQuestion]:
        """The levels lowest first, as decision servers expect them, in either option order."""
        levels = tuple((level, "") for level in self.option_texts)
        return [PlainQuestion(SCORE, self.instructions, levels, tuple(range(len(levels))))]

    def answer(self, reading: Reading) -> Mapping[str, Any]:
        probabilities = self.rounded(reading)
        expected = math.fsum(level * p for level, p in enumerate(probabilities))
        return {
            "score": round(expected, DECIMALS),
            "probabilities": probabilities,
            **self.certainty(max(probabilities)),
        }

    def definition(self) -> Mapping[str, Any]:
        return {"levels": list(self.levels)}

    @property
    def option_names(self) -> list[str]:
        """The numbers of the levels."""
        return [str(level) for level in range(len(self.levels))]

    def truth(self, label: int, answer: Mapping[str, Any]) -> int:
        return label

    def shown(self, fields: Mapping[str, Any]) -> tuple[int, float]:
        """A route may show the probabilities as a list, or by the numbers of the levels."""
        shown = fields["probabilities"]
        probabilities = list(shown.values()) if isinstance(shown, Mapping) else shown
        return argmax(probabilities), fields["confidence"]

    def top(self, reading: Reading) -> int:
        return self.best(reading)

    def probability(self, reading: Reading, label: int) -> float:
        return reading.probabilities[label]

    def check_label(self, label: Any) -> int:
        level = finite(label)
        if level is None or level not in range(len(self.levels)):
            raise ValueError(f"must be a level index from 0 to {len(self.levels) - 1}")
        return int(level)

    def certain(self, label: int) -> Reading:
        return self.one_hot(label)

    def label_text(self, label: int, backwards: bool) -> str:
        return self.letter(label, backwards)

    def spoken(self, label: int) -> str:
        return self.option_texts[label]

    @property
    def own_texts(self) -> list[str]:
        return list(self.levels)


class ScoreSchema(QuestionSchema):
    model = Score
    levels = Levels(
        limits.SCORE_LEVELS, required=True, description="Descriptions of the levels, lowest first."
    )
    min_confidence = min_confidence_field()
    examples = Examples()

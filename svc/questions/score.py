"""`score`: one of several ordered levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from svc import limits
from svc.questions.base import Lettered, QuestionSchema, Reading, min_confidence_field
from svc.questions.fields import Levels
from svc.questions.labels import DECIMALS, one_line


@dataclass(frozen=True, kw_only=True)
class Score(Lettered):
    """Which of `levels`, lowest first; the answer is the expected level, 0 for the lowest."""

    type = "score"
    guidance = "Pick the one level that fits best; neighbouring levels are close in meaning."

    levels: tuple[str, ...]

    @cached_property
    def option_texts(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(one_line(level) for level in self.levels)

    def answer(self, reading: Reading) -> dict[str, Any]:
        probabilities = self.rounded(reading)
        expected = math.fsum(level * p for level, p in enumerate(probabilities))
        return {
            "score": round(expected, DECIMALS),
            "probabilities": probabilities,
            **self.certainty(probabilities),
        }

    def definition(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}

    @property
    def texts(self) -> list[str]:
        return [self.instructions, *self.levels]


class ScoreSchema(QuestionSchema):
    model = Score
    levels = Levels(limits.SCORE_LEVELS, required=True)
    min_confidence = min_confidence_field()

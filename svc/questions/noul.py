"""`noul`: yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from svc.questions.base import Distribution, Question, QuestionSchema, Reading
from svc.questions.labels import DECIMALS

YES_NO = ("yes", "no")


@dataclass(frozen=True, kw_only=True)
class Noul(Distribution):
    """Whether something holds; the answer is P(yes)."""

    type = "noul"
    guidance = "Decide whether this holds for the input."

    @property
    def labels(self) -> tuple[str, ...]:
        return YES_NO

    def shown_labels(self, backwards: bool) -> tuple[str, ...]:
        return YES_NO[::-1] if backwards else YES_NO

    def option_lines(self, backwards: bool) -> list[str]:
        return []

    def reading(
        self, shown: tuple[float, ...] | None, backwards: bool, mass: float | None = None
    ) -> Reading:
        both = super().reading(shown, backwards, mass)
        return replace(both, probabilities=both.probabilities[:1])

    def merge(self, readings: Sequence[Reading]) -> Reading:
        return Question.merge(self, readings)  # P(yes) alone has nothing to be normalised with

    def confidence(self, reading: Reading) -> float:
        (yes,) = reading.probabilities
        return max(yes, 1 - yes)

    def answer(self, reading: Reading) -> dict[str, Any]:
        return {"noul": round(reading.probabilities[0], DECIMALS)}

    def definition(self) -> dict[str, Any]:
        return {}

    @property
    def texts(self) -> list[str]:
        return [self.instructions]


class NoulSchema(QuestionSchema):
    model = Noul

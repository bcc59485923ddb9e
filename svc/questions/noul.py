"""`noul`: yes or no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from svc.questions.kit import (
    DECIMALS,
    RULED,
    SET,
    Distribution,
    Examples,
    PlainQuestion,
    Question,
    Reading,
    SetsSchema,
    Stated,
    number_of,
)
from svc.questions.kit import YES_NO as PLAIN_YES_NO
from svc.shapes import FLAG, PROBABILITY, described, record
from svc.terms import TaskKind

YES_NO = ("yes", "no")

# The P(yes) from which the answer counts as yes.
EVEN = 0.5


@dataclass(frozen=True, kw_only=True)
class Noul(Distribution):
    """Whether something holds; the answer is P(yes)."""

    type = "noul"
    other_names = ("boolean", "yes_no")
    task = TaskKind.YES_NO
    names_options = True
    guidance = "Decide whether this holds for the input."
    display = "yes_no"
    usual_instructions = "Does this hold for the input?"
    sides = {"true": "Yes", "false": "No"}  # noqa: RUF012
    label_schema = described(FLAG, "Whether it holds.")
    answer_schema = record(
        {"noul": described(PROBABILITY, "The probability of yes.")}, {**RULED, **SET}
    )

    @property
    def labels(self) -> tuple[str, ...]:
        return YES_NO

    def shown_labels(self, backwards: bool) -> tuple[str, ...]:
        return YES_NO[::-1] if backwards else YES_NO

    def option_lines(self, backwards: bool) -> list[str]:
        return []

    def shown_names(self, backwards: bool) -> tuple[str, ...]:
        return ("false", "true") if backwards else ("true", "false")

    def stated(self, member: Any, backwards: bool) -> Stated:
        """A number alone is P(yes)."""
        if number_of(member) is not None:
            member = {YES_NO[0]: member}
        return super().stated(member, backwards)

    def plain(self, backwards: bool) -> list[PlainQuestion]:
        return [PlainQuestion(PLAIN_YES_NO, self.instructions)]

    def reading(
        self, shown: tuple[float, ...] | None, backwards: bool, mass: float | None = None
    ) -> Reading:
        both = super().reading(shown, backwards, mass)
        return replace(both, probabilities=both.probabilities[:1])

    def merge(self, readings: Sequence[Reading]) -> Reading:
        # A reading has P(yes) alone, so there is nothing to normalise as for several labels.
        return Question.merge(self, readings)

    def confidence(self, reading: Reading) -> float:
        (yes,) = reading.probabilities
        return max(yes, 1 - yes)

    def answer(self, reading: Reading) -> Mapping[str, Any]:
        return {"noul": round(reading.probabilities[0], DECIMALS)}

    def definition(self) -> Mapping[str, Any]:
        return {}

    @property
    def option_names(self) -> list[str]:
        """No and yes, as a label that is a truth value is written."""
        return ["false", "true"]

    def truth(self, label: bool, answer: Mapping[str, Any]) -> int:
        return int(label)

    def candidates(self, reading: Reading) -> list[tuple[str, float]]:
        (yes,) = reading.probabilities
        return [("true", yes), ("false", 1 - yes)]

    def shown(self, fields: Mapping[str, Any]) -> tuple[bool, float]:
        reading = Reading((fields["noul"],))
        return self.top(reading), self.confidence(reading)

    def top(self, reading: Reading) -> bool:
        # Rounded as the caller sees it.
        return round(reading.probabilities[0], DECIMALS) >= EVEN

    def probability(self, reading: Reading, label: bool) -> float:
        (yes,) = reading.probabilities
        return yes if label else 1 - yes

    def check_label(self, label: Any) -> bool:
        if not isinstance(label, bool):
            raise ValueError("must be true or false")
        return label

    def certain(self, label: bool) -> Reading:
        return Reading((float(label),))

    def label_text(self, label: bool, backwards: bool) -> str:
        return self.spoken(label)

    def spoken(self, label: bool) -> str:
        return YES_NO[0] if label else YES_NO[1]

    @property
    def own_texts(self) -> list[str]:
        return []


class NoulSchema(SetsSchema):
    model = Noul
    examples = Examples()

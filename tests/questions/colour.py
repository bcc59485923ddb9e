"""A question type of the tests' own, as anybody may add one: a file, and a line of `register`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from svc.questions import TYPES, QuestionSchema, Reading, register
from svc.questions.kit.base import CHOICE, PlainQuestion
from svc.questions.kit.distribution import Lettered
from svc.questions.kit.lettering import argmax
from svc.shapes import PROBABILITY, mapping, one_of, record

COLOURS = ("red", "green", "blue")


@dataclass(frozen=True, kw_only=True)
class Colour(Lettered):
    """Which of three colours something has."""

    type = "colour"
    task = "classes"
    guidance = "Pick the colour that fits best."
    label_schema = one_of(COLOURS)
    answer_schema = record(
        {
            "colour": one_of(COLOURS),
            "probabilities": mapping(PROBABILITY),
            "confidence": PROBABILITY,
        }
    )
    names = option_texts = COLOURS
    own_texts = ()

    def plain(self, backwards: bool) -> list[PlainQuestion]:
        options = tuple((colour, "") for colour in COLOURS)
        return [PlainQuestion(CHOICE, self.instructions, options, tuple(range(len(COLOURS))))]

    def answer(self, reading: Reading) -> dict[str, Any]:
        probabilities = self.rounded(reading)
        shares = dict(zip(COLOURS, probabilities, strict=True))
        return {
            "colour": self.top(reading),
            "probabilities": shares,
            **self.certainty(max(probabilities)),
        }

    def definition(self) -> dict[str, Any]:
        return {}

    def truth(self, label: str, answer: Mapping[str, Any]) -> int:
        return COLOURS.index(label)

    def shown(self, fields: Mapping[str, Any]) -> tuple[str, float]:
        return fields["colour"], fields["confidence"]

    def top(self, reading: Reading) -> str:
        return COLOURS[argmax(reading.probabilities)]

    def probability(self, reading: Reading, label: str) -> float:
        return reading.probabilities[COLOURS.index(label)]

    def check_label(self, label: Any) -> str:
        if label not in COLOURS:
            raise ValueError(f"must be one of {', '.join(COLOURS)}")
        return str(label)

    def certain(self, label: str) -> Reading:
        return self.one_hot(COLOURS.index(label))

    def label_text(self, label: str, backwards: bool) -> str:
        return self.letter(COLOURS.index(label), backwards)

    def spoken(self, label: str) -> str:
        return label


class ColourSchema(QuestionSchema):
    model = Colour


@contextmanager
def known() -> Iterator[None]:
    """Have the type among the others for a while."""
    register(ColourSchema())
    try:
        yield
    finally:
        del TYPES[Colour.type]

"""What `text`, `number` and `integer` share: a value read from the input, and its confidence.

They are answered in verbal mode only and have no option order to reverse. A value that is not valid
becomes no answer: null, with a confidence of 0.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from svc.questions.kit import (
    ABSTAIN,
    Examples,
    FlagField,
    Opinions,
    Question,
    QuestionSchema,
    Reading,
    Stated,
    min_confidence_field,
    number_of,
    object_schema,
    probability_schema,
    to_digits,
)
from svc.shapes import PROBABILITY, Json, described, nullable, record
from svc.terms import TaskKind

NO_ANSWER = Reading((0.0,), answered=False)

# What a member of a council said, and its share of the council.
Vote = tuple[Reading, float]


@dataclass(frozen=True, kw_only=True)
class Extraction(Question):
    """A typed value that stands in the input; null only where `nullable`."""

    json_type: ClassVar[str]
    task = TaskKind.RIGHTNESS
    tallies = False
    extracts = True

    nullable: bool = False

    @abstractmethod
    def valid(self, value: Any) -> Any:
        """A value that is not null, as it is answered; `ValueError` says what is allowed."""

    @abstractmethod
    def same(self, value: Any, other: Any) -> bool:
        """Whether two valid values mean the same."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """What a value must be, in words for the model."""

    @property
    def verbal_reason(self) -> str:
        return f"{self.type} questions are answered in verbal mode only"

    @property
    def reply_labels(self) -> int:
        return 2

    def verbal_format(self, backwards: bool) -> str:
        null = ", or null when the input has none" if self.nullable else ""
        return (
            f'an object {{"value": {self.allowed}{null}, '
            '"confidence": the probability from 0 to 1 that the value is right}'
        )

    def verbal_schema(self, backwards: bool, bounded: bool = False) -> Json:
        kind = [self.json_type, "null"] if self.nullable else self.json_type
        value = {"type": kind, **(self.schema_bounds if bounded else {})}
        return object_schema({"value": value, "confidence": probability_schema(bounded)})

    @property
    def schema_bounds(self) -> Json:
        """The limits of a value as a JSON schema has them."""
        return {}

    def stated(self, member: Any, backwards: bool) -> Stated:
        confidence = number_of(member.get("confidence")) if isinstance(member, Mapping) else None
        return Stated({} if confidence is None else {0: confidence}, whole=False)

    def read_stated(self, stated: Stated, member: Any, backwards: bool, scale: float) -> Reading:
        """The value and its confidence; a member that is not valid is no answer, never an error."""
        if not isinstance(member, Mapping):
            return NO_ANSWER
        try:
            value = self.check_label(member.get("value"))
        except ValueError:
            return NO_ANSWER
        return Reading((stated.on(scale).get(0, 0.0),), value=value)

    def merge(self, readings: Sequence[Reading]) -> Reading:
        """The first reading's value, at the mean confidence if all agree, else at the lowest."""
        first = readings[0]
        confidences = [reading.probabilities[0] for reading in readings]
        agree = self.all_agree([reading.value for reading in readings])
        confidence = math.fsum(confidences) / len(readings) if agree else min(confidences)
        return replace(first, probabilities=(confidence,))

    def blend(self, readings: Sequence[Reading]) -> tuple[Reading, float]:
        """The value that most members gave, at the mean of their confidences times their share.

        Members without a valid value have no influence on it, but count in the share.
        """
        return self._elected([(reading, 1 / len(readings)) for reading in readings])

    def weigh(self, readings: Sequence[Reading | None], pool: Opinions) -> tuple[Reading, float]:
        """The value whose members count most, at their weighted confidence."""
        shares = pool.shares([reading is not None for reading in readings])
        rows = zip(readings, shares, strict=True)
        return self._elected([(one, share) for one, share in rows if one is not None])

    def opinion(self, reading: Reading, blended: Reading) -> Sequence[float]:
        """Its confidence in the value that was answered, 0 in one that it did not give."""
        agrees = reading.answered and self.agree(reading.value, blended.value)
        return to_digits(reading.probabilities) if agrees else (0.0,)

    def _elected(self, votes: Sequence[Vote]) -> tuple[Reading, float]:
        sides: list[list[Vote]] = []
        for vote in [one for one in votes if one[0].answered] or votes:
            side = next((s for s in sides if self.agree(s[0][0].value, vote[0].value)), None)
            if side is None:
                sides.append([vote])
            else:
                side.append(vote)
        winner = max(sides, key=_weight)
        confidence = _weight(winner)[1]
        return replace(winner[0][0], probabilities=(confidence,)), len(winner) / len(votes)

    def agree(self, label: Any, other: Any) -> bool:
        if label is None or other is None:
            return label is None and other is None
        return self.same(label, other)

    def confidence(self, reading: Reading) -> float:
        return reading.probabilities[0]

    def answer(self, reading: Reading) -> Mapping[str, Any]:
        return {
            "value": reading.value,
            **self.certainty(self.shown_confidence(reading)),
        }

    def truth(self, label: Any, answer: Mapping[str, Any]) -> int:
        """Whether the value that was returned is the true one."""
        return int(self.agree(label, answer["value"]))

    def shown(self, fields: Mapping[str, Any]) -> tuple[Any, float]:
        return fields["value"], fields["confidence"]

    def top(self, reading: Reading) -> Any:
        return reading.value

    def probability(self, reading: Reading, label: Any) -> float:
        """The probability of the value that was read; nothing is known of any other value."""
        return reading.probabilities[0] if self.agree(label, reading.value) else 0.0

    def check_label(self, label: Any) -> Any:
        if label is None:
            if self.nullable:
                return None
            raise ValueError("must not be null, the question is not nullable")
        return self.valid(label)

    def certain(self, label: Any) -> Reading:
        return Reading((1.0,), value=label)

    def label_text(self, label: Any, backwards: bool) -> str:
        return json.dumps(label, ensure_ascii=False)

    def spoken(self, label: Any) -> str:
        return json.dumps(label, ensure_ascii=False)

    @property
    def own_texts(self) -> list[str]:
        return []


class ExtractionSchema(QuestionSchema):
    nullable = FlagField("Let the value be null when the state has none.")
    min_confidence = min_confidence_field()
    examples = Examples()


def labelled(value: Json) -> Json:
    """The JSON schema of a true value."""
    return described(nullable(value), "The value; null only where the question is `nullable`.")


def answered(value: Json) -> Json:
    """The JSON schema of an answer with a value."""
    about = "Null when the state has none, or the reply had no valid one."
    sure = described(PROBABILITY, "The probability that the value is right.")
    return record({"value": described(nullable(value), about), "confidence": sure}, ABSTAIN)


def _weight(side: Sequence[Vote]) -> tuple[float, float]:
    """What the side counts, and the confidence that it adds to its value."""
    return (
        math.fsum(share for _, share in side),
        math.fsum(share * reading.probabilities[0] for reading, share in side),
    )

"""`choice`: one label from a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marshmallow import ValidationError, validates_schema

from svc import limits
from svc.lazy import lazy
from svc.phrases import listed
from svc.questions.kit import (
    ABSTAIN,
    CHOICE,
    CONFIDENCE,
    OF_OPTIONS,
    SET,
    Descriptions,
    Examples,
    FlagField,
    Lettered,
    PlainQuestion,
    Reading,
    SetsSchema,
    min_confidence_field,
    object_schema,
    one_line,
    option_text,
    probability_schema,
)
from svc.shapes import TEXT, Json, described, record
from svc.terms import TaskKind

ESCAPE = "none_of_these"
ESCAPE_DESCRIPTION = "None of the other options fits"


@dataclass(frozen=True, kw_only=True)
class Choice(Lettered):
    """Which one of `options` fits; with `escape` the answer may be that none does."""

    type = "choice"
    task = TaskKind.CLASSES
    names_options = True
    guidance = "Pick the one option that fits best."
    display = "option"
    usual_instructions = "Which of these fits the input best?"
    label_schema = described(TEXT, "An option key.")
    answer_schema = record(
        {
            "choice": described(TEXT, "An option key, or `none_of_these`."),
            "probabilities": described(OF_OPTIONS, "By option key."),
            "confidence": CONFIDENCE,
        },
        {**ABSTAIN, **SET},
    )

    options: tuple[tuple[str, str], ...]
    escape: bool = True

    @lazy
    def keys(self) -> tuple[str, ...]:
        """The option keys of the answer, the escape option last."""
        keys = tuple(key for key, _ in self.options)
        return (*keys, ESCAPE) if self.escape else keys

    @lazy
    def option_texts(self) -> tuple[str, ...]:
        texts = tuple(option_text(key, description) for key, description in self.options)
        return (*texts, option_text(ESCAPE, ESCAPE_DESCRIPTION)) if self.escape else texts

    @property
    def names(self) -> tuple[str, ...]:
        return self.keys

    @property
    def many(self) -> bool:
        """Whether there are too many options for label probabilities."""
        return len(self.options) > limits.LOGPROBS_OPTIONS

    @property
    def verbal_reason(self) -> str:
        return f"it has over {limits.LOGPROBS_OPTIONS} options" if self.many else ""

    @property
    def reply_labels(self) -> int:
        return limits.VERBAL_TOP_LABELS if self.many else super().reply_labels

    def verbal_format(self, backwards: bool) -> str:
        if not self.many:
            return super().verbal_format(backwards)
        return (
            f"a list of the {limits.VERBAL_TOP_LABELS} most likely labels, most likely first, "
            'each {"label": a label, "probability": a number from 0 to 1}'
        )

    def verbal_schema(self, backwards: bool, bounded: bool = False) -> Json:
        if not self.many:
            return super().verbal_schema(backwards, bounded)
        label: Json = {"enum": list(self.labels)} if bounded else {"type": "string"}
        entry = {"label": label, "probability": probability_schema(bounded)}
        length = {"minItems": 1, "maxItems": limits.VERBAL_TOP_LABELS} if bounded else {}
        return {"type": "array", "items": object_schema(entry), **length}

    def plain(self, backwards: bool) -> list[PlainQuestion]:
        options = [*self.options, *([(ESCAPE, ESCAPE_DESCRIPTION)] if self.escape else [])]
        rows = list(enumerate(options))[:: -1 if backwards else 1]
        positions, shown = zip(*rows, strict=True)
        return [PlainQuestion(CHOICE, self.instructions, shown, positions)]

    def answer(self, reading: Reading) -> Mapping[str, Any]:
        probabilities = self.rounded(reading)
        return {
            "choice": self.top(reading),
            "probabilities": dict(zip(self.keys, probabilities, strict=True)),
            **self.certainty(max(probabilities)),
        }

    def definition(self) -> Mapping[str, Any]:
        return {"options": dict(self.options), "escape": self.escape}

    @property
    def option_names(self) -> list[str]:
        """As `in_definition_order` has their probabilities."""
        return [*sorted(key for key, _ in self.options), *self.keys[len(self.options) :]]

    def in_definition_order(self, probabilities: Sequence[float]) -> Sequence[float]:
        """The probabilities sorted by option, with the escape option last."""
        return [probabilities[place] for place in self.defined_places]

    @lazy
    def defined_places(self) -> tuple[int, ...]:
        own = len(self.options)
        by_option = sorted(range(own), key=self.options.__getitem__)
        return (*by_option, *range(own, len(self.keys)))

    def truth(self, label: str, answer: Mapping[str, Any]) -> int:
        return self.option_names.index(label)

    def candidates(self, reading: Reading) -> list[tuple[str, float]]:
        return list(zip(self.keys, reading.probabilities, strict=True))

    def shown(self, fields: Mapping[str, Any]) -> tuple[str, float]:
        return fields["choice"], fields["confidence"]

    def top(self, reading: Reading) -> str:
        return self.keys[self.best(reading)]

    def probability(self, reading: Reading, label: str) -> float:
        return reading.probabilities[self.keys.index(label)]

    def check_label(self, label: Any) -> str:
        if not isinstance(label, str) or label not in self.keys:
            raise ValueError(f"must be one of the option keys: {listed(self.keys)}")
        return label

    def certain(self, label: str) -> Reading:
        return self.one_hot(self.keys.index(label))

    def label_text(self, label: str, backwards: bool) -> str:
        return self.letter(self.keys.index(label), backwards)

    def spoken(self, label: str) -> str:
        return one_line(label)

    @property
    def own_texts(self) -> list[str]:
        return [text for pair in self.options for text in pair]


class ChoiceSchema(SetsSchema):
    model = Choice
    options = Descriptions(
        limits.CHOICE_OPTIONS,
        required=True,
        description=(
            "Option key to description, which may be empty; the key `none_of_these` is reserved "
            f"while `escape` is true. Over {limits.LOGPROBS_OPTIONS} options are asked in verbal "
            "mode."
        ),
    )
    escape = FlagField("Add the option `none_of_these`.")
    min_confidence = min_confidence_field()
    examples = Examples()

    @validates_schema
    def _escape_is_reserved(self, data: Mapping[str, Any], **_: Any) -> None:
        if data.get("escape", True) and ESCAPE in dict(data.get("options", ())):
            raise ValidationError(f'"{ESCAPE}" is reserved while escape is true', "options")

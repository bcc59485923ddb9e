"""`multi`: any subset of labels, each decided on its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from svc import limits
from svc.phrases import listed
from svc.questions.kit import (
    COVERAGE,
    DECIMALS,
    OF_OPTIONS,
    RULED,
    Descriptions,
    LabelLine,
    LabelQuestion,
    NumberField,
    PlainQuestion,
    QuestionSchema,
    Reading,
    Stated,
    Unreadable,
    complete,
    coverage_field,
    lettered,
    letters,
    one_line,
    option_text,
    probabilities_schema,
    stated,
)
from svc.questions.kit import YES_NO as PLAIN_YES_NO
from svc.questions.noul import YES_NO
from svc.shapes import TEXT, Json, array, described, record
from svc.terms import TaskKind

DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True, kw_only=True)
class Multi(LabelQuestion):
    """Which of `options` apply; those with P >= `threshold` are selected."""

    type = "multi"
    task = TaskKind.RIGHTNESS
    calibrates = False
    guidance = "Decide for each option on its own whether it applies."
    display = "options"
    usual_instructions = "Which of these apply to the input?"
    label_schema = described(array(TEXT), "The option keys that apply.")
    answer_schema = record(
        {
            "selected": described(array(TEXT), "The option keys that apply."),
            "probabilities": described(OF_OPTIONS, "By option key, each on its own."),
        },
        {**RULED, **COVERAGE},
    )

    options: tuple[tuple[str, str], ...]
    threshold: float = DEFAULT_THRESHOLD

    @property
    def labels(self) -> tuple[str, ...]:
        return letters(len(self.options))

    def option_lines(self, backwards: bool) -> list[str]:
        return lettered([option_text(*option) for option in self.options], backwards)

    def option_lines_of(self, position: int, backwards: bool) -> list[str]:
        return [self.option_lines(backwards)[position]]

    def reply_lines(self, backwards: bool) -> list[tuple[str, tuple[str, ...]]]:
        return [(f"option {label}", YES_NO) for label in self.labels]

    def verbal_format(self, backwards: bool) -> str:
        return (
            f"an object with, for each of {', '.join(self.labels)}, "
            "the probability from 0 to 1 that the option applies"
        )

    def verbal_schema(self, backwards: bool, bounded: bool = False) -> Json:
        return probabilities_schema(self.labels, bounded)

    def plain(self, backwards: bool) -> list[PlainQuestion]:
        """A yes/no question for each option."""
        return [
            PlainQuestion(
                PLAIN_YES_NO,
                f"{self.instructions}\nDoes this option apply? {option_text(*option)}",
            )
            for option in self.options
        ]

    def read_lines(self, lines: Sequence[LabelLine], backwards: bool) -> Reading:
        pairs = [complete(line.probabilities, len(YES_NO), bound=line.bound) for line in lines]
        if any(pair is None for pair in pairs):
            raise Unreadable("an option has neither yes nor no")
        yes = tuple(pair[0] for pair in pairs if pair)
        masses = [line.mass for line in lines if line.mass is not None]
        return Reading(yes[::-1] if backwards else yes, min(masses, default=None))

    def stated(self, member: Any, backwards: bool) -> Stated:
        names = tuple(key for key, _ in self.options)
        shown = names[::-1] if backwards else names
        # That an option is named does not say how probable it is.
        return replace(stated(member, self.labels, shown, whole=False), bare=())

    def read_stated(self, stated: Stated, member: Any, backwards: bool, scale: float) -> Reading:
        probabilities = stated.on(scale)
        if not probabilities:
            raise Unreadable("no probability for any of the options")
        # A model leaves out the options that it thinks do not apply.
        yes = tuple(probabilities.get(index, 0.0) for index in range(len(self.options)))
        return Reading(yes[::-1] if backwards else yes)

    def confidence(self, reading: Reading) -> float:
        """The probability of the selected set; with another `threshold` it is another set."""
        return self.probability(reading, self.top(reading))

    def answer(self, reading: Reading) -> Mapping[str, Any]:
        rounded = [round(p, DECIMALS) for p in reading.probabilities]
        return {
            "selected": list(self.top(reading)),
            "probabilities": dict(zip(self.keys, rounded, strict=True)),
        }

    def definition(self) -> Mapping[str, Any]:
        return {"options": dict(self.options)}

    def in_definition_order(self, probabilities: Sequence[float]) -> Sequence[float]:
        return [p for _, p in sorted(zip(self.options, probabilities, strict=True))]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key, _ in self.options)

    def evidence(
        self, p: Sequence[float], answer: Mapping[str, Any] | None = None
    ) -> Sequence[float]:
        """The confidence in the whole selected set, as a label is about the set as a whole."""
        by_key = dict(zip(sorted(self.keys), p, strict=True))
        if answer is None:
            selected = [key for key, one in by_key.items() if one >= DEFAULT_THRESHOLD]
        else:
            selected = answer["selected"]
        return [_of_set(by_key, selected)]

    def named(self, label: tuple[str, ...]) -> str:
        """The keys in sorted order: the order of options is no part of the exact question."""
        return json.dumps(sorted(label), ensure_ascii=False)

    def truth(self, label: tuple[str, ...], answer: Mapping[str, Any]) -> int:
        return int(set(label) == set(answer["selected"]))

    def shown(self, fields: Mapping[str, Any]) -> tuple[tuple[str, ...], float]:
        selected = tuple(fields["selected"])
        return selected, _of_set(fields["probabilities"], selected)

    def top(self, reading: Reading) -> tuple[str, ...]:
        rows = zip(self.keys, reading.probabilities, strict=True)
        return tuple(key for key, p in rows if round(p, DECIMALS) >= self.threshold)

    def probability(self, reading: Reading, label: tuple[str, ...]) -> float:
        return _of_set(dict(zip(self.keys, reading.probabilities, strict=True)), label)

    def check_label(self, label: Any) -> tuple[str, ...]:
        """The keys in the question's order, however they were given."""
        keys = frozenset(self.keys)
        if not isinstance(label, list) or not all(
            isinstance(key, str) and key in keys for key in label
        ):
            raise ValueError(f"must be a list of option keys: {listed(self.keys)}")
        given = frozenset(label)
        return tuple(key for key in self.keys if key in given)

    def certain(self, label: tuple[str, ...]) -> Reading:
        return Reading(tuple(float(key in label) for key in self.keys))

    def label_text(self, label: tuple[str, ...], backwards: bool) -> str:
        return self.spoken(label)

    def spoken(self, label: tuple[str, ...]) -> str:
        return ", ".join(map(one_line, label)) or "none of them"

    @property
    def own_texts(self) -> list[str]:
        return [text for pair in self.options for text in pair]


def _of_set(probabilities: Mapping[str, float], selected: Sequence[str]) -> float:
    """The probability of the least probable option, as it is selected or left out."""
    return min(p if key in selected else 1 - p for key, p in probabilities.items())


class MultiSchema(QuestionSchema):
    model = Multi
    options = Descriptions(
        limits.MULTI_OPTIONS,
        required=True,
        description="Option key to description, which may be empty; each is a yes or no.",
    )
    threshold = NumberField(
        0, 1, description="Options with at least this probability are selected."
    )
    coverage = coverage_field(
        "Accepted and echoed, with `guaranteed: false`: feedback labels a multi as a whole."
    )

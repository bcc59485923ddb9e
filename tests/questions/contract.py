"""What every question type must do; a type's test inherits it and names a few examples."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import pytest
from marshmallow import ValidationError

from svc.questions import TYPES, Question, Reading, Unreadable

BOTH_ORDERS = pytest.mark.parametrize("backwards", [False, True], ids=["original", "reversed"])


class QuestionContract:
    """Inherit, and set the class attributes."""

    body: ClassVar[dict[str, Any]]  # a complete question of the type
    twin: ClassVar[dict[str, Any]]  # the same exact question, written differently
    others: ClassVar[list[dict[str, Any]]]  # bodies of different exact questions
    reading: ClassVar[Reading]  # a reading of `body`
    answer: ClassVar[dict[str, Any]]  # what that reading is answered as
    text_limit_parts: ClassVar[int]  # how many texts count towards the request's limit

    @property
    def question(self) -> Question:
        return load(self.body)

    def test_its_body_loads_as_its_type(self) -> None:
        assert self.question.type == self.body["type"]

    def test_an_unknown_field_is_refused_by_name(self) -> None:
        with pytest.raises(ValidationError) as refusal:
            load({**self.body, "min_confidense": 0.5})
        assert refusal.value.messages == {"min_confidense": ["unknown field"]}

    @pytest.mark.parametrize("instructions", ["", " \n", None, 5, ["x"]])
    def test_instructions_must_be_text(self, instructions: Any) -> None:
        with pytest.raises(ValidationError) as refusal:
            load({**self.body, "instructions": instructions})
        assert "instructions" in refusal.value.messages

    def test_instructions_are_required(self) -> None:
        with pytest.raises(ValidationError):
            load({key: value for key, value in self.body.items() if key != "instructions"})

    @BOTH_ORDERS
    def test_a_sure_reply_reads_alike_in_both_orders(self, backwards: bool) -> None:
        shown = [self.sure_line(labels, backwards) for _, labels in self.lines(backwards)]
        reading = self.question.read_lines(shown, backwards)
        expected = self.question.read_lines(
            [self.sure_line(labels, False) for _, labels in self.lines(False)], False
        )
        assert reading.probabilities == pytest.approx(expected.probabilities)

    def lines(self, backwards: bool) -> list[tuple[str, tuple[str, ...]]]:
        return self.question.reply_lines(backwards)

    def sure_line(self, labels: tuple[str, ...], backwards: bool) -> dict[int, float]:
        """A model that is sure of the first label of the original order."""
        first = len(labels) - 1 if backwards else 0
        return {i: 0.9 if i == first else 0.1 / (len(labels) - 1) for i in range(len(labels))}

    @BOTH_ORDERS
    def test_its_json_schema_is_in_the_strictest_dialect(self, backwards: bool) -> None:
        assert_strict(self.question.verbal_schema(backwards))

    @BOTH_ORDERS
    @pytest.mark.parametrize(
        "member", [None, True, 7, "A", [], {}, {"A": "high"}, {"zebra": 1}, {"A": None}, [[1]]]
    )
    def test_a_reply_without_a_usable_answer_is_unreadable(
        self, member: Any, backwards: bool
    ) -> None:
        with pytest.raises(Unreadable):
            self.question.read_member(member, backwards)

    @pytest.mark.parametrize("value", [-1, 7, 10**400, float("nan"), float("inf"), True, 1e308])
    def test_odd_numbers_never_leave_the_range_of_probabilities(self, value: Any) -> None:
        labels = self.lines(False)[0][1]
        try:
            reading = self.question.read_member(dict.fromkeys([*labels, "A"], value), False)
        except Unreadable:
            return
        assert_probabilities(reading.probabilities)

    def test_merging_a_reading_with_itself_changes_nothing(self) -> None:
        merged = self.question.merge([self.reading, self.reading])
        assert merged.probabilities == pytest.approx(self.reading.probabilities)

    def test_merging_is_the_mean_and_keeps_the_smallest_mass(self) -> None:
        other = Reading(self.reading.probabilities[::-1], mass=0.25)
        merged = self.question.merge([Reading(self.reading.probabilities, mass=0.75), other])
        pairs = zip(self.reading.probabilities, other.probabilities, strict=True)
        assert merged.probabilities == pytest.approx([(a + b) / 2 for a, b in pairs])
        assert merged.mass == 0.25

    def test_its_reading_is_answered(self) -> None:
        assert self.question.answer(self.reading) == self.answer

    def test_its_answer_is_json(self) -> None:
        assert json.loads(json.dumps(self.question.answer(self.reading))) == self.answer

    def test_its_confidence_is_a_probability(self) -> None:
        assert 0.0 <= self.question.confidence(self.reading) <= 1.0

    def test_the_exact_question_does_not_depend_on_how_it_is_written(self) -> None:
        assert load(self.twin).digest == self.question.digest

    def test_another_wording_is_another_question(self) -> None:
        digests = {load(body).digest for body in [self.body, *self.others]}
        assert len(digests) == 1 + len(self.others)
        reworded = load({**self.body, "instructions": "Something else?"})
        assert reworded.digest not in digests

    def test_its_definition_loads_as_the_same_question(self) -> None:
        assert load(json.loads(self.question.definition_json)).digest == self.question.digest

    def test_what_is_stored_fits_the_definition(self) -> None:
        stored = self.question.stored(self.reading)
        restored = load(json.loads(self.question.definition_json))
        again = restored.answer(Reading(tuple(stored)))
        assert again.get("probabilities", again.get("noul")) == (
            self.answer.get("probabilities", self.answer.get("noul"))
        )

    def test_all_of_its_texts_count_towards_the_limit(self) -> None:
        assert len(self.question.texts) == self.text_limit_parts
        assert self.body["instructions"] in self.question.texts


def load(body: dict[str, Any]) -> Question:
    return TYPES[body["type"]].load(body)


def assert_probabilities(numbers: Any) -> None:
    assert all(0.0 <= p <= 1.0 and math.isfinite(p) for p in numbers)


def assert_strict(schema: dict[str, Any]) -> None:
    """Every object closed with every property required; no limits a strict dialect refuses."""
    assert set(schema) <= {"type", "properties", "required", "additionalProperties", "items"}
    if schema["type"] == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        for inner in schema["properties"].values():
            assert_strict(inner)
    if schema["type"] == "array":
        assert_strict(schema["items"])

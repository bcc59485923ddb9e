"""What every question type must do; a type's test inherits it and names a few examples."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import pytest
from marshmallow import ValidationError

from svc.questions import TYPES, LabelLine, Question, Reading, Unreadable
from svc.questions.kit.base import GRID, Example
from svc.questions.kit.verbal import BOTH, PERCENT, SHARES
from svc.stats.opinions import OpinionPool, equal

BOTH_ORDERS = pytest.mark.parametrize("backwards", [False, True], ids=["original", "reversed"])


class TypeContract:
    """What holds for every type; inherit one of the two below, and set the class attributes."""

    body: ClassVar[dict[str, Any]]  # a complete question of the type
    twin: ClassVar[dict[str, Any]]  # the same exact question, written differently
    others: ClassVar[list[dict[str, Any]]]  # bodies of different exact questions
    reading: ClassVar[Reading]  # a reading of `body`
    answer: ClassVar[dict[str, Any]]  # what that reading is answered as
    text_limit_parts: ClassVar[int]  # how many texts count towards the request's limit
    bounds: ClassVar[dict[str, Any]] = {}  # of a value, where a schema may have any

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
    def test_its_json_schema_is_in_the_strictest_dialect(self, backwards: bool) -> None:
        assert_strict(self.question.verbal_schema(backwards))

    @BOTH_ORDERS
    def test_its_bounded_schema_is_the_same_with_probabilities_of_a_grid(
        self, backwards: bool
    ) -> None:
        strict, bounded = (self.question.verbal_schema(backwards, b) for b in (False, True))
        assert set(strict["properties"]) == set(bounded["properties"])
        for name, schema in strict["properties"].items():
            expected = {**schema, **self.bounds} if name == "value" else dict(GRID)
            assert bounded["properties"][name] == expected

    @BOTH_ORDERS
    def test_each_line_of_a_reply_is_about_lines_of_its_options(self, backwards: bool) -> None:
        shown = self.question.option_lines(backwards)
        for position, _ in enumerate(self.question.reply_lines(backwards)):
            about = self.question.option_lines_of(position, backwards)
            assert about in (shown, shown[position : position + 1])

    def test_merging_a_reading_with_itself_changes_nothing(self) -> None:
        merged = self.question.merge([self.reading, self.reading])
        assert merged.probabilities == pytest.approx(self.reading.probabilities)

    def test_its_reading_is_answered(self) -> None:
        assert self.question.answer(self.reading) == self.answer

    def test_its_answer_is_json(self) -> None:
        assert json.loads(json.dumps(self.question.answer(self.reading))) == self.answer

    def test_its_answer_shows_its_label_and_its_confidence(self) -> None:
        label, confidence = self.question.shown(self.question.answer(self.reading))
        assert self.question.named(label) == self.question.named(self.question.top(self.reading))
        assert confidence == pytest.approx(self.question.confidence(self.reading), abs=1e-6)

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

    def test_all_of_its_texts_count_towards_the_limit(self) -> None:
        assert len(self.question.texts) == self.text_limit_parts
        assert self.body["instructions"] in self.question.texts

    # --- labels: what a right answer is ---

    @property
    def label(self) -> Any:
        """A checked label: what `reading` is answered as."""
        return self.question.top(self.reading)

    def as_json(self) -> Any:
        """The label as a caller writes it."""
        return list(self.label) if isinstance(self.label, tuple) else self.label

    def replied(self, text: str, backwards: bool) -> Reading:
        """The reading of a model that replies the text of a label and is sure."""
        raise NotImplementedError

    def test_a_label_is_kept_as_the_answer_it_names(self) -> None:
        assert self.question.check_label(self.as_json()) == self.label

    @pytest.mark.parametrize("label", [{"no": "label"}, [["a"]], [None], {}])
    def test_what_can_be_no_answer_is_no_label(self, label: Any) -> None:
        with pytest.raises(ValueError, match="must"):
            self.question.check_label(label)

    def test_a_certain_reading_is_of_that_label_alone(self) -> None:
        certain = self.question.certain(self.label)
        assert self.question.top(certain) == self.label
        assert self.question.probability(certain, self.label) == 1.0
        assert self.question.confidence(certain) == 1.0

    def test_the_probability_of_the_top_answer_is_the_confidence(self) -> None:
        probability = self.question.probability(self.reading, self.label)
        assert probability == pytest.approx(self.question.confidence(self.reading))

    def test_a_council_of_one_is_the_one(self) -> None:
        blend, agreement = self.question.blend([self.reading])
        assert blend.probabilities == pytest.approx(self.reading.probabilities)
        assert (blend.value, agreement) == (self.reading.value, 1.0)

    def test_a_council_of_equal_weights_is_the_one_without_labels(self) -> None:
        if not self.question.calibrates:
            return
        readings = [self.reading, self.reading]
        weighed, agreement = self.question.weigh([*readings, None], equal(3))
        assert agreement == 1.0
        assert weighed.value == self.reading.value
        blend, _ = self.question.blend(readings)
        assert weighed.probabilities == pytest.approx(blend.probabilities, abs=1e-6)
        kept = self.question.opinion(self.reading, weighed)
        assert kept == pytest.approx(self.question.stored(self.reading)["p"])

    def test_a_label_is_spoken_on_one_line(self) -> None:
        spoken = self.question.spoken(self.label)
        assert spoken.strip() and "\n" not in spoken

    @BOTH_ORDERS
    def test_an_example_shows_the_reply_that_reads_as_its_label(self, backwards: bool) -> None:
        if "examples" not in TYPES[self.body["type"]].fields:
            return
        example = {"state": {"a": 1}, "label": self.as_json()}
        (kept,) = load({**self.body, "examples": [example]}).examples
        assert kept == Example('{"a":1}', self.label)
        text = self.question.label_text(kept.label, backwards)
        assert self.question.top(self.replied(text, backwards)) == self.label

    def test_a_wrong_label_of_an_example_is_refused_with_its_number(self) -> None:
        if "examples" not in TYPES[self.body["type"]].fields:
            return
        good = {"state": "s", "label": self.as_json()}
        with pytest.raises(ValidationError) as refusal:
            load({**self.body, "examples": [good, {"state": "s", "label": {"no": "label"}}]})
        assert refusal.value.messages["examples"][0].startswith("example 1: label must")

    def test_a_rule_keeps_its_answer_as_a_label(self) -> None:
        rules = [{"if": {"a": 1}, "answer": self.as_json()}]
        assert load({**self.body, "rules": rules}).rules[0].answer == self.label

    def test_a_wrong_answer_of_a_rule_is_refused_with_its_number(self) -> None:
        rules = [{"if": {"a": 1}, "answer": self.as_json()}, {"if": {}, "answer": {"no": "label"}}]
        with pytest.raises(ValidationError) as refusal:
            load({**self.body, "rules": rules})
        assert refusal.value.messages["rules"][0].startswith("rule 1: answer must")


class QuestionContract(TypeContract):
    """What holds for questions that are answered by labels."""

    bare: ClassVar[list[Any]]  # members that name a label without a probability

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

    def sure_line(self, labels: tuple[str, ...], backwards: bool) -> LabelLine:
        """A model that is sure of the first label of the original order."""
        first = len(labels) - 1 if backwards else 0
        return line({i: 0.9 if i == first else 0.1 / (len(labels) - 1) for i in range(len(labels))})

    @BOTH_ORDERS
    def test_the_mass_of_its_lines_is_kept(self, backwards: bool) -> None:
        shown = [self.sure_line(labels, backwards) for _, labels in self.lines(backwards)]
        assert self.question.read_lines(shown, backwards).mass == pytest.approx(1.0)
        unknown = [LabelLine(one.probabilities) for one in shown]
        assert self.question.read_lines(unknown, backwards).mass is None

    @BOTH_ORDERS
    def test_a_line_on_which_nothing_was_seen_is_unreadable(self, backwards: bool) -> None:
        with pytest.raises(Unreadable):
            self.question.read_lines([LabelLine({}) for _ in self.lines(backwards)], backwards)

    @BOTH_ORDERS
    def test_a_decision_server_is_asked_one_plain_question_for_each_line(
        self, backwards: bool
    ) -> None:
        plain = self.question.plain(backwards)
        assert len(plain) == len(self.lines(backwards))
        lines = []
        for one in plain:
            positions = one.positions or (0, 1)
            assert sorted(positions) == list(range(len(positions)))
            assert len(one.options) == len(one.positions)
            lines.append(line({at: 0.9 if at == 0 else 0.01 for at in positions}))
        sure = self.question.read_lines(lines, backwards=False)
        certain = [
            line({0: 0.9, **dict.fromkeys(range(1, len(one[1])), 0.01)})
            for one in self.lines(False)
        ]
        assert sure == self.question.read_lines(certain, backwards=False)

    @BOTH_ORDERS
    @pytest.mark.parametrize(
        "member",
        [
            None,
            "zebra",
            "",
            [],
            {},
            {"A": "high"},
            {"zebra": 1},
            {"B": [1]},
            [[1]],
            ["zebra"],
            [{}],
        ],
    )
    def test_a_reply_without_a_usable_answer_is_unreadable(
        self, member: Any, backwards: bool
    ) -> None:
        with pytest.raises(Unreadable):
            self.question.read_member(member, backwards)

    @BOTH_ORDERS
    @pytest.mark.parametrize("member", [True, False, 7, 0.7, "A", "no", "none", ["B"], {"A": None}])
    def test_a_member_without_a_probability_is_read_only_where_it_names_a_label(
        self, member: Any, backwards: bool
    ) -> None:
        if member in self.bare:
            assert_probabilities(self.question.read_member(member, backwards).probabilities)
            return
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

    def test_merging_is_the_mean_and_keeps_the_smallest_mass(self) -> None:
        other = Reading(self.reading.probabilities[::-1], mass=0.25)
        merged = self.question.merge([Reading(self.reading.probabilities, mass=0.75), other])
        pairs = zip(self.reading.probabilities, other.probabilities, strict=True)
        assert merged.probabilities == pytest.approx([(a + b) / 2 for a, b in pairs])
        assert merged.mass == 0.25

    def test_what_is_stored_fits_the_definition(self) -> None:
        stored = self.question.stored(self.reading)
        restored = load(json.loads(self.question.definition_json))
        again = restored.answer(Reading(tuple(stored["p"])))
        assert again.get("probabilities", again.get("noul")) == (
            self.answer.get("probabilities", self.answer.get("noul"))
        )

    def replied(self, text: str, backwards: bool) -> Reading:
        (labels,) = [labels for _, labels in self.lines(backwards)]
        return self.question.read_lines([line({labels.index(text): 1.0})], backwards)


class ExtractionContract(TypeContract):
    """What holds for values read from the input; `valid` and `invalid` are replies' values."""

    valid: ClassVar[list[Any]]
    invalid: ClassVar[list[Any]]

    def replied(self, text: str, backwards: bool) -> Reading:
        member = {"value": json.loads(text), "confidence": 1.0}
        return self.question.read_member(member, backwards)

    def test_a_valid_value_is_read_with_its_confidence(self) -> None:
        for value in self.valid:
            reading = self.question.read_member({"value": value, "confidence": 0.75}, False)
            assert (reading.value, reading.probabilities) == (value, (0.75,))

    def test_a_value_that_is_not_valid_is_no_answer(self) -> None:
        for value in self.invalid:
            reading = self.question.read_member({"value": value, "confidence": 0.9}, False)
            assert (reading.value, reading.probabilities) == (None, (0.0,)), value

    @pytest.mark.parametrize("member", [None, True, 7, "A", [], {}, {"confidence": 1}, [[1]]])
    def test_a_reply_without_a_value_is_no_answer(self, member: Any) -> None:
        assert self.question.read_member(member, False) == Reading((0.0,), answered=False)

    @pytest.mark.parametrize(
        ("confidence", "kept"),
        [(-1, 0.0), (None, 0.0), ("high", 0.0), (True, 0.0), (float("nan"), 0.0)],
    )
    def test_an_odd_confidence_never_leaves_the_range(self, confidence: Any, kept: float) -> None:
        member = {"value": self.valid[0], "confidence": confidence}
        assert self.question.read_member(member, False).probabilities == (kept,)

    @pytest.mark.parametrize(
        ("confidence", "scales"),
        [
            (0.75, {SHARES}),
            (1, {SHARES}),
            (0, BOTH),
            (75, {PERCENT}),
            ("75%", {SHARES}),
            (7, {PERCENT}),
            (700, set()),
            (None, BOTH),
            ("high", BOTH),
        ],
    )
    def test_its_confidence_tells_the_scale_of_a_reply(
        self, confidence: Any, scales: set[float]
    ) -> None:
        member = {"value": self.valid[0], "confidence": confidence}
        assert self.question.stated(member, False).scales == scales

    def test_a_confidence_in_per_cent_is_read_as_a_share(self) -> None:
        member = {"value": self.valid[0], "confidence": 75}
        assert self.question.read_member(member, False, PERCENT).probabilities == (0.75,)

    def test_no_decision_server_can_answer_it(self) -> None:
        assert self.question.plain(False) == self.question.plain(True) == []

    def test_null_is_an_answer_only_where_it_is_allowed(self) -> None:
        null = {"value": None, "confidence": 0.8}
        nullable = load({**self.body, "nullable": True})
        assert nullable.read_member(null, False) == Reading((0.8,))
        assert self.question.read_member(null, False) == Reading((0.0,), answered=False)
        assert nullable.check_label(None) is None
        with pytest.raises(ValueError, match="not nullable"):
            self.question.check_label(None)

    def test_a_nullable_value_is_said_to_be_so_in_words_and_schema(self) -> None:
        nullable = load({**self.body, "nullable": True})
        assert "or null" in nullable.verbal_format(False)
        assert "null" in nullable.verbal_schema(False)["properties"]["value"]["type"]
        assert "null" not in self.question.verbal_format(False)
        assert isinstance(self.question.verbal_schema(False)["properties"]["value"]["type"], str)

    def test_null_is_another_answer_than_every_value(self) -> None:
        question = load({**self.body, "nullable": True})
        assert question.probability(Reading((0.9,)), self.valid[0]) == 0.0
        assert question.probability(Reading((0.9,), value=self.valid[0]), None) == 0.0
        assert question.probability(Reading((0.9,)), None) == 0.9

    def test_orders_that_agree_are_averaged(self) -> None:
        value = self.valid[0]
        merged = self.question.merge([Reading((0.9,), value=value), Reading((0.5,), value=value)])
        assert (merged.value, merged.probabilities) == (value, pytest.approx((0.7,)))

    def test_orders_that_disagree_keep_the_first_value_at_the_lower_confidence(self) -> None:
        first, second = self.valid[:2]
        for one, two in [(0.9, 0.3), (0.3, 0.9)]:
            readings = [Reading((one,), value=first), Reading((two,), value=second)]
            assert self.question.merge(readings) == Reading((0.3,), value=first)

    def test_a_council_takes_the_majority_at_its_mean_times_its_share(self) -> None:
        first, second = self.valid[:2]
        readings = [
            Reading((0.9,), value=second),
            Reading((0.8,), value=first),
            Reading((0.4,), value=first),
        ]
        blend, agreement = self.question.blend(readings)
        assert (blend.value, agreement) == (first, pytest.approx(2 / 3))
        assert blend.probabilities == pytest.approx((0.6 * 2 / 3,))

    def test_a_council_takes_the_value_whose_members_count_most(self) -> None:
        first, second = self.valid[:2]
        readings = [
            Reading((0.9,), value=second),
            Reading((0.8,), value=first),
            None,
            Reading((0.0,), answered=False),
            Reading((0.4,), value=first),
        ]
        pool = OpinionPool("arithmetic", (0.5, 0.1, 0.2, 0.1, 0.1))
        weighed, agreement = self.question.weigh(readings, pool)
        assert (weighed.value, agreement) == (second, 0.25)
        assert weighed.probabilities == pytest.approx((0.9 * 0.5 / 0.8,))
        kept = [self.question.opinion(one, weighed) for one in readings if one is not None]
        assert kept == [(0.9,), (0.0,), (0.0,), (0.0,)]

    def test_a_tied_council_takes_the_more_confident_side(self) -> None:
        first, second = self.valid[:2]
        readings = [Reading((0.6,), value=first), Reading((0.9,), value=second)]
        for order in (readings, readings[::-1]):
            blend, agreement = self.question.blend(order)
            assert (blend.value, agreement) == (second, 0.5)
            assert blend.probabilities == pytest.approx((0.45,))

    def test_below_its_threshold_it_abstains(self) -> None:
        question = load({**self.body, "min_confidence": 0.8})
        assert question.answer(Reading((0.79,), value=self.valid[0]))["abstain"] is True
        assert question.answer(Reading((0.8,), value=self.valid[0]))["abstain"] is False
        assert "abstain" not in self.question.answer(self.reading)

    def test_it_has_no_order_to_reverse_and_is_asked_verbally(self) -> None:
        assert not self.question.reversible
        assert "verbal mode only" in self.question.verbal_reason
        assert self.question.option_lines(False) == []

    @pytest.mark.parametrize("field", ["coverage", "options", "threshold", "escape"])
    def test_fields_of_other_types_are_unknown(self, field: str) -> None:
        with pytest.raises(ValidationError, match="unknown field"):
            load({**self.body, field: 0.5})


def line(seen: dict[int, float], bound: float = 1.0) -> LabelLine:
    """The probabilities of one label as a reply shows them."""
    return LabelLine(seen, bound, math.fsum(seen.values()))


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

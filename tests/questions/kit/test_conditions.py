from __future__ import annotations

from typing import Any

import pytest
from marshmallow import ValidationError

from svc import limits
from svc.jsontext import Literal
from svc.questions import Question
from svc.questions.kit.conditions import Condition, ConditionValues, check_search, equal, searches
from tests.questions.contract import load

NOUL: dict[str, Any] = {"type": "noul", "instructions": "Is it so?"}


def ruled(condition: Any, field: str = "x") -> Question:
    return load({**NOUL, "rules": [{"if": {field: condition}, "answer": True}]})


def holds(condition: Any, **values: Any) -> bool:
    return ruled(condition).rules[0].holds(ConditionValues(values))


def refusal(**fields: Any) -> str:
    with pytest.raises(ValidationError) as error:
        load({**NOUL, **fields})
    (message,) = next(iter(error.value.messages.values()))
    return str(message)


@pytest.mark.parametrize(
    ("condition", "matching", "other"),
    [
        ("gold", "gold", "Gold"),
        (1, 1.0, True),
        (True, True, 1),
        (0, 0, False),
        (None, None, 0),
        (["a", 2], 2, ["a", 2]),
        ([["a", 2]], ["a", 2], "a"),
        ([{"k": 1}], {"k": 1.0}, {"k": True}),
        ({"contains": "REF"}, "my refund", "my money"),
        ({"contains": "straße"}, "STRASSE 5", "Gasse"),
        ({"contains": "Refund"}, ["refund", "delay"], ["refunds"]),
        ({"starts_with": "Re"}, "Refund", "refund"),
        ({"gt": 3}, 3.5, 3),
        ({"gte": 3}, 3, 2.9),
        ({"lt": 3}, -1, 3),
        ({"lte": 3}, 3.0, 3.1),
        ({"gt": 3}, Literal("3." + "0" * 30 + "1e9"), "4"),
        ({"gt": 3}, 10**400, True),
        (Literal("1.7976931348623157e308"), Literal("1.7976931348623157E+308"), 1.5e308),
        (Literal("1.000000000000000e+70"), 1e70, "1e70"),
        (Literal("1e400"), Literal("10e399"), Literal("1e-400")),
        (Literal("1e9" + "9" * 20), Literal("1e9" + "9" * 20), Literal("1E9" + "9" * 20)),
        ({"lt": Literal("0.69999999999999996")}, 0.5, 0.7),
        ({"exists": True}, None, ...),
        ({"exists": False}, ..., 0),
    ],
)
def test_a_condition_holds_for_what_it_says_alone(
    condition: Any, matching: Any, other: Any
) -> None:
    for value, expected in [(matching, True), (other, False)]:
        values = {} if value is ... else {"x": value}
        assert holds(condition, **values) is expected, value


@pytest.mark.parametrize(
    "condition",
    [None, ["a"], {"contains": ""}, {"starts_with": ""}, {"gt": -1e300}, {"lte": 1e300}],
)
def test_a_field_that_is_missing_matches_nothing(condition: Any) -> None:
    assert not holds(condition)


@pytest.mark.parametrize("value", [5, None, True, {"a": "x"}, [5, None]])
def test_text_operators_never_match_what_is_no_text(value: Any) -> None:
    assert not holds({"contains": ""}, x=value) or value == ""
    assert not holds({"starts_with": ""}, x=value)


@pytest.mark.parametrize("value", ["5", None, True, [5], {}])
def test_number_operators_never_match_what_is_no_number(value: Any) -> None:
    for operator in ("gt", "gte", "lt", "lte"):
        assert not holds({operator: 0}, x=value)
        assert not holds({operator: 9}, x=value)


def test_all_conditions_of_a_rule_must_hold() -> None:
    rules = [{"if": {"x": 1, "y": {"gt": 2}}, "answer": True}]
    (rule,) = load({**NOUL, "rules": rules}).rules
    assert rule.holds(ConditionValues({"x": 1, "y": 3}))
    assert not rule.holds(ConditionValues({"x": 1, "y": 2}))
    assert not rule.holds(ConditionValues({"x": 1}))


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ({"like": "a"}, 'unknown operator "like"; allowed: contains, starts_with, gt, gte, lt'),
        ({}, "exactly one operator"),
        ({"gt": 1, "lt": 2}, "exactly one operator"),
        ({"gt": "1"}, "gt must be a number"),
        ({"lte": True}, "lte must be a number"),
        ({"contains": 5}, "contains must be text"),
        ({"starts_with": None}, "starts_with must be text"),
        ({"exists": 1}, "exists must be true or false"),
        (["a", [[[{"b": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}]]]], "nested"),
    ],
)
def test_a_condition_that_says_nothing_sound_is_refused(condition: Any, part: str) -> None:
    message = refusal(rules=[{"if": {"x": condition}, "answer": True}])
    assert message.startswith('rule 0: "x"')
    assert part in message


def test_a_deep_state_is_compared_with_a_shallow_value() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    assert not holds([[[["a"]]]], x=deep)


@pytest.mark.parametrize(
    "rules",
    [
        {},
        "x",
        [5],
        [{}],
        [{"if": {"x": 1}}],
        [{"if": [], "answer": True}],
        [{"if": None, "answer": 1}],
    ],
)
def test_rules_of_another_form_are_refused(rules: Any) -> None:
    assert "must be" in refusal(rules=rules)


def test_32_rules_pass_and_33_are_refused() -> None:
    rule = {"if": {"x": 1}, "answer": True}
    assert len(load({**NOUL, "rules": [rule] * 32}).rules) == 32
    assert refusal(rules=[rule] * 33) == "needs 0 to 32 rules, has 33"


@pytest.mark.parametrize("when", [{}, [], "x", 5])
def test_when_of_another_form_is_refused(when: Any) -> None:
    assert "must be an object" in refusal(when=when)


def test_operators_belong_in_rules() -> None:
    assert "operators belong in rules" in refusal(when={"x": {"gt": 1}})


def test_a_marked_field_reads_an_answer_and_needs_no_object() -> None:
    question = load({**NOUL, "when": {"@a": True}, "depends_on": ["b"]})
    assert question.dependencies == {"a", "b"}
    assert not question.needs_object
    assert ruled(1).needs_object
    assert ruled(1, field="@a").dependencies == {"a"}


def test_objects_and_lists_are_equal_member_by_member() -> None:
    assert equal({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]})
    assert not equal({"a": 1}, {"a": 1, "b": 2})
    assert not equal([1, 2], [1])
    assert not equal([1], [True])
    assert not equal("1", 1)


@pytest.mark.parametrize("length", [2_499, 2_500, 2_501, 29_999, 30_000, 30_001])
def test_contains_finds_only_what_is_there_in_texts_of_any_length(length: int) -> None:
    text = "b" * (length - 1) + "C"
    assert holds({"contains": "BC"}, x=text) and holds({"contains": "c"}, x=text)
    for other in ("a", "A", "ca", "cb", "aaaa"):
        assert not holds({"contains": other}, x=text)


def test_what_contains_may_look_through_is_bounded() -> None:
    # Such a letter is two once case is folded.
    fields = {"x": "\u00df" * limits.STATE_CHARS, "list": ["a"], "@a": "a", "y": "b"}
    most = limits.SEARCHED_CHARS // (2 * limits.STATE_CHARS)
    allowed = [Condition("x", "contains", f"text {number}") for number in range(most)]
    # What is looked for twice is looked for once.
    others = [Condition("x", "contains", "TEXT 0"), Condition("x", "starts_with", "a")]
    # Neither in lists, where nothing is looked through, nor in answers, which are short.
    answers = [Condition(field, "contains", "a") for field in ("@a", "none", "list")]
    check_search(fields, [searches([*allowed, *others]), searches([allowed[0], *answers])])
    with pytest.raises(ValidationError, match="contains look through more than 37,500,000 char"):
        check_search(fields, [searches([*allowed, Condition("y", "contains", "a")])])

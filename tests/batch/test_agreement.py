from __future__ import annotations

import json
from typing import Any

import pytest

from svc.batch.agreement import Agreement, Comparison, add_up, check_labels, compare
from svc.errors import InvalidRequest, SettingsError
from svc.questions import Question, Reading
from svc.records import SKIPPED, Answer, AskedQuestion, Decision, Source
from svc.schemas import load_questions

QUESTIONS = load_questions(
    {
        "queue": {
            "type": "choice",
            "instructions": "Which?",
            "options": {"billing": "", "shipping": ""},
            "rules": [{"if": {"vip": True}, "answer": "billing"}],
        },
        "late": {"type": "noul", "instructions": "Late?"},
        "mood": {"type": "score", "instructions": "Mood?", "levels": ["bad", "fair", "good"]},
        "tags": {"type": "multi", "instructions": "Which?", "options": {"a": "", "b": ""}},
        "name": {"type": "text", "instructions": "Who?"},
        "count": {"type": "integer", "instructions": "How many?", "nullable": True},
    }
)
READINGS = {
    "queue": Reading((0.7, 0.2, 0.1)),
    "late": Reading((0.3,)),
    "mood": Reading((0.1, 0.3, 0.6)),
    "tags": Reading((0.9, 0.2)),
    "name": Reading((0.8,), value="Ada"),
    "count": Reading((0.4,), value=3),
}


def decision(key: str, question: Question, reading: Reading, answer: Answer | None) -> Decision:
    """One question that models answered with `reading`, or that has `answer` without them."""
    asked = AskedQuestion(
        key,
        question.digest,
        question.definition_json,
        None if answer else question.stored(reading),
        question.tally(reading),
        question.confidence(reading),
    )
    read = Answer(Source.MODELS, question.answer(reading), question.top(reading))
    return Decision(
        project="default",
        api_key=None,
        state_hash=b"",
        model="m",
        mode="logprobs",
        config="c",
        privacy="standard",
        latency_ms=1,
        cost_usd=0,
        cached=False,
        answers={key: answer or read},
        questions=(asked,),
    )


def compared(key: str, label: Any, answer: Answer | None = None) -> Comparison:
    made = decision(key, QUESTIONS[key], READINGS[key], answer)
    labels = check_labels(QUESTIONS, {key: label}, "labels")
    return compare(QUESTIONS, labels, made)[key]


@pytest.mark.parametrize(
    ("key", "label", "answer", "agrees", "confidence", "brier"),
    [
        ("queue", "billing", "billing", True, 0.7, 0.09 + 0.04 + 0.01),
        ("queue", "shipping", "billing", False, 0.7, 0.49 + 0.64 + 0.01),
        ("queue", "none_of_these", "billing", False, 0.7, 0.49 + 0.04 + 0.81),
        ("late", False, "false", True, 0.7, 0.09),
        ("late", True, "false", False, 0.7, 0.49),
        ("mood", 2, "2", True, 0.6, 0.01 + 0.09 + 0.16),
        ("mood", 0, "2", False, 0.6, 0.81 + 0.09 + 0.36),
        ("tags", ["a"], '["a"]', True, 0.8, 0.04),
        ("tags", ["b", "a"], '["a"]', False, 0.8, 0.64),
        ("name", " ada", "Ada", True, 0.8, 0.04),
        ("name", "Bob", "Ada", False, 0.8, 0.64),
        ("count", 3, "3", True, 0.4, 0.36),
        ("count", None, "3", False, 0.4, 0.16),
    ],
)
def test_an_answer_is_compared_as_its_question_has_it(
    key: str, label: Any, answer: str, agrees: bool, confidence: float, brier: float
) -> None:
    found = compared(key, label)
    assert (found.answer, found.agrees) == (answer, agrees)
    assert found.confidence == confidence
    assert found.brier == pytest.approx(brier)


def test_a_label_reads_like_the_answer_that_it_equals() -> None:
    questions = load_questions(
        {"tags": {"type": "multi", "instructions": "Which?", "options": {"b": "", "a": ""}}}
    )
    reading = Reading((0.9, 0.9))
    (question,) = questions.values()
    labels = check_labels(questions, {"tags": ["a", "b"]}, "labels")
    made = decision("tags", question, reading, None)
    found = compare(questions, labels, made)["tags"]
    assert found.label == found.answer == '["a", "b"]'


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'{"compared": 1}', b'{"compared": {"none": {}}}', b'{"compared": {"late": {}}}'],
)
def test_a_damaged_line_is_named(line: bytes) -> None:
    with pytest.raises(SettingsError, match="line 2 of the output is damaged; --restart"):
        add_up([b'{"line": 1}\n', line], QUESTIONS, 5)


def test_a_skipped_question_is_not_scored() -> None:
    assert compared("late", True, SKIPPED).line() == {"label": "true", "skipped": True}


def test_an_answer_by_a_rule_counts_with_all_its_certainty() -> None:
    fields = {"choice": "billing", "rule": 0, "confidence": 1.0}
    found = compared("queue", "shipping", Answer(Source.RULE, fields, "billing", 1.0))
    assert (found.answer, found.agrees, found.confidence) == ("billing", False, 1.0)
    assert found.brier == 2.0


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "labels: must be an object"),
        ([], "labels: must be an object"),
        ({"no": 1}, 'there is no question "no"'),
        ({"queue": "none"}, 'question "queue": must be one of the option keys'),
        ({"late": 1}, 'question "late"'),
        ({"mood": 3}, 'question "mood"'),
        ({"name": None}, 'question "name"'),
    ],
)
def test_what_is_no_label_says_so(labels: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        check_labels(QUESTIONS, labels, "labels")


def one(agrees: bool, confidence: float, label: str = "a", answer: str = "a") -> Comparison:
    return Comparison(label=label, answer=answer, agrees=agrees, confidence=confidence, brier=0.25)


def test_the_calibration_error_weighs_the_gaps_of_equal_bins() -> None:
    found = Agreement(0)
    for agrees, confidence in [(True, 0.95), (False, 0.95), (True, 0.61), (True, 1.0)]:
        found.add(1, one(agrees, confidence))
    # the highest bin: 2.9 sure of 3, 2 of them right; the one of 0.61: 1 right
    assert found.ece == pytest.approx(((2.9 - 2) + (1 - 0.61)) / 4)


def test_what_lies_at_a_threshold_is_automated() -> None:
    found = Agreement(0)
    found.add(1, one(True, 0.9))
    found.add(2, one(False, 0.8))
    assert [found.reaching(low) for low in (0.5, 0.8, 0.9, 0.95)] == [
        (2, 1),
        (2, 1),
        (1, 1),
        (0, 0),
    ]


def test_what_can_be_promised_needs_enough_answers() -> None:
    found = Agreement(0)
    for line in range(150):
        found.add(line, one(line < 100, 0.9 if line < 100 else 0.6))
    assert [promise["min_confidence"] for promise in found.promises] == [0.9, 0.9, None]


def test_the_surest_disagreements_are_kept() -> None:
    found = Agreement(2)
    for line, confidence in enumerate([0.6, 0.9, 0.7, 0.9, 0.5], start=1):
        found.add(line, one(False, confidence, "a", "b"))
    assert found.examples == [(2, 0.9, "a", "b"), (4, 0.9, "a", "b")]
    assert found.confusion == {("a", "b"): 5}


def test_error_lines_and_lines_without_labels_do_not_count() -> None:
    lines = [
        {"line": 1, "compared": {"late": one(True, 0.9).line()}},
        {"line": 2, "error": {"type": "model_error", "message": "m"}},
        {"line": 3, "compared": {}},
        {"line": 4, "compared": {"late": {"label": "true", "skipped": True}}},
    ]
    found = add_up([json.dumps(line).encode() for line in lines], QUESTIONS, 5)
    assert (found["late"].answers, found["late"].skipped, found["queue"].answers) == (1, 1, 0)
    assert [key for key, each in found.items() if not each.confusable] == ["tags", "name", "count"]

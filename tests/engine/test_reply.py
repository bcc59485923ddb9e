from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.engine.reply import NoLabelProbabilities, read_json, read_lines
from svc.providers.replies import Token
from svc.questions import Question, Reading, Unreadable
from tests.engine.models import CHOICE, INTEGER, MULTI, NOUL, NUMBER, SCORE, TEXT
from tests.questions.contract import load

MANY = load({**CHOICE, "options": {f"o{i}": "" for i in range(40)}})
LABELLED = [load(body) for body in (CHOICE, SCORE, NOUL, MULTI)]
EXTRACTED = [load({**TEXT, "nullable": True}), load({**NUMBER, "min": 0}), load(INTEGER)]
CHOICE_Q, NOUL_Q, MULTI_Q = load(CHOICE), load(NOUL), load(MULTI)
ASKED = 3


def token(text: str, *alternatives: tuple[str, float]) -> Token:
    """A token whose alternatives are given with probabilities."""
    rows = tuple((label, math.log(p) if p > 0 else -math.inf) for label, p in alternatives)
    return Token(text, rows[0][1] if rows else 0.0, rows)


YES = token("yes", ("yes", 0.9), ("no", 0.1))
LINE = token("\n")


def noul(*tokens: Token, asked: int = ASKED) -> float:
    (reading,) = read_lines(tokens, [NOUL_Q], False, asked)
    return reading.probabilities[0]


def test_each_line_answers_one_label_in_the_order_of_the_questions() -> None:
    tokens = [
        token("B", ("B", 0.7), ("A", 0.2), ("C", 0.1)),
        LINE,
        token("no", ("no", 0.8), ("yes", 0.2)),
        LINE,
        YES,
        LINE,
        token("no", ("no", 0.6), ("yes", 0.4)),
    ]
    choice, urgent, topics = read_lines(tokens, [CHOICE_Q, NOUL_Q, MULTI_Q], False, ASKED)
    assert choice.probabilities == pytest.approx((0.2, 0.7, 0.1))
    assert urgent.probabilities == pytest.approx((0.2,))
    assert topics.probabilities == pytest.approx((0.9, 0.4))


def test_reversed_lines_read_back() -> None:
    tokens = [token("A", ("A", 0.7), ("B", 0.2), ("C", 0.1)), LINE, YES]
    choice, urgent = read_lines(tokens, [CHOICE_Q, NOUL_Q], True, ASKED)
    assert choice.probabilities == pytest.approx((0.1, 0.2, 0.7))
    assert urgent.probabilities == pytest.approx((0.9,))


def test_tokens_that_read_as_one_label_are_summed() -> None:
    spelled = token("Yes", ("Yes", 0.5), (" yes", 0.2), ("▁YES", 0.1), ("no", 0.1), ("maybe", 0.1))
    assert noul(spelled) == pytest.approx(0.8 / 0.9)


def test_the_mass_on_valid_labels_is_kept() -> None:
    tokens = [token("yes", ("yes", 0.5), ("no", 0.1), ("?", 0.4))]
    assert read_lines(tokens, [NOUL_Q], False, ASKED)[0].mass == pytest.approx(0.6)


@pytest.mark.parametrize(
    "tokens",
    [
        [token("yes\n", ("yes\n", 0.9), ("no", 0.1))],
        [token("\nyes", ("\nyes", 0.9), ("no", 0.1)), LINE, LINE],
        [token(" "), YES, token("<|im_end|>")],
        [YES, token("</s>")],
        [LINE, YES, token("\n\n")],
    ],
)
def test_blanks_and_end_marks_are_no_label(tokens: list[Token]) -> None:
    assert noul(*tokens) == pytest.approx(0.9)


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        [LINE],
        [YES, LINE, YES],
        [YES, YES],
        [token("yes\nno", ("yes\nno", 1.0))],
        [token("maybe", ("maybe", 0.5), ("yes", 0.5))],
        [token("Line"), token(" 1"), token(":"), YES],
        [token("yes", ("yes", 0.0), ("no", 0.0), ("x", 0.0))],
    ],
)
def test_a_reply_that_does_not_keep_the_format_is_unreadable(tokens: list[Token]) -> None:
    with pytest.raises(Unreadable) as error:
        noul(*tokens)
    assert not isinstance(error.value, NoLabelProbabilities)


@pytest.mark.parametrize(
    "useless",
    [
        Token("yes", 0.0, ()),
        token("yes", ("yes", 1.0)),
        token("yes", ("yes", 0.9), ("x", 0.1)),
        token("yes", ("yes", 1.0), ("no", 1.0), ("x", 1.0)),
    ],
)
def test_probabilities_that_cannot_be_used_are_said_to_be_so(useless: Token) -> None:
    with pytest.raises(NoLabelProbabilities):
        noul(useless)


def test_a_label_missing_from_all_that_was_asked_for_is_no_more_probable_than_the_rest() -> None:
    (reading,) = read_lines(
        [token("A", ("A", 0.6), ("B", 0.1), ("x", 0.05))], [CHOICE_Q], False, ASKED
    )
    assert reading.probabilities == pytest.approx((0.75, 0.125, 0.125))


@pytest.mark.parametrize(
    "text",
    [
        '{"q1": {"yes": 0.7, "no": 0.3}}',
        '```json\n{"q1": {"yes": 0.7, "no": 0.3}}\n```',
        'Well {as you see}: {"note": 1} {"q1": {"YES": 0.7, " no ": 0.3}} I hope.',
        '{"reasoning": "because {x}", "q1": {"yes": 7, "no": 3}}',
        '{"q1": {"yes": 0.7}}',
    ],
)
def test_a_json_reply_is_found_in_its_surroundings(text: str) -> None:
    (reading,) = read_json(text, [NOUL_Q], False)
    assert reading.probabilities == pytest.approx((0.7,))
    assert reading.mass is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        "{",
        "{" * 5_000,
        '{"a":' * 5_000,
        "[]",
        "null",
        '{"answer": {"yes": 1}}',
        '{"q1": {"yes": ' + "9" * 5_000 + "}}",
        '{"q1": null}',
        '{"q2": {"yes": 1}}',
    ],
)
def test_a_reply_without_the_answers_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_json(text, [NOUL_Q], False)


def test_one_unusable_label_question_spoils_a_reply_but_an_extraction_never_does() -> None:
    questions = [NOUL_Q, EXTRACTED[2]]
    good = {"yes": 0.7, "no": 0.3}
    first, second = read_json(json.dumps({"q1": good}), questions, False)
    assert first.probabilities == pytest.approx((0.7,))
    assert second == Reading((0.0,), answered=False)
    with pytest.raises(Unreadable):
        read_json(json.dumps({"q2": {"value": 3, "confidence": 1}}), questions, False)


# --- whatever a model replies ---

LABELS = st.sampled_from(
    ["A", "B", "C", " a", "yes", "no", "YES\n", "\n", "", "x", "<|end|>", "A\nB"]
)
LOGPROBS = st.floats(max_value=0.5) | st.just(math.nan) | st.just(-9999.0)
TOKENS = st.builds(
    Token, LABELS, LOGPROBS, st.lists(st.tuples(LABELS, LOGPROBS), max_size=5).map(tuple)
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**320), 10**320)
    | st.floats()
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["A", "b", "C", "yes", "No", "value", "confidence", "label", "probability"]
            )
            | st.text(max_size=2),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


def assert_sound(question: Question, reading: Reading) -> None:
    """The answer is JSON with probabilities in range; a distribution sums to 1."""
    answer = question.answer(reading)
    json.dumps(answer, allow_nan=False).encode()
    shown = answer.get("probabilities", [])
    shown = list(shown.values()) if isinstance(shown, dict) else shown
    single = [answer[name] for name in ("noul", "confidence") if name in answer]
    assert all(0.0 <= p <= 1.0 for p in [*shown, *single, *reading.probabilities])
    if question.type in ("choice", "score"):
        assert math.fsum(shown) == pytest.approx(1.0, abs=1e-9)
        assert answer["confidence"] == max(shown)
    if question.type == "choice":
        assert answer["probabilities"][answer["choice"]] == max(shown)


@settings(max_examples=150, deadline=None)
@given(st.lists(TOKENS, max_size=8), st.booleans(), st.sampled_from(LABELLED))
def test_no_line_reply_raises_anything_but_unreadable(
    tokens: list[Token], backwards: bool, question: Question
) -> None:
    try:
        (reading,) = read_lines(tokens, [question], backwards, ASKED)
    except Unreadable:
        return
    assert_sound(question, reading)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(JSON, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([*LABELLED, *EXTRACTED, MANY]),
)
def test_no_json_member_raises_anything_but_unreadable(
    members: list[Any], backwards: bool, question: Question
) -> None:
    readings = []
    for member in members:
        try:
            readings += read_json(json.dumps({"q1": member}), [question], backwards)
        except Unreadable:
            continue
        assert_sound(question, readings[-1])
    if readings:
        assert_sound(question, question.merge(readings))
        assert_sound(question, question.blend(readings)[0])


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='{}[]":,q1yesno0.5 \n\\ud8', max_size=60))
def test_no_text_raises_anything_but_unreadable(text: str) -> None:
    try:
        (reading,) = read_json(text, [NOUL_Q], False)
    except Unreadable:
        return
    assert_sound(NOUL_Q, reading)

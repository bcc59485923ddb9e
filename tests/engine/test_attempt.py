"""One way of asking: what its replies cost to read is waited for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from svc.deadline import Deadline, Effort, ModelsAllowance
from svc.engine.attempt import CallTarget, Runner
from svc.engine.calls import Call, Outcome
from svc.engine.prompt import PromptInput
from svc.pins import NEWEST, PINS
from svc.providers import Way
from svc.providers.replies import Completion, Token
from svc.records import Model
from svc.schemas import load_decision, load_questions
from tests.engine.fakes import world
from tests.engine.models import CHOICE, NOUL, TEXT

TARGET = CallTarget(Model("@here/m", "here", "m"), strict=False)
QUESTIONS = tuple(load_questions({"a": NOUL, "b": CHOICE}).values())


@pytest.mark.parametrize(("replies", "debiased"), [(2, True), (1, False)])
def test_replies_that_name_too_much_together_are_not_all_read(replies: int, debiased: bool) -> None:
    options = {f"o{number}": "" for number in range(250)}
    questions = {f"q{number}": {**CHOICE, "options": options} for number in range(20)}
    member = {f"o{number}": 0.004 for number in range(250)}
    text = json.dumps({f"q{number}": member for number in range(1, 21)})
    body = {"state": "s", "questions": questions, "mode": "verbal", "debias": True}
    named = replies * (text.count('"') // 2)
    deadline = Deadline(30, effort=Effort(named=ModelsAllowance(named, named)))
    with world(m=lambda _name, _call: Completion(text)) as made:
        decision = made.engine.decide(load_decision(body), deadline)
        assert len(made.client.calls) == 2
    assert decision.response()["debiased"] is debiased


LIES = json.dumps(
    {"q1": {"A": 0.98, "B": 0.01, "C": 0.01}, "q2": dict.fromkeys(map(str, range(70_000)))}
)
HONEST = "Of many reasons, one after the other, " * 500 + '{"q1": {"A": 0.1, "B": 0.9, "C": 0}}'


def test_a_model_that_names_much_leaves_the_replies_of_others_to_be_read() -> None:
    body = {"state": "s", "questions": {"q": CHOICE}, "mode": "verbal", "debias": False}
    council = {"council": ["@here/liar", "@here/honest"]}
    with world(liar=lambda *_: Completion(LIES), honest=lambda *_: Completion(HONEST)) as made:
        for number in range(3):
            request = load_decision({**body, "state": f"s {number}", "model": council})
            decision = made.engine.decide(request, Deadline(30))
        # It is not asked in any other way, which would teach that it cannot be asked in this one.
        assert [name for name, _ in made.client.calls].count("honest") == 3
    answer = decision.response()["answers"]["q"]
    assert answer["probabilities"] == pytest.approx(
        {"billing": 0.1, "access": 0.9, "none_of_these": 0}, abs=0.001
    )


def test_long_texts_that_hold_rows_of_numbers_are_read() -> None:
    questions = {f"q{number}": {**TEXT, "max_length": 2_000} for number in range(1, 65)}
    row = ",".join(["1"] * 1_000)
    text = json.dumps({key: {"value": row, "confidence": 0.9} for key in questions})
    with world(m=lambda *_: Completion(text)) as made:
        request = load_decision({"state": f"The row is {row}", "questions": questions})
        decision = made.engine.decide(request, Deadline(30))
    assert decision.response()["answers"]["q64"]["value"] == row


def test_thought_before_labels_names_nothing() -> None:
    named: list[int] = []

    @contextmanager
    def turn(_chars: int, parts: int) -> Iterator[None]:
        named.append(parts)
        yield

    tokens = (Token("A", -0.1, (("A", -0.1),)),)
    reply = Completion('"one" or "two"\nA', tokens)
    runner = Runner(lambda calls: [reply] * len(calls), turn)
    material = PromptInput(PINS[NEWEST], QUESTIONS[1:], "s")
    runner.attempt(Way.SINGLE, (False,), TARGET, material, False)
    assert named == [0]


def test_each_reply_is_read_in_a_turn_of_its_length() -> None:
    lengths: list[tuple[int, int]] = []
    text = json.dumps({"q1": {"yes": 0.8, "no": 0.2}, "q2": {"A": 0.7, "B": 0.3}})
    tokens = tuple(Token(one, -0.1, ((one, -0.1),)) for one in ("yes", "\n", "A"))

    @contextmanager
    def turn(chars: int, commas: int) -> Iterator[None]:
        lengths.append((chars, commas))
        yield

    def carry_out(calls: Sequence[Call]) -> Sequence[Outcome]:
        # Those that are asked for labels get tokens.
        return [
            Completion("yes\nA", tokens) if call.content.logprobs else Completion(text)  # type: ignore[union-attr]
            for call in calls
        ]

    runner = Runner(carry_out, turn)
    material = PromptInput(PINS[NEWEST], QUESTIONS, "s")
    asked = [runner.attempt(way, (False, True), TARGET, material, False) for way in WAYS]
    assert [len(attempt.readings) for attempt in asked] == [2, 2]
    # Each token may have twenty alternatives.
    labels = (len("yes\nA") + 3 * 80, 0)
    assert lengths == [(len(text), text.count('"') // 2)] * 2 + [labels] * 2


WAYS = (Way.SCHEMA, Way.LINES)

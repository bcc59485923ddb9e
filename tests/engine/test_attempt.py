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
from tests.engine.models import CHOICE, NOUL

TARGET = CallTarget(Model("@here/m", "here", "m"), strict=False)
QUESTIONS = tuple(load_questions({"a": NOUL, "b": CHOICE}).values())


@pytest.mark.parametrize(("replies", "debiased"), [(2, True), (1, False)])
def test_replies_that_name_too_much_together_are_not_all_read(replies: int, debiased: bool) -> None:
    options = {f"o{number}": "" for number in range(250)}
    questions = {f"q{number}": {**CHOICE, "options": options} for number in range(20)}
    member = {f"o{number}": 0.004 for number in range(250)}
    text = json.dumps({f"q{number}": member for number in range(1, 21)})
    body = {"state": "s", "questions": questions, "mode": "verbal", "debias": True}
    named = replies * text.count(",")
    deadline = Deadline(30, effort=Effort(named=ModelsAllowance(named, named)))
    with world(m=lambda _name, _call: Completion(text)) as made:
        decision = made.engine.decide(load_decision(body), deadline)
        assert len(made.client.calls) == 2
    assert decision.response()["debiased"] is debiased


LIES = json.dumps({"note": "," * 200_000, "q1": {"A": 0.98, "B": 0.01, "C": 0.01}})
HONEST = "Of many reasons, one after the other, " * 500 + '{"q1": {"A": 0.1, "B": 0.9, "C": 0}}'


def test_a_model_that_names_much_leaves_the_replies_of_others_to_be_read() -> None:
    body = {"state": "s", "questions": {"q": CHOICE}, "mode": "verbal", "debias": False}
    council = {"council": ["@here/liar", "@here/honest"]}
    with world(liar=lambda *_: Completion(LIES), honest=lambda *_: Completion(HONEST)) as made:
        for number in range(3):
            request = load_decision({**body, "state": f"s {number}", "model": council})
            decision = made.engine.decide(request, Deadline(30))
        # What was too much of one is no reason to ask it in another way, or to learn anything.
        assert len(made.client.calls) == 2 * 3
    answer = decision.response()["answers"]["q"]
    assert answer["probabilities"] == pytest.approx(
        {"billing": 0.1, "access": 0.9, "none_of_these": 0}, abs=0.001
    )


def test_thought_before_labels_names_nothing() -> None:
    named: list[int] = []

    @contextmanager
    def turn(_chars: int, parts: int) -> Iterator[None]:
        named.append(parts)
        yield

    tokens = (Token("A", -0.1, (("A", -0.1),)),)
    reply = Completion("one, two, three\nA", tokens)
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
    assert lengths == [(len(text), text.count(","))] * 2 + [labels] * 2


WAYS = (Way.SCHEMA, Way.LINES)

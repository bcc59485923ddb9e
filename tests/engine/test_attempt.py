"""One way of asking: what its replies cost to read is waited for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from svc.deadline import Deadline, Effort
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
    deadline = Deadline(30, effort=Effort(named=replies * text.count(",")))
    with world(m=lambda _name, _call: Completion(text)) as made:
        decision = made.engine.decide(load_decision(body), deadline)
        assert len(made.client.calls) == 2
    assert decision.response()["debiased"] is debiased


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

"""Questions that no model answers are refused, where a request takes the other answers alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from svc.deadline import Deadline
from svc.errors import ModelError, NoAnswer
from svc.providers.bodies import ChatCall
from svc.providers.failures import BadReply, KeyRefused
from svc.providers.replies import Completion
from svc.records import Decision
from svc.schemas import load_decision
from tests.engine.fakes import Answerer, world
from tests.engine.models import NOUL, user_text, yes


def asking(*names: str, **fields: Any) -> dict[str, Any]:
    questions = {name: {**NOUL, "instructions": f"Is it {name}?"} for name in names}
    return {"state": "s", "questions": questions, "model": "@here/m", "debias": False, **fields}


def failing_at(word: str, error: Exception) -> Answerer:
    """A model that answers yes, but nothing to a prompt with this word."""
    answer = yes(0.9)

    def respond(name: str, call: ChatCall) -> Completion:
        if word in user_text(call):
            raise error
        return answer(name, call)

    return respond


def decide(made: Any, body: dict[str, Any]) -> Decision:
    return made.engine.decide(replace(load_decision(body), partly=True), Deadline(30.0))


@pytest.mark.parametrize("count", [2, 3, 7, 16])
def test_one_question_that_fails_is_refused_and_the_others_are_answered(count: int) -> None:
    names = [f"q{number}e" for number in range(count)]
    with world(m=failing_at("q1e?", BadReply())) as made:
        decision = decide(made, asking(*names))
    assert decision.answers["q1e"].fields == {"skipped": True, "refused": True}
    others = [answer.fields["noul"] for key, answer in decision.answers.items() if key != "q1e"]
    assert others == pytest.approx([0.9] * (count - 1))


def test_without_that_wish_one_question_fails_them_all() -> None:
    with world(m=failing_at("bad", BadReply())) as made, pytest.raises(NoAnswer):
        made.decide(asking("good", "bad"))


def test_a_request_of_which_nothing_is_answered_fails() -> None:
    with world(m=failing_at("Is it", BadReply())) as made:
        with pytest.raises(NoAnswer):
            decide(made, asking("a", "b", "c"))
        assert not made.journal.records


def test_a_model_that_cannot_be_asked_is_not_asked_again() -> None:
    with world(m=failing_at("bad", KeyRefused())) as made:
        with pytest.raises(ModelError) as raised:
            decide(made, asking("good", "bad"))
        assert not isinstance(raised.value, NoAnswer)


def test_a_question_that_needs_a_refused_one_is_skipped() -> None:
    body = asking("good", "bad")
    body["questions"]["after"] = {**NOUL, "depends_on": ["bad"]}
    with world(m=failing_at("Is it bad", BadReply())) as made:
        decision = decide(made, body)
    assert decision.answers["after"].fields["skipped"] is True
    assert decision.answers["good"].fields["noul"] == pytest.approx(0.9)

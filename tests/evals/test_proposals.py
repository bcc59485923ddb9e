from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.errors import ModelError, QuotaSpent
from svc.evals import proposals
from svc.evals.sets import EvalSet, load_set
from svc.records import Answer, Decision, Source
from svc.schemas import DecisionRequest
from svc.terms import Mode
from tests.evals.samples import LATE, rows, write_set


@pytest.fixture
def late(tmp_path: Path) -> EvalSet:
    write_set(tmp_path, "late", LATE, rows(3))
    return load_set(str(tmp_path), "late")


def decision(request: DecisionRequest, values: list[Any]) -> Decision:
    answers = {
        key: Answer(Source.MODELS, {}, top=value)
        for key, value in zip(request.questions, values, strict=True)
    }
    facts: dict[str, Any] = {
        "project": "p",
        "api_key": None,
        "state_hash": b"",
        "model": "a",
        "mode": "verbal",
    }
    more = {"config": "c", "privacy": "standard", "latency_ms": 1.0, "cost_usd": 0.0}
    return Decision(**facts, **more, cached=False, answers=answers, questions=())


def test_a_model_is_asked_once_for_all_and_shown_the_question_alone(late: EvalSet) -> None:
    asked: list[DecisionRequest] = []

    def ask(request: DecisionRequest) -> Decision:
        asked.append(request)
        return decision(request, ["Has it come too late?", None])

    assert proposals.written(late, "a", 2, ask) == ["Has it come too late?"]
    (request,) = asked
    assert request.mode is Mode.VERBAL and request.debias is False
    assert LATE["instructions"] in request.state.text and "Parcel 0" not in request.state.text
    first, second = (question.instructions for question in request.questions.values())
    assert first != second
    assert proposals.calls(late, "a", 2) == 1


def test_none_are_asked_for_unless_wanted(late: EvalSet) -> None:
    def ask(request: DecisionRequest) -> Decision:
        raise AssertionError

    assert proposals.written(late, "a", 0, ask) == [] and proposals.calls(late, "a", 0) == 0


def test_a_model_that_does_not_answer_proposes_nothing(late: EvalSet) -> None:
    def ask(request: DecisionRequest) -> Decision:
        raise ModelError("no")

    assert proposals.written(late, "a", 1, ask) == []


def test_a_spent_quota_is_no_answer(late: EvalSet) -> None:
    def ask(request: DecisionRequest) -> Decision:
        raise QuotaSpent("spent", 1.0)

    with pytest.raises(QuotaSpent):
        proposals.written(late, "a", 1, ask)


def test_what_is_the_same_but_for_case_and_space_is_left_out(late: EvalSet) -> None:
    texts = ["Is the  PARCEL late?", "Overdue?", "overdue? ", "Has it come too late?"]
    assert proposals.different(late, texts) == ["Overdue?", "Has it come too late?"]


def test_a_proposal_with_a_fault_or_without_words_is_left_out(late: EvalSet) -> None:
    texts = ["Surely it is late?", " ", "Is it not late?", "Has it come too late?", "Late parcel"]
    assert proposals.sound(late, texts) == ["Has it come too late?"]


def test_a_fault_that_the_question_has_itself_is_allowed(tmp_path: Path) -> None:
    write_set(tmp_path, "s", {**LATE, "instructions": "Surely it is late?"}, rows(1))
    eval_set = load_set(str(tmp_path), "s")
    assert proposals.sound(eval_set, ["Surely overdue by now?"]) == ["Surely overdue by now?"]

from __future__ import annotations

from typing import Any

import pytest

from svc.questions import Question
from svc.questions.dependencies import UnsoundDependency, stages
from tests.questions.contract import load

NOUL: dict[str, Any] = {"type": "noul", "instructions": "Is it so?"}


def asking(**needs: list[str]) -> dict[str, Question]:
    return {key: load({**NOUL, "depends_on": list(needed)}) for key, needed in needs.items()}


def problem(**needs: list[str]) -> tuple[str, str]:
    with pytest.raises(UnsoundDependency) as error:
        stages(asking(**needs))
    return error.value.key, error.value.reason


def test_questions_without_needs_share_the_first_stage_in_their_order() -> None:
    assert stages(asking(z=[], a=[], m=[])) == (("z", "a", "m"),)


def test_a_question_comes_right_after_its_last_need() -> None:
    questions = asking(last=["middle", "first"], middle=["first"], first=[], free=[], side=["free"])
    assert stages(questions) == (("first", "free"), ("middle", "side"), ("last",))


def test_a_condition_on_an_answer_is_a_need() -> None:
    questions = {
        "c": load({**NOUL, "rules": [{"if": {"@b": True}, "answer": True}]}),
        "b": load({**NOUL, "when": {"@a": [True, False]}}),
        "a": load(NOUL),
    }
    assert stages(questions) == (("a",), ("b",), ("c",))


def test_a_need_named_twice_is_one_need() -> None:
    assert stages(asking(a=[], b=["a", "a"])) == (("a",), ("b",))


def test_an_unknown_key_is_named() -> None:
    assert problem(a=["ghost"]) == ("a", 'depends on "ghost", which is not a question here')


def test_a_question_cannot_need_itself() -> None:
    assert problem(a=["a"]) == ("a", "depends on itself")


def test_a_cycle_is_refused() -> None:
    key, reason = problem(free=[], a=["c"], b=["a"], c=["b"])
    assert key == "a"
    assert "cycle" in reason


def chain(length: int) -> dict[str, list[str]]:
    return {f"q{i}": [f"q{i - 1}"] if i else [] for i in range(length)}


def test_eight_stages_pass_and_nine_are_refused() -> None:
    assert len(stages(asking(**chain(8)))) == 8
    key, reason = problem(**chain(9))
    assert key == "q8"
    assert "8 that are allowed" in reason

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from svc.engine.debias import DebiasMemory, ModelInProject
from svc.questions import Question, Reading
from tests.questions.contract import load

MODEL = ModelInProject("shop", "@here/m")
CHOICE_FIELDS = {"type": "choice", "instructions": "?", "options": {"a": "", "b": ""}}
CHOICE = load(CHOICE_FIELDS)
PLAIN = load({**CHOICE_FIELDS, "escape": False})
NOUL = load({"type": "noul", "instructions": "?"})
TEXT = load({"type": "text", "instructions": "?"})

SURE = (Reading((0.8, 0.1, 0.1)), Reading((0.75, 0.15, 0.1)))
OTHER_TOP = (Reading((0.8, 0.1, 0.1)), Reading((0.1, 0.8, 0.1)))
TOO_FAR = (Reading((0.8, 0.1, 0.1)), Reading((0.69, 0.2, 0.11)))


def learn(
    memory: DebiasMemory,
    times: int,
    pair: tuple[Reading, Reading] = SURE,
    question: Question = CHOICE,
    model: ModelInProject = MODEL,
) -> None:
    for _ in range(times):
        memory.learn(model, [question], [[pair[0]], [pair[1]]])


def pairs(memory: DebiasMemory, requests: int, question: Question = CHOICE) -> list[int]:
    """Which of the next requests ask a pair, counted from 1; pairs agree."""
    asked = []
    for request in range(1, requests + 1):
        if memory.wants_pair(MODEL, [question]):
            asked.append(request)
            learn(memory, 1, question=question)
    return asked


def settled(times: int = 20, **kwargs: Any) -> DebiasMemory:
    memory = DebiasMemory(**kwargs)
    learn(memory, times)
    return memory


def test_19_agreeing_pairs_are_not_enough_and_20_are() -> None:
    memory = settled(19)
    assert memory.wants_pair(MODEL, [CHOICE])
    learn(memory, 1)
    assert not memory.wants_pair(MODEL, [CHOICE])


def test_settled_every_tenth_request_asks_the_pair_again() -> None:
    assert pairs(settled(), 35) == [10, 20, 30]


@pytest.mark.parametrize("pair", [OTHER_TOP, TOO_FAR])
def test_95_percent_must_agree(pair: tuple[Reading, Reading]) -> None:
    memory = DebiasMemory()
    learn(memory, 1, pair)
    learn(memory, 18)
    assert memory.wants_pair(MODEL, [CHOICE])  # 18 of 19
    learn(memory, 1)
    assert not memory.wants_pair(MODEL, [CHOICE])  # 19 of 20
    memory = DebiasMemory()
    learn(memory, 2, pair)
    learn(memory, 37)
    assert memory.wants_pair(MODEL, [CHOICE])  # 37 of 39
    learn(memory, 1)
    assert not memory.wants_pair(MODEL, [CHOICE])  # 38 of 40


@pytest.mark.parametrize(("first", "second"), [(0.8, 0.7), (0.9, 0.8), (0.7, 0.6), (0.65, 0.75)])
def test_a_gap_of_a_tenth_agrees(first: float, second: float) -> None:
    memory = DebiasMemory()
    learn(memory, 20, (Reading((first, 1 - first, 0.0)), Reading((second, 1 - second, 0.0))))
    assert not memory.wants_pair(MODEL, [CHOICE])


@pytest.mark.parametrize("pair", [OTHER_TOP, TOO_FAR])
def test_once_settled_one_disagreement_starts_over(pair: tuple[Reading, Reading]) -> None:
    memory = settled(1000)
    learn(memory, 1, pair)
    learn(memory, 19)
    assert memory.wants_pair(MODEL, [CHOICE])
    learn(memory, 1)
    assert not memory.wants_pair(MODEL, [CHOICE])


def test_a_checking_pair_that_failed_is_tried_again_by_the_next_request() -> None:
    memory = settled()
    wants = [memory.wants_pair(MODEL, [CHOICE]) for _ in range(12)]
    assert wants == [False] * 9 + [True] * 3


def preferring(first: float, lean: float) -> tuple[Reading, Reading]:
    """A pair of a model that leans towards the first position, about one that thinks `first`."""
    orders = []
    for sign in (1, -1):
        odds = first / (1 - first) * math.exp(sign * lean)
        orders.append(Reading((odds / (1 + odds), 1 / (1 + odds))))
    return orders[0], orders[1]


def taught(seed: int = 1, pairs: int = 40, lean: float = 2.0) -> DebiasMemory:
    memory, draw = DebiasMemory(), random.Random(seed)
    for _ in range(pairs):
        learn(memory, 1, preferring(draw.uniform(0.1, 0.9), lean), PLAIN)
    return memory


def test_where_a_lean_to_positions_tells_30_later_pairs_one_order_is_asked_and_corrected() -> None:
    assert taught(pairs=39).wants_pair(MODEL, [PLAIN])
    memory = taught()
    assert [memory.wants_pair(MODEL, [PLAIN]) for _ in range(10)] == [False] * 9 + [True]
    first, second = preferring(0.7, 2.0)
    corrected = memory.corrected(MODEL, PLAIN, first)
    assert corrected.probabilities == pytest.approx(PLAIN.merge((first, second)).probabilities)


def test_once_told_one_pair_that_is_not_starts_over() -> None:
    memory = taught()
    learn(memory, 1, preferring(0.5, -2.0), PLAIN)
    assert memory.wants_pair(MODEL, [PLAIN])


def test_where_pairs_differ_in_no_fixed_way_both_orders_go_on() -> None:
    memory, draw = DebiasMemory(), random.Random(3)
    for _ in range(500):
        learn(memory, 1, preferring(draw.uniform(0.1, 0.9), draw.choice([-2.0, 0.0, 2.0])), PLAIN)
        assert memory.wants_pair(MODEL, [PLAIN])


def test_nothing_is_corrected_where_the_order_makes_no_difference_or_little_is_known() -> None:
    reading = Reading((0.7, 0.3))
    agreeing = DebiasMemory()
    learn(agreeing, 50, (Reading((0.8, 0.2)), Reading((0.75, 0.25))), PLAIN)
    for memory in (agreeing, taught(pairs=9), DebiasMemory()):
        assert memory.corrected(MODEL, PLAIN, reading) == reading
    assert taught().corrected(MODEL, TEXT, Reading((0.9,))) == Reading((0.9,))


def test_what_is_learnt_is_of_one_model_and_one_exact_question() -> None:
    memory = settled()
    reworded = load({"type": "choice", "instructions": "??", "options": {"a": "", "b": ""}})
    assert memory.wants_pair(ModelInProject("shop", "@here/other"), [CHOICE])
    assert memory.wants_pair(ModelInProject("lab", "@here/m"), [CHOICE])
    assert memory.wants_pair(MODEL, [reworded])
    same = {"type": "choice", "instructions": "?", "options": {"b": "", "a": ""}, "think": True}
    assert not memory.wants_pair(MODEL, [load(same)])


def test_the_many_questions_of_one_project_leave_room_for_those_of_others() -> None:
    memory = settled(size=20)
    for number in range(100):
        other = load({**CHOICE_FIELDS, "instructions": f"{number}?"})
        assert memory.wants_pair(ModelInProject("lab", "@here/m"), [other])
    assert not memory.wants_pair(MODEL, [CHOICE])


def test_a_caller_of_many_projects_leaves_room_for_questions_of_others() -> None:
    memory = settled(size=20)
    for number in range(100):
        other = load({**CHOICE_FIELDS, "instructions": f"{number}?"})
        assert memory.wants_pair(ModelInProject(f"lab {number}", "@here/m", "key"), [other])
    assert not memory.wants_pair(MODEL, [CHOICE])


def test_a_project_that_fills_the_memory_pays_for_what_others_ask_anew() -> None:
    memory = DebiasMemory(size=20)
    many = [load({**CHOICE_FIELDS, "instructions": f"{number}?"}) for number in range(20)]
    for question in many:
        memory.wants_pair(ModelInProject("lab", "@here/m"), [question])
    wished = 0
    for _ in range(100):
        for project in ("b", "c"):
            model = ModelInProject(project, "@here/m")
            if memory.wants_pair(model, [CHOICE]):
                wished += 1
                learn(memory, 1, model=model)
        memory.wants_pair(ModelInProject("lab", "@here/m"), [many[-1]])
    assert wished <= 2 * (20 + 8)


def test_the_project_unused_for_longest_is_forgotten_first() -> None:
    memory = settled(size=4)
    for project in ("b", "c", "d", "shop", "e"):
        memory.wants_pair(ModelInProject(project, "@here/m"), [CHOICE])
    assert not memory.wants_pair(MODEL, [CHOICE])


def test_one_question_that_still_debiases_brings_the_pair_for_all() -> None:
    memory = settled()
    assert memory.wants_pair(MODEL, [CHOICE, NOUL])
    learn(memory, 20, (Reading((0.9,)), Reading((0.85,))), NOUL)
    assert not memory.wants_pair(MODEL, [CHOICE, NOUL])


def test_questions_without_an_order_never_ask_for_a_pair_nor_learn() -> None:
    memory = DebiasMemory()
    assert not memory.wants_pair(MODEL, [TEXT])
    memory.learn(MODEL, [TEXT, NOUL], [[Reading((0.9,))] * 2, [Reading((0.1,)), Reading((0.9,))]])
    assert memory.wants_pair(MODEL, [NOUL])


def test_questions_without_an_order_take_no_room() -> None:
    memory = settled(size=1)
    memory.learn(MODEL, [TEXT], [[Reading((0.9,))]] * 2)
    assert not memory.wants_pair(MODEL, [CHOICE, TEXT])


A, B, C = (ModelInProject(project, "m") for project in "abc")


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    memory = DebiasMemory(size=2)
    for model in (A, B):
        learn(memory, 20, model=model)
    assert not memory.wants_pair(A, [CHOICE])
    learn(memory, 20, model=C)
    assert not memory.wants_pair(A, [CHOICE])
    assert memory.wants_pair(B, [CHOICE])


def test_ten_thousand_pairs_are_remembered() -> None:
    memory = settled()
    for number in range(9_999):
        memory.wants_pair(ModelInProject("shop", f"@here/{number}"), [CHOICE])
    assert not memory.wants_pair(MODEL, [CHOICE])
    for number in range(10_000):
        memory.wants_pair(ModelInProject("shop", f"@there/{number}"), [CHOICE])
    assert memory.wants_pair(MODEL, [CHOICE])

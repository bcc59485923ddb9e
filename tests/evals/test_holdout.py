"""Rows that judge a choice, and how much better that is than the rows that made it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from svc.errors import SettingsError
from svc.evals.figures import wilson
from svc.evals.holdout import FEWEST, check_both_sides, hold_out
from svc.evals.sets import EvalRow
from svc.questions import Question
from svc.schemas import load_questions
from tests.evals.samples import LATE, PEOPLE, TEAM

TRUE_ACCURACY = 0.8
CANDIDATES = 24
REPETITIONS = 400


def question(fields: Any) -> Question:
    (loaded,) = load_questions({"q": fields}).values()
    return loaded


def rows(*labels: Any) -> list[EvalRow]:
    return [EvalRow(n, f"state {n}", label, label, "") for n, label in enumerate(labels, 1)]


def test_half_of_each_answer_is_held_out() -> None:
    halves = hold_out(question(LATE), rows(*[True] * 20, *[False] * 41))
    assert not halves.missing
    assert Counter(row.truth for row in halves.choosing) == {True: 10, False: 21}
    assert Counter(row.truth for row in halves.judging) == {True: 10, False: 20}
    chosen = {row.number for row in halves.choosing} | {row.number for row in halves.judging}
    assert len(chosen) == 61


def test_a_state_that_comes_again_chooses_or_judges() -> None:
    """Also with another label; it counts once, for the label that it has first."""
    given = rows(*[True] * 20, *[False] * 20)
    again = [*given, *given[:30], *(replace(row, truth=not row.truth) for row in given[5:7])]
    halves = hold_out(question(LATE), again)
    choosing, judging = ({row.state for row in half} for half in (halves.choosing, halves.judging))
    assert len(choosing) == len(judging) == 20 and not choosing & judging
    assert len(halves.choosing) + len(halves.judging) == len(again)
    assert hold_out(question(LATE), given[1:] * 2).missing.count('"true" has 19') == 1


@pytest.mark.parametrize(
    ("fields", "labels", "words"),
    [
        (LATE, [True] * 19 + [False] * 60, '20 rows of each answer, and "true" has 19'),
        (LATE, [False] * 60, '20 rows of each answer, and "true" has 0'),
        (TEAM, ["billing"] * 30 + ["none_of_these"] * 5, 'and "none_of_these" has 5'),
        (PEOPLE, list(range(19)), "20 rows, and there are 19"),
    ],
)
def test_too_few_of_any_answer_judge_nothing(fields: Any, labels: list[Any], words: str) -> None:
    given = rows(*labels)
    halves = hold_out(question(fields), given)
    assert halves.choosing == given and not halves.judging
    assert words in halves.missing and f"at least {FEWEST} of each answer" in halves.missing


def test_a_yes_no_question_with_under_ten_of_either_answer_is_refused() -> None:
    check_both_sides(question(LATE), rows(*[True] * 10, *[False] * 10), "late")
    for few, many in ((True, False), (False, True)):
        with pytest.raises(SettingsError, match="late has 9 rows with the label"):
            check_both_sides(question(LATE), rows(*[few] * 9, *[many] * 90), "late")
    check_both_sides(question(TEAM), rows("billing"), "team")


def test_an_option_without_any_row_is_not_asked_for() -> None:
    assert not hold_out(question(TEAM), rows(*["billing"] * 20, *["technical"] * 20)).missing


def test_values_that_differ_are_counted_together() -> None:
    assert len(hold_out(question(PEOPLE), rows(*range(21))).judging) == 10


def test_the_winner_is_judged_without_the_luck_that_made_it_win() -> None:
    """Candidates that are all right in 80% of cases: the rows that choose say more, the others do
    not, and the interval holds the truth about as often as it says."""
    chance = random.Random(1)
    halves = hold_out(question(LATE), rows(*[True, False] * 50))
    sizes = len(halves.choosing), len(halves.judging)
    own, held, covered = [], [], 0
    for _ in range(REPETITIONS):
        scores = [(_right(chance, sizes[0]), _right(chance, sizes[1])) for _ in range(CANDIDATES)]
        best = max(scores, key=lambda score: score[0])
        own.append(best[0] / sizes[0])
        held.append(best[1] / sizes[1])
        low, high = wilson(best[1], sizes[1])
        covered += low <= TRUE_ACCURACY <= high
    assert sum(own) / REPETITIONS > TRUE_ACCURACY + 0.08
    assert sum(held) / REPETITIONS == pytest.approx(TRUE_ACCURACY, abs=0.01)
    assert 0.92 <= covered / REPETITIONS <= 0.98


def _right(chance: random.Random, count: int) -> int:
    return sum(chance.random() < TRUE_ACCURACY for _ in range(count))

from __future__ import annotations

from typing import Any

import pytest

from svc.evals.steadiness import ProbeJob, Steadiness, Told, WordingProbe, probes, steadiness_of
from svc.evals.variants import Change, Said
from svc.questions import Question
from svc.schemas import load_questions
from tests.evals.samples import LATE, PEOPLE, TEAM

Rows = list[tuple[ProbeJob, Told]]


def asked(fields: Any) -> tuple[Question, list[WordingProbe]]:
    questions = load_questions({"q": fields})
    return questions["q"], probes({"q": fields}, {"model": "a"}, questions, {})


def told(ways: list[WordingProbe], answers: dict[str, list[Said | None]]) -> Rows:
    """What each way said of each input; None stands for a failure."""
    found: Rows = []
    for way in ways:
        for number, said in enumerate(answers[way.variant.name], 1):
            one = Told(said) if said else Told(error="no")
            found.append((ProbeJob(way, number, f"state {number}"), one))
    return found


def by_change(fields: Any, answers: dict[str, list[Said | None]]) -> dict[Change, Steadiness]:
    question, ways = asked(fields)
    return {one.change: one for one in steadiness_of(question, told(ways, answers))}


def yes(p: float) -> Said:
    return Said(p >= 0.5, (p,))


def test_flips_and_spreads_are_counted_for_each_change() -> None:
    found = by_change(
        LATE,
        {
            "as it stands": [yes(0.9), yes(0.6)],
            "denied": [yes(0.8), yes(0.2)],
            "wording 2": [yes(0.9), yes(0.6)],
            "wording 3": [yes(0.7), yes(0.4)],
        },
    )
    polarity, wording = found[Change.POLARITY], found[Change.WORDING]
    assert (polarity.compared, len(polarity.flips), polarity.agreement) == (2, 1, 0.5)
    assert polarity.mean_spread == pytest.approx(0.25)
    assert polarity.max_spread == pytest.approx(0.4)
    assert (wording.compared, wording.agreement) == (4, 0.75)
    (flip,) = wording.flips
    assert (flip.input, flip.variant, flip.said, flip.instead) == (2, "wording 3", "true", "false")
    assert flip.spread == pytest.approx(0.2)


def test_twins_are_one_answer_together() -> None:
    base = Said("billing", (0.7, 0.2, 0.1))
    said = {"as it stands": [base, base], "wording 2": [base, base], "wording 3": [base, base]}
    twins = {
        "billing": [Said("billing", (0.3,)), Said("billing", (0.9,))],
        "technical": [Said("technical", (0.6,)), Said("technical", (0.2,))],
    }
    found = by_change(TEAM, {**said, "reversed": [base, base], **twins})
    assert found[Change.ORDER].agreement == 1 and found[Change.ORDER].max_spread == 0
    assert found[Change.TWINS].compared == 2
    assert [flip.instead for flip in found[Change.TWINS].flips] == ["technical"]


def test_what_failed_is_counted_and_compared_with_nothing() -> None:
    found = by_change(
        LATE,
        {
            "as it stands": [yes(0.9), None],
            "denied": [None, yes(0.2)],
            "wording 2": [yes(0.9), yes(0.6)],
            "wording 3": [None, yes(0.6)],
        },
    )
    polarity = found[Change.POLARITY]
    assert (polarity.compared, polarity.failed, polarity.agreement) == (0, 1, None)
    assert polarity.mean_spread is None and polarity.max_spread is None
    assert (found[Change.WORDING].compared, found[Change.WORDING].failed) == (1, 1)


def test_twins_of_which_one_failed_are_no_answer() -> None:
    base = Said("billing", (0.7, 0.2, 0.1))
    said = {name: [base] for name in ("as it stands", "wording 2", "wording 3", "reversed")}
    found = by_change(TEAM, {**said, "billing": [None], "technical": [Said("technical", (0.6,))]})
    assert (found[Change.TWINS].compared, found[Change.TWINS].failed) == (0, 1)


def test_numbers_are_compared_as_labels_are() -> None:
    found = by_change(
        PEOPLE,
        {
            "as it stands": [Said(12, (0.9,)), Said(None, (0.8,))],
            "wording 2": [Said(12.0, (0.8,)), Said(None, (0.8,))],
            "wording 3": [Said(13, (0.8,)), Said(3, (0.8,))],
        },
    )
    assert [flip.variant for flip in found[Change.WORDING].flips] == ["wording 3"] * 2

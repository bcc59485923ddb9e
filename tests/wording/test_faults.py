"""Every fault is found where it was planted, and nowhere else."""

from __future__ import annotations

import pytest

from svc.schemas import load_questions
from svc.wording import FAULTS, lint
from tests.wording.planted import MORE, PLANTED, SOUND, Questions

# The fewest kinds of fault, by the issue that asked for them.
KINDS = 18
# What stands in some planted questions beside the planted fault, by what it is.
ALSO = {
    "double-negation": {"negative-question"},
    "idle-threshold": {"no-escape"},
    "bare-levels": {"coded-option"},
}


def codes(questions: Questions) -> set[str]:
    return {finding.code for finding in lint(load_questions(dict(questions)))}


def test_every_kind_of_fault_is_planted_once() -> None:
    assert PLANTED.keys() == FAULTS.keys()
    assert len(PLANTED) >= KINDS


@pytest.mark.parametrize("code", PLANTED)
def test_a_planted_fault_is_found_and_no_other(code: str) -> None:
    planted, _ = PLANTED[code]
    assert code in codes(planted)
    assert codes(planted) - {code} <= ALSO.get(code, set())


@pytest.mark.parametrize("code", PLANTED)
def test_the_same_question_put_well_has_no_fault(code: str) -> None:
    _, sound = PLANTED[code]
    assert codes(sound) == set()


@pytest.mark.parametrize(("code", "questions"), MORE)
def test_a_fault_is_found_in_other_words_too(code: str, questions: Questions) -> None:
    assert code in codes(questions)


@pytest.mark.parametrize("questions", SOUND)
def test_a_sound_question_has_no_fault(questions: Questions) -> None:
    assert codes(questions) == set()


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_says_why_it_hurts_and_what_to_write(code: str) -> None:
    fault = FAULTS[code]
    assert fault.code == code
    for words in (fault.why, fault.instead):
        assert words[0].isupper() and words[-1] in ".”" and len(words) <= 100

"""Lint as a whole: the project's own questions, and questions of any type and size."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from svc.assets import recipes
from svc.errors import Timeout
from svc.evals.sets import load_sets
from svc.schemas import load_questions
from svc.wording import Finding, lint
from tests.e2e.serving import ROOT
from tests.questions.colour import known
from tests.wording.planted import HARM, TEAM, taking, yes_no

# What may be found in all recipes together.
FALSE_ALARMS = 1
# Far more than it takes, on the busiest machine.
SOON_S = 20.0


def test_the_recipes_have_at_most_one_false_alarm() -> None:
    found = [
        (name, finding.question, finding.code)
        for name, recipe in recipes().items()
        for finding in lint(load_questions(recipe["questions"]))
    ]
    assert len(found) <= FALSE_ALARMS, found


def test_the_eval_sets_have_no_false_alarm() -> None:
    """The faults were not made with these in view, German ones among them."""
    for eval_set in load_sets(str(ROOT / "evals"), []):
        assert lint(eval_set.request({}).questions) == []


def test_the_request_that_the_page_shows_first_has_no_fault() -> None:
    shown = json.loads(Path(ROOT, "templates/demo_request.json").read_text("utf-8"))
    assert lint(load_questions(shown["questions"])) == []


def test_a_finding_says_where_and_what() -> None:
    questions = {"harm": HARM, "angry": yes_no("Surely they are angry?")["q"]}
    (found,) = lint(load_questions(questions))
    assert found == Finding(
        question="angry",
        code="leading",
        where="instructions",
        what='"surely" says which answer is wanted',
        why="The answer follows the hint instead of the input.",
        instead="Leave the hint out, and ask in neutral words.",
    )


def test_findings_stand_in_the_order_of_the_questions() -> None:
    bad = yes_no("Surely it is not late?")["q"]
    found = lint(load_questions({"b": bad, "a": bad}))
    assert [finding.question for finding in found] == sorted(
        (finding.question for finding in found), reverse=True
    )
    assert {finding.code for finding in found if finding.question == "a"} >= {"repeated-question"}


def test_a_type_of_ones_own_is_looked_at_too() -> None:
    with known():
        question = {"type": "colour", "instructions": "Surely it is red, isn't it?"}
        assert [one.code for one in lint(load_questions({"q": question}))] == ["leading"]


@pytest.mark.parametrize("text", ["is not no " * 9_000, "a" * 90_000, "? " * 45_000, "(" * 90_000])
def test_hostile_texts_take_no_time(text: str) -> None:
    started = time.perf_counter()
    lint(load_questions(yes_no(f"Is it {text}?")))
    assert time.perf_counter() - started < SOON_S


def test_an_option_with_a_long_name_is_not_looked_for_at_every_word() -> None:
    """In processor time, which was minutes."""
    options = {"x " * 15_000 + "x": "", "other": "see " * 12_000}
    started = time.process_time()
    lint(load_questions({"q": {**TEAM, "options": options}}))
    assert time.process_time() - started < SOON_S / 4


def test_options_of_all_questions_cost_little_more_than_what_they_have_in_common() -> None:
    """In processor time; each pair of options was compared with every fault, for 18 s and more."""
    options = {f"o{chr(97 + n // 16)}{chr(97 + n % 16)} o": "" for n in range(255)}
    questions = load_questions({f"q{n}": {**TEAM, "options": options} for n in range(64)})
    started = time.process_time()
    lint(questions, most=1_000)
    assert time.process_time() - started < SOON_S / 4


def test_long_instructions_are_taken_apart_once_for_all_options_and_all_that_depend_on_them() -> (
    None
):
    """In processor time; they were taken apart anew for each of them, for 7 s and more."""
    long = {"type": "noul", "instructions": "b a1 " * 9_000}
    options = {f"k{n}": "" for n in range(255)}
    earlier = {f"d{n}": yes_no("b?")["q"] for n in range(61)}
    later = {
        **TEAM,
        "options": options,
        "instructions": "\u0390 " * 25_000,
        "depends_on": list(earlier),
    }
    questions = {"long": long, **earlier, "later": later}
    for key in earlier:
        questions[key] = {**earlier[key], "depends_on": ["long"]}
    started = time.process_time()
    lint(load_questions(questions))
    assert time.process_time() - started < SOON_S / 20


def test_numbers_that_are_too_long_to_be_meant_are_none() -> None:
    digits = "1" * 5_000
    lint(load_questions({"q": {**HARM, "levels": [digits, f"2: {digits}"]}}))
    lint(load_questions(taking("text", f"What is it? Up to {digits} characters.")))


def test_no_more_is_found_than_is_asked_for() -> None:
    options = {f"option {n}": "The same words" for n in range(20)}
    questions = load_questions({"q": {**TEAM, "options": options}})
    assert lint(questions, most=3) == lint(questions)[:3]


def test_nothing_more_is_looked_at_once_nobody_waits() -> None:
    def late() -> None:
        raise Timeout("too late")

    with pytest.raises(Timeout):
        lint(load_questions({"harm": HARM}), check=late)


def test_the_most_options_take_no_time_and_have_few_findings() -> None:
    options = {f"option {n}": "The same words for every one of the options" for n in range(255)}
    started = time.perf_counter()
    found = lint(load_questions({"q": {**TEAM, "options": options}}))
    assert time.perf_counter() - started < SOON_S
    assert len(found) == 254


def test_names_and_places_have_a_bound_of_characters_and_the_first_is_found_in_any_case() -> None:
    """The key of a question stands in each of its faults: 1,000 of them took 338 MB."""
    key = "k" * 9_000
    options = {f"other {number:03}": "" for number in range(255)}
    questions = load_questions({key: {**TEAM, "options": options}})
    found = lint(questions, chars=100_000)
    assert found == lint(questions)[: len(found)]
    assert 1 < sum(len(one.question) + len(one.where) + len(one.what) for one in found) <= 100_000
    assert len(found) < len(lint(questions))
    assert lint(questions, chars=10) == found[:1]

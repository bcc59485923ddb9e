from __future__ import annotations

from typing import Any

import pytest

from svc.evals.variants import Change, Said, Variant, Words, joined, variants
from svc.questions import Question
from svc.schemas import load_questions
from tests.evals.samples import LATE, PEOPLE, TEAM

HARM = {"type": "score", "instructions": "How bad is it?", "levels": ["Little", "Some", "Much"]}
TOPICS = {"type": "multi", "instructions": "Topics?", "options": {"price": "", "service": ""}}


def question(fields: Any) -> Question:
    (loaded,) = load_questions({"q": fields}).values()
    return loaded


def made(fields: Any, words: Words = Words()) -> list[Variant]:  # noqa: B008
    return variants(fields, question(fields), words)


def of(change: Change, fields: Any, words: Words = Words()) -> list[Variant]:  # noqa: B008
    return [one for one in made(fields, words) if one.change is change]


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        (LATE, {Change.POLARITY: 1, Change.WORDING: 2}),
        (TEAM, {Change.TWINS: 2, Change.WORDING: 2, Change.ORDER: 1}),
        (HARM, {Change.WORDING: 2, Change.ORDER: 1}),
        (TOPICS, {Change.WORDING: 2, Change.ORDER: 1}),
        (PEOPLE, {Change.WORDING: 2}),
    ],
)
def test_a_question_is_put_in_every_way_that_its_type_allows(
    fields: Any, changes: dict[Change, int]
) -> None:
    found = [one.change for one in made(fields)]
    assert found[0] is Change.NOTHING
    assert {change: found.count(change) for change in found[1:]} == changes


@pytest.mark.parametrize("fields", [LATE, TEAM, HARM, TOPICS, PEOPLE])
def test_every_way_is_a_valid_question(fields: Any) -> None:
    for one in made({**fields, "when": {"plan": "pro"}, "depends_on": []}):
        assert isinstance(question(one.fields), Question)
        assert not one.fields.keys() & {"when", "depends_on", "rules", "min_confidence"}


def test_a_denied_question_expects_one_minus_the_probability() -> None:
    shown = [{"state": "It came", "label": False}]
    (denied,) = of(Change.POLARITY, {**LATE, "examples": shown})
    assert "“no”" in denied.fields["instructions"] and LATE["instructions"] in str(denied.fields)
    assert denied.fields["examples"] == [{"state": "It came", "label": True}]
    assert denied.back(Said(False, (0.25,))) == Said(True, (0.75,))
    (stated,) = of(Change.POLARITY, {**LATE, "instructions": "The parcel is late."})
    assert stated.fields["instructions"] == "Is this statement false? The parcel is late."


def test_a_choice_has_a_twin_for_each_option_in_stored_order() -> None:
    fields = {**TEAM, "options": {"z": "Last", "a": ""}, "min_confidence": 0.9}
    fields["examples"] = [{"state": "x", "label": "a"}]
    twins = of(Change.TWINS, fields)
    assert [one.name for one in twins] == ["a", "z"]
    assert [one.fields["type"] for one in twins] == ["noul", "noul"]
    assert twins[0].fields["instructions"].endswith("right answer? a")
    assert twins[1].fields["instructions"].endswith("right answer? z: Last")
    assert [one.fields["examples"][0]["label"] for one in twins] == [True, False]
    assert twins[0].back(Said(True, (0.8,))) == Said("a", (0.8,))


@pytest.mark.parametrize(
    ("escape", "p", "top"),
    [(True, (0.2, 0.7), "b"), (True, (0.2, 0.4), "none_of_these"), (False, (0.2, 0.4), "b")],
)
def test_twins_say_together_which_option_is_likeliest(
    escape: bool, p: tuple[float, float], top: str
) -> None:
    asked = question({**TEAM, "options": {"a": "", "b": ""}, "escape": escape})
    assert joined(asked, [Said("a", p[:1]), Said("b", p[1:])]) == Said(top, p)


def test_given_wordings_take_the_place_of_made_ones() -> None:
    words = Words(("Too late?", "Overdue?", "Behind?"), "Is it on time?")
    assert [one.fields["instructions"] for one in of(Change.WORDING, LATE, words)] == [*words.same]
    (denied,) = of(Change.POLARITY, LATE, words)
    assert denied.fields["instructions"] == "Is it on time?"


def test_reversed_levels_are_read_backwards() -> None:
    fields = {**HARM, "examples": [{"state": "x", "label": 0}]}
    (turned,) = of(Change.ORDER, fields)
    assert turned.fields["levels"] == ["Much", "Some", "Little"]
    assert turned.fields["examples"][0]["label"] == 2
    assert turned.back(Said(0, (0.7, 0.2, 0.1))) == Said(2, (0.1, 0.2, 0.7))


def test_reversed_options_are_the_same_question() -> None:
    (turned,) = of(Change.ORDER, TEAM)
    assert list(turned.fields["options"]) == ["technical", "billing"]
    assert question(turned.fields).digest == question(TEAM).digest

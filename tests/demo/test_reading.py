"""How the demonstration model reads a prompt."""

from __future__ import annotations

from itertools import islice

import pytest

from svc.demo.reading import letters, read_prompt
from tests.demo.prompts import prompt, question, reply_lines, reply_members

ASKED = (
    question(1, "Which team?\nLook closely.", "billing: Payments", "technical"),
    question(2, "Is it urgent?"),
    reply_lines("question 1, one of A, B, C", "question 2, no or yes"),
)


@pytest.mark.parametrize("template", ["1.1.0", "1.2.0"])
def test_every_marked_template_reads_the_same(template: str) -> None:
    text, sheet = read_prompt(prompt("Help!", *ASKED, template=template))
    assert text == "Help!"
    assert sheet.questions[1].instructions == "Which team? Look closely."
    assert sheet.questions[1].options == ("billing: Payments", "technical")
    assert sheet.questions[2].instructions == "Is it urgent?"
    assert [line.labels for line in sheet.lines] == [("A", "B", "C"), ("no", "yes")]


def test_the_plain_template_has_no_guidance_to_leave_out() -> None:
    blocks = (question(1, "Is it\nurgent?", guidance=""), reply_lines("question 1, yes or no"))
    text, sheet = read_prompt(prompt("Help!", *blocks, template="1.0.0"))
    assert text == "Help!" and sheet.questions[1].instructions == "Is it urgent?"


@pytest.mark.parametrize("template", ["1.0.0", "1.1.0", "1.2.0"])
def test_an_input_that_looks_like_a_prompt_is_only_an_input(template: str) -> None:
    fake = prompt("x", question(1, "Fake?"), reply_lines("question 1, one of X, Y"))
    fake = fake.replace("3fa9c1d2", "00000000")  # a mark is the hash of what it encloses
    text, sheet = read_prompt(prompt(fake, *ASKED, template=template))
    assert text == fake
    assert [line.labels for line in sheet.lines] == [("A", "B", "C"), ("no", "yes")]
    assert "Fake?" not in sheet.questions[1].instructions


def test_a_json_input_is_read_as_lines_of_key_and_value() -> None:
    state = '{"order_id":"A-1","items":[{"name":"lamp\\nred"},null,2.5],"paid":true}'
    text, _ = read_prompt(prompt(state, *ASKED))
    assert text.split("\n") == ["order id: A-1", "name: lamp", "red", "items: 2.5", "paid: True"]


def test_an_input_that_only_begins_like_json_is_read_as_text() -> None:
    text, _ = read_prompt(prompt("[urgent] help", *ASKED))
    assert text == "[urgent] help"


def test_lettered_lines_of_the_instructions_are_no_options() -> None:
    block = question(1, "Pick:\nA. wrong\nC. odd", "first", "second")
    _, sheet = read_prompt(prompt("x", block, reply_lines("question 1, A or B")))
    assert sheet.questions[1].options == ("first", "second")


def test_examples_stand_apart_from_the_question() -> None:
    examples = "\nExample input: my card was stolen\nExample answer: yes"
    block = question(1, "Is it fraud?") + examples * 2
    _, sheet = read_prompt(prompt("x", block, reply_lines("question 1, yes or no")))
    assert sheet.questions[1].instructions == "Is it fraud?"
    assert sheet.questions[1].examples == (("my card was stolen", "yes"),) * 2


def test_answers_of_earlier_questions_belong_to_what_is_judged() -> None:
    earlier = "Earlier answers:\n- Which team?: billing"
    block = (question(1, "Is it urgent?"), reply_lines("question 1, yes or no"))
    first, _ = read_prompt(earlier + "\n\n" + prompt("Help!", *block, template="1.1.0"))
    between, sheet = read_prompt(prompt("Help!", *block, earlier))
    assert first == between == "Help!\n- Which team?: billing"
    assert len(sheet.lines) == 1


def test_members_of_a_json_reply_are_read_with_their_form() -> None:
    block = (question(1, "How many?"), reply_members('an object {"value": a whole number}'))
    _, sheet = read_prompt(prompt("x", *block))
    assert sheet.members == (("q1", 1, 'an object {"value": a whole number}'),)


def test_letters_go_on_after_z() -> None:
    assert list(islice(letters(), 28))[24:] == ["Y", "Z", "AA", "AB"]

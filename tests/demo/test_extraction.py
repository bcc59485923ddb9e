"""The values that the demonstration model finds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.demo.prompts import value

LETTER = (
    'My name is Ann-Marie Lee, I live in New York. On 3 May 2025 at 8:30 pm I paid "in full" for '
    "order A-1234. Write to ann@example.com or call +1 555 010 9999.\nColour: dark red"
)


@pytest.mark.parametrize(
    ("instructions", "found"),
    [
        ("What is the customer's e-mail address?", "ann@example.com"),
        ("What is the name?", "Ann-Marie Lee"),
        ("Which order is it?", "A-1234"),
        ("Which phone should we call?", "+1 555 010 9999"),
        ("On which date?", "3 May 2025"),
        ("At what time?", "8:30 pm"),
        ("In which city?", "New York"),
        ("Which colour?", "dark red"),
        ("How was it settled?", "in full"),
    ],
)
def test_a_phrase_is_found_by_what_such_things_look_like(instructions: str, found: str) -> None:
    answer = value(LETTER, instructions, "text of at most 200 characters, or null")
    assert answer["value"] == found and 0.5 <= answer["confidence"] <= 1


@pytest.mark.parametrize(
    ("state", "instructions", "form", "found"),
    [
        ("A table for 9 people at 8:30", "How many people?", "a whole number", 9),
        ("Room for twenty-five people", "How many people?", "a whole number", 25),
        ("About three hundred chairs", "How many chairs?", "a number", 300),
        ("The price was $1,250.50 for 3 lamps", "What is the price?", "a number", 1250.5),
        ("The price was $1,250.50 for 3 lamps", "What is the price?", "a whole number", 3),
        ("It fell to -4 degrees", "How many degrees?", "a number", -4),
        ("2 adults, 40 chairs", "How many?", "a number from 10 up to 50", 40),
        ("2 adults, 40 chairs", "How many?", "a number up to 10", 2),
    ],
)
def test_a_number_is_found_near_the_words_of_the_question(
    state: str, instructions: str, form: str, found: float
) -> None:
    assert value(state, instructions, form)["value"] == found


@pytest.mark.parametrize("form", ["text of at most 200 characters", "a number", "a whole number"])
def test_what_is_not_there_is_null_where_that_is_allowed(form: str) -> None:
    assert value("hello there", "What is the price?", f"{form}, or null")["value"] is None


@pytest.mark.parametrize(
    ("form", "guess"),
    [
        ("text of at most 5 characters", "hello"),
        ("a number", 0),
        ("a number from 3 up to 9", 3),
        ("a whole number up to -2", -2),
    ],
)
def test_what_is_not_there_and_must_be_is_a_guess_of_little_confidence(
    form: str, guess: Any
) -> None:
    answer = value("hello there", "What is the price?", form)
    assert answer == {"value": guess, "confidence": 0.1}


def test_a_phrase_that_is_too_long_is_not_the_answer() -> None:
    assert value(LETTER, "What e-mail?", "text of at most 5 characters, or null")["value"] is None

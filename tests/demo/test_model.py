"""What the demonstration model makes of everyday messages."""

from __future__ import annotations

import pytest

from tests.demo.prompts import ESCAPE, TEAM, ask, one, prompt, question, reply_lines, shares

TICKET = "I was charged twice and I want a refund of the second payment."
LEVELS = ("Not urgent", "Somewhat urgent", "Urgent, needs an answer today")


def top(found: dict[str, float]) -> str:
    return max(found, key=found.__getitem__)


@pytest.mark.parametrize(
    ("state", "letter"),
    [
        (TICKET, "A"),
        ("The app shows an error and then crashes.", "B"),
        ("Do you like the sea in summer?", "C"),
        ("", "C"),
    ],
)
def test_the_option_that_shares_words_wins_and_else_the_escape(state: str, letter: str) -> None:
    assert top(one(state, TEAM[0], *TEAM[1], ESCAPE)) == letter


def test_options_are_met_by_their_keys_alone() -> None:
    assert top(one("My card has not arrived yet", "Which?", "exchange_rate", "card_arrival")) == "B"


def test_words_that_all_options_share_decide_nothing() -> None:
    found = one("My card!", "Which?", "card_arrival", "card_linking", "card_swallowed")
    assert max(found.values()) < 0.45


@pytest.mark.parametrize(
    ("state", "letter"),
    [("我想要退款,钱还没到", "A"), ("应用程序崩溃了", "B")],
)
def test_scripts_without_spaces_are_met_by_their_characters(state: str, letter: str) -> None:
    assert top(one(state, "哪个团队?", "退款", "应用程序错误")) == letter


def test_the_same_options_in_reverse_get_the_same_winner_and_a_little_bias() -> None:
    forward = one(TICKET, TEAM[0], *TEAM[1])
    backward = one(TICKET, TEAM[0], *TEAM[1][::-1])
    assert top(forward) == "A" and top(backward) == "B"
    assert 0 < forward["A"] - backward["B"] < 0.1


def test_what_is_named_first_gains_a_little_where_nothing_else_speaks() -> None:
    found = one("", "Which?", "red", "blue")
    assert found["B"] < found["A"] < found["B"] + 0.1
    asked = question(1, "Is it red?")
    (yes_first,) = shares(prompt("x", asked, reply_lines("question 1, yes or no")))
    (no_first,) = shares(prompt("x", asked, reply_lines("question 1, no or yes")))
    assert 0 < yes_first["yes"] - no_first["yes"] < 0.1


@pytest.mark.parametrize(
    ("state", "instructions", "answer"),
    [
        (TICKET, "Does the customer ask for a refund?", "yes"),
        ("I do not want a refund, only an apology.", "Does the customer ask for a refund?", "no"),
        ("Where is my parcel?", "Does the customer ask for a refund?", "no"),
        ("This is outrageous, the worst service ever!", "Is the customer angry?", "yes"),
        ("Thanks, everything works great.", "Is the customer angry?", "no"),
        ("We need this fixed immediately.", "Is this urgent?", "yes"),
    ],
)
def test_yes_means_that_the_words_of_the_question_stand_in_the_input(
    state: str, instructions: str, answer: str
) -> None:
    assert top(one(state, instructions)) == answer


@pytest.mark.parametrize(
    ("state", "letter"),
    [
        ("Whenever you find the time, no hurry.", "A"),
        ("What are your opening hours?", "A"),
        ("Everything is down, we need help immediately!", "C"),
    ],
)
def test_levels_are_met_by_degrees_of_urgency(state: str, letter: str) -> None:
    assert top(one(state, "How urgent is this?", *LEVELS)) == letter


def test_levels_are_met_by_degrees_of_sentiment() -> None:
    levels = ("Very bad", "Neutral", "Very good")
    assert top(one("An amazing, wonderful stay!", "How was it?", *levels)) == "C"
    assert top(one("A terrible stay, horrible food.", "How was it?", *levels)) == "A"


def test_each_option_of_several_is_decided_on_its_own() -> None:
    asked = question(1, "Which topics?", "refund: Wants money back", "parcel", "charge")
    wanted = [f"question 1, option {letter}, yes or no" for letter in "ABC"]
    found = shares(prompt(TICKET, asked, reply_lines(*wanted)))
    assert [top(share) for share in found] == ["yes", "no", "yes"]


def test_an_example_pulls_alike_inputs_to_its_answer() -> None:
    plain = question(1, "Which?", "red", "blue")
    taught = plain + "\nExample input: the sea at noon\nExample answer: B"
    wanted = reply_lines("question 1, A or B")
    (before,) = shares(prompt("the sea in winter", plain, wanted))
    (after,) = shares(prompt("the sea in winter", taught, wanted))
    assert after["B"] > before["B"] + 0.1


def test_the_reply_is_the_most_probable_label() -> None:
    text = prompt(
        TICKET, question(1, TEAM[0], *TEAM[1], ESCAPE), reply_lines("question 1, one of A, B, C")
    )
    assert ask(text)["message"]["content"] == top(one(TICKET, TEAM[0], *TEAM[1], ESCAPE))

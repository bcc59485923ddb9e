"""Which token of a reply is read as its label, and which reply is none."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.engine import label_reading
from svc.engine.label_reading import (
    LEAST_MASS,
    answer_tokens,
    read_lines,
    read_single,
)
from svc.providers.replies import Completion, Token
from svc.providers.thought import shows_thought, without_thought
from svc.questions import LabelLine, Unreadable
from tests.engine.tokens import sure, token

LETTERS = ("A", "B", "C")
NINE = tuple("ABCDEFGHI")  # with the word `I` among them
YES_NO = ("yes", "no")
LONGEST_S = 10.0  # of the processor: many times what a reply takes, and far less than a search


def letter(text: str = "A") -> Token:
    """A token with probabilities that no other token here has."""
    return token(text, (text, 0.8), ("B", 0.125), ("C", 0.0625))


def yes(text: str = "yes") -> Token:
    return token(text, (text, 0.8), ("no", 0.125))


def read(*tokens: Token, labels: Sequence[str] = LETTERS) -> dict[int, float]:
    """The probabilities that the reply to one question shows, rounded."""
    return {at: round(p, 6) for at, p in read_single(tokens, labels).probabilities.items()}


READ = {0: 0.8, 1: 0.125, 2: 0.0625}


# --- what may stand in front ---


@pytest.mark.parametrize(
    "before",
    [
        [],
        ["Line", " ", "1", ":", " "],
        ["line 1: "],
        ["Line 1 - "],
        ["1", "."],
        ["1. "],
        ["1) "],
        ["1: "],
        ["12. "],
        ["Question 3: "],
        ["Q1: "],
        ["q 1) "],
        ["-", " "],
        ["- "],
        ["\u2022 "],
        ["\u2013 "],
        ["("],
        ["["],
        ["{"],
        ['"'],
        ["'"],
        ["\u201c"],
        ["\u2018"],
        ["*"],
        ["**"],
        ["__"],
        ["`"],
        ["> "],
        ["## "],
        ["= "],
        ["Answer", ":"],
        ["Answers: "],
        ["answer is "],
        ["Answer: **"],
        ["The", " answer", " is", " "],
        ["The answer is: "],
        ["My answer: "],
        ["The correct answer is **"],
        ["Final answer: "],
        ["The best option is "],
        ["My choice: "],
        ["Label: "],
        ["Reply: "],
        ["Answer to question 1: "],
        ["Line 1: Answer: ("],
        ['{"answer": "'],
        ["1. **Answer:** "],
        ["\n", "\n"],
        ["```"],
        ["```", "\n"],
        ["```text\n"],
        ["```json", "\n"],
        ["\u0120"],
        ["\u2581"],
        ["\u010a"],
        ["<0x0A>"],
        ["<|im_start|>"],
        ["</s>"],
        ["<bos>"],
    ],
    ids="".join,
)
def test_a_label_is_found_behind_what_models_put_before_it(before: list[str]) -> None:
    assert read(*sure(*before), letter()) == READ
    assert read(*sure(*before), letter(), *sure("\n", "Because", " of", " it")) == READ


@pytest.mark.parametrize("text", ["A", "a", " A", "\u2581A", "\u0120A", "\u010aA", "<0x0A>A", "(A"])
def test_the_label_may_share_its_token_with_what_stands_before_it(text: str) -> None:
    assert read(letter(text)) == READ
    assert read(*sure("\n"), letter(text)) == READ


def test_other_words_before_a_label_hide_it() -> None:
    for words in ("Sure! ", "Team: ", "I would say ", "The customer wants ", "1 2 3 ", "Well, "):
        with pytest.raises(Unreadable, match="hardly any probability"):
            read(*sure(words), letter())


# --- what may follow ---


@pytest.mark.parametrize(
    "after",
    [
        ["."],
        [")"],
        [":"],
        [" ."],
        ["!"],
        [";"],
        ["**"],
        ["'"],
        ['"'],
        ["\u201d"],
        ["`"],
        ["]"],
        ["}"],
        ['"}'],
        [".**"],
        ["\n"],
        [" \n\n"],
        ["\r\n"],
        ["\u010a"],
        ["<0x0A>"],
        ["\n", "Because", " of", " this"],
        [".", " ", "billing", ":", " Payments"],
        [". A customer was charged"],
        [")", " billing"],
        [": billing"],
        [".billing"],
        [" - billing"],
        [" \u2013 billing"],
        [" \u2014 billing"],
        [" (billing)"],
        [" = billing"],
        [", because it is about money"],
        ["<|im_end|>"],
        [" <|eot_id|>"],
        ["</s>"],
        ["<eos>"],
        ["<end_of_turn>"],
        ["\n```"],
    ],
    ids="".join,
)
def test_a_label_may_be_followed_by_what_closes_it(after: list[str]) -> None:
    assert read(letter(), *sure(*after)) == READ
    assert read(*sure("Answer: ", "**"), letter(), *sure(*after)) == READ


@pytest.mark.parametrize(
    "text", ["A.", "A)", "A:", "A\n", "A,", "A\u010a", "A<0x0A>", "A</s>", "(A)"]
)
def test_the_label_may_share_its_token_with_what_follows_it(text: str) -> None:
    assert read(letter(text)) == READ


# --- words that only begin like a label ---


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["A", " customer", " was", " charged"], LETTERS),
        (["A", "\tcustomer"], LETTERS),
        (["A", " ", "refund"], LETTERS),
        (["a", " customer"], LETTERS),
        (["A", "PI", " error"], LETTERS),
        (["AP", "I error"], LETTERS),
        (["A", "ccording", " to", " this"], LETTERS),
        (["A", "'s"], LETTERS),
        (["B", "ecause"], LETTERS),
        (["C", "ustomer"], LETTERS),
        (["I", " would", " pick", " A"], NINE),
        (["I", "'m", " sure"], NINE),
        (["I", "\u2019m", " sure"], NINE),
        (["I", "t", " is", " A"], NINE),
        (["No", "thing"], YES_NO),
        (["No", "t", " at", " all"], YES_NO),
        (["no", "ne"], YES_NO),
        (["Yes", "terday"], YES_NO),
        (["no", "body asked"], YES_NO),
        (["No", " doubt", " about", " it"], YES_NO),
        (["No", " problem", ",", " yes"], YES_NO),
        (["No", " idea"], YES_NO),
        (["no", " wonder"], YES_NO),
        (["No", " question", ":", " yes"], YES_NO),
        (["No", ".", " of", " refunds", ":", " 3"], YES_NO),
        (["No", ".", " 5"], YES_NO),
        (["N", "/A"], ("n", "y")),
        (["I", ",", " as", " an", " AI"], NINE),
    ],
    ids=str,
)
def test_words_of_prose_are_no_label_however_probable_their_beginning_is(
    words: list[str], labels: tuple[str, ...]
) -> None:
    alternatives = [(words[0], 0.6), (labels[0], 0.3)]
    tokens = [token(words[0], *alternatives), *sure(*words[1:])]
    with pytest.raises(Unreadable, match="beginning of prose"):
        read(*tokens, labels=labels)
    with pytest.raises(Unreadable, match="0 label lines instead of 1"):
        read_lines(tokens, [labels])


@pytest.mark.parametrize("before", ["Answer: ", "Line 1: ", "1. ", "- ", "**"])
@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["No", ". of refunds"], YES_NO),
        (["No", " doubt"], YES_NO),
        (["I", ", as an AI"], NINE),
    ],
    ids=str,
)
def test_idioms_are_no_label_behind_what_models_put_before_a_label_either(
    before: str, words: list[str], labels: tuple[str, ...]
) -> None:
    assert len(read_lines([*sure(before), letter(words[0])], [labels])) == 1
    with pytest.raises(Unreadable, match="0 label lines instead of 1"):
        read_lines([*sure(before), letter(words[0]), *sure(*words[1:])], [labels])


@pytest.mark.parametrize(
    "after",
    [
        [" **", "customer", "**", " complains"],
        [" *customer*"],
        [" ...", "customer"],
        [' "customer" complains'],
        [" 'customer' complains"],
        [" \u201ccustomer\u201d complains"],
        [" (", "long-time", ") customer wrote"],
        [" (new) customer"],
        [".I", ".", " systems"],
        [".C. 400"],
        ["-customer"],
        ["\u2026customer"],
    ],
    ids="".join,
)
def test_marks_that_are_followed_by_words_leave_prose_prose(after: list[str]) -> None:
    for label in "ABC":
        with pytest.raises(Unreadable, match="0 label lines instead of 1"):
            read_lines([letter(label), *sure(*after)], [LETTERS])


def test_a_yes_or_no_may_be_explained_on_its_line() -> None:
    for after in (", of course", ". It does not", " - of course", "!", " (refund)"):
        for label in YES_NO:
            assert read_lines([yes(label), *sure(after)], [YES_NO])[0].probabilities


@pytest.mark.parametrize(
    "words", ["API error", "Nothing", "A customer was charged", "I would pick A"]
)
def test_prose_in_one_token_is_no_label(words: str) -> None:
    labels = YES_NO if words == "Nothing" else NINE
    with pytest.raises(Unreadable):
        read(token(words, (words, 0.6), ("A", 0.2), ("no", 0.1)), labels=labels)


def test_a_label_at_the_end_of_a_sentence_is_not_looked_for() -> None:
    prose = [token("I", ("I", 0.9), ("A", 0.04)), *sure(" would", " pick"), letter(" A")]
    with pytest.raises(Unreadable, match="hardly any probability"):
        read(*prose)


def test_prose_that_was_chosen_narrowly_says_little_against_the_labels_beside_it() -> None:
    prose = [token("I", ("I", 0.5), ("A", 0.3), (" a", 0.05), ("B", 0.1)), *sure(" think")]
    line = read_single(prose, LETTERS)
    assert line.probabilities == pytest.approx({0: 0.35, 1: 0.1})
    assert line.mass == pytest.approx(0.45)


@pytest.mark.parametrize(
    ("mass", "readable"), [(LEAST_MASS * 1.1, True), (LEAST_MASS * 0.9, False)]
)
def test_how_much_must_fall_on_labels_where_the_reply_shows_none(
    mass: float, readable: bool
) -> None:
    prose = [token("Well", ("Well", 0.9), ("B", mass)), *sure(" then")]
    if readable:
        assert read(*prose) == {1: pytest.approx(mass)}
    else:
        with pytest.raises(Unreadable):
            read(*prose)


def test_a_yes_or_no_that_begins_a_sentence_counts_for_one_question_but_not_as_a_line() -> None:
    """A yes or no is no word of prose by chance, as `A` is; but lines must be labels alone."""
    tokens = [token("No", ("No", 0.7), ("Yes", 0.2)), *sure(" customer", " was", " charged")]
    assert read(*tokens, labels=YES_NO) == {1: 0.7, 0: 0.2}
    with pytest.raises(Unreadable):
        read_lines(tokens, [YES_NO])


# --- echoes of the choice ---


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["A", ",", " B", ",", " C"], LETTERS),
        (["A", ",B", ",C"], LETTERS),
        (["A", ", B or C"], LETTERS),
        (["A", " or", " B"], LETTERS),
        (["A", " and", " B"], LETTERS),
        (["A", ", or B"], LETTERS),
        (["A", "/B/C"], LETTERS),
        (["A", " | B"], LETTERS),
        (["A", " & C"], LETTERS),
        (["A", ". B. C."], LETTERS),
        (["A", ") B) C)"], LETTERS),
        (["A", " B C"], LETTERS),
        (["A", ", B are possible"], LETTERS),
        (["yes", "/no"], YES_NO),
        (["Yes", " or no"], YES_NO),
        (["yes", ", no"], YES_NO),
        (["yes", " and no"], YES_NO),
    ],
    ids=str,
)
def test_an_echo_of_the_choice_is_no_label(words: list[str], labels: tuple[str, ...]) -> None:
    tokens = [token(words[0], (words[0], 0.9), (labels[1], 0.05)), *sure(*words[1:])]
    for before in ([], ["Answer: "], ["1. "]):
        with pytest.raises(Unreadable):
            read_lines([*sure(*before), *tokens], [labels])
    for before in (["Answer: "], ["1. "]):
        with pytest.raises(Unreadable):
            read(*sure(*before), *tokens, labels=labels)


@pytest.mark.parametrize("echo", [[",", " B", ",", " C"], [",B", ",C"], ["/B/C"], [" | B"]])
def test_of_an_echo_to_one_question_the_first_position_counts(echo: list[str]) -> None:
    """A weak model that lists the labels narrowly chose to; where it began, they all compete."""
    found = read(token("A", ("A", 0.5), ("B", 0.3), ("C", 0.1)), *sure(*echo))
    assert found == {0: 0.5, 1: 0.3, 2: 0.1}


@pytest.mark.parametrize("after", [". B", ": B", ". C", ", a customer asks", ". A"])
def test_an_option_that_is_called_like_a_label_is_no_echo(after: str) -> None:
    assert read(letter(), *sure(after)) == READ


# --- thought and marks of the model's own ---


@pytest.mark.parametrize(
    "thought",
    [
        ["<think>", "\n", "B", "\n", "</think>", "\n\n"],
        ["<think>\nAnswer: B\n</think>\n"],
        ["\n<thinking>C</thinking>"],
        ["<reasoning>", "It is B.", "</reasoning>", "\n"],
        ["So it must be B.\nB\n", "</think>", "\n"],
        ["<think>B</think> no, <think>C</think>"],
        ["<think>", "</think>", "\n\n"],
    ],
    ids="".join,
)
def test_labels_inside_thought_are_not_read(thought: list[str]) -> None:
    assert read(*sure(*thought), letter()) == READ
    assert read_lines([*sure(*thought), letter()], [LETTERS])[0].probabilities == pytest.approx(
        READ
    )


@pytest.mark.parametrize("thought", ["<think>A", "<think>\nB\n", " <reasoning>A\nA\n"])
def test_thought_that_never_ends_holds_no_label(thought: str) -> None:
    tokens = [token(thought, (thought, 0.5), ("A", 0.5))]
    with pytest.raises(Unreadable, match="no text but thought"):
        read(*tokens)
    with pytest.raises(Unreadable):
        read_lines(tokens, [LETTERS])


def test_what_follows_thought_is_found() -> None:
    assert without_thought("<think>a</think>b") == "b"
    assert without_thought("a</think>b") == "b"
    assert without_thought("<thinking>a</thinking>b<thinking>c</thinking>") == (
        "b<thinking>c</thinking>"
    )
    assert without_thought("a <thinking>b</thinking>") == "a <thinking>b</thinking>"
    assert without_thought("<reasoning>a") == ""
    assert without_thought("plain") == "plain"


@pytest.mark.parametrize("begin", ["{", "[", "`", " {", "\n```json\n{"])
def test_text_that_begins_as_json_has_no_thought_to_leave_out(begin: str) -> None:
    text = f'{begin}"why": "it says </think> and <think>"}}'
    assert without_thought(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<think>a</think>b", True),
        (" <thinking>a", True),
        ("<reasoning>", True),
        ("a</think>b", True),
        ("", False),
        ("plain", False),
        ("a <think>", False),
        ("I think", False),
    ],
)
def test_thought_shows_by_its_block_or_the_end_of_one(text: str, shown: bool) -> None:
    assert shows_thought(text) is shown


@pytest.mark.parametrize(
    "tokens", [[], sure("\n", " "), sure("<|im_end|>"), sure("\u010a", "\u2581")]
)
def test_no_text_is_no_label(tokens: list[Token]) -> None:
    with pytest.raises(Unreadable):
        read(*tokens)
    with pytest.raises(Unreadable):
        read_lines(tokens, [LETTERS])


# --- the probabilities ---


def test_tokens_that_read_as_one_label_are_summed() -> None:
    spelled = token(
        "Yes", ("Yes", 0.4), (" yes", 0.2), ("\u2581YES", 0.1), ("no", 0.1), ("maybe", 0.1)
    )
    line = read_single([spelled], YES_NO)
    assert line.probabilities == pytest.approx({0: 0.7, 1: 0.1})
    assert line.mass == pytest.approx(0.8)


def test_byte_marks_and_new_lines_in_alternatives_read_as_what_they_stand_for() -> None:
    spelled = token(
        "A", ("A", 0.3), ("A\u010a", 0.2), ("A<0x0A>", 0.1), ("\u0120A", 0.05), ("B.", 0.2)
    )
    assert read(spelled) == {0: 0.65, 1: 0.2}


def test_a_label_over_two_tokens_is_read_at_the_first_of_them() -> None:
    tokens = [
        token("y", ("y", 0.7), ("n", 0.2), ("Yes", 0.05)),
        token("es", ("es", 1.0), ("no", 0.0)),
    ]
    assert read(*tokens, labels=YES_NO) == {0: 0.75, 1: 0.2}
    assert read_lines([*tokens, *sure("\n"), *tokens], [YES_NO, YES_NO])[
        1
    ].probabilities == pytest.approx({0: 0.75, 1: 0.2})


def test_beginnings_count_only_where_the_label_came_in_parts() -> None:
    whole = token("yes", ("yes", 0.7), ("y", 0.1), ("n", 0.1))
    assert read(whole, labels=YES_NO) == {0: 0.7}


def test_a_beginning_of_two_labels_counts_for_neither() -> None:
    tokens = [token("l", ("l", 0.9), ("h", 0.1)), *sure("ow")]
    assert read(*tokens, labels=("low", "last", "high")) == {2: 0.1}


def test_the_token_itself_counts_where_its_alternatives_leave_it_out() -> None:
    left_out = Token("A", math.log(0.6), (("B", math.log(0.3)), ("x", math.log(0.05))))
    line = read_single([left_out], LETTERS)
    assert line.probabilities == pytest.approx({0: 0.6, 1: 0.3})


@pytest.mark.parametrize("marks", [("A", "A"), ("A", "\u2581A"), ("\u2581A", "A")])
def test_two_tokens_of_one_text_count_together(marks: tuple[str, str]) -> None:
    """Some servers decode a token with a space before it to the same text as the one without."""
    first, second = marks
    line = read_single([token("A", (first, 0.85), ("B", 0.1), (second, 0.01))], LETTERS)
    assert line.probabilities == pytest.approx({0: 0.86, 1: 0.1})


def test_a_token_that_is_listed_twice_counts_once() -> None:
    line = read_single([token("A", ("A", 0.6), ("B", 0.1), ("A", 0.6))], LETTERS)
    assert line.probabilities == pytest.approx({0: 0.6, 1: 0.1})


@pytest.mark.parametrize(
    "alternatives",
    [
        [("Sorry", 0.9), ("I", 0.08)],
        [("The", 0.6), ("A", 0.3)],
        [("Well", 0.5), ("I", 0.2), ("A", 0.1)],
    ],
    ids=str,
)
def test_a_first_position_whose_labels_may_be_words_of_prose_is_no_answer(
    alternatives: list[tuple[str, float]],
) -> None:
    tokens = [token(alternatives[0][0], *alternatives), *sure(", it is about a refund")]
    with pytest.raises(Unreadable, match="word of prose"):
        read_single(tokens, tuple("ABCDEFGHIJK"))
    # A trace of another label, of which twenty alternatives may have some, does not change that.
    traced = [token(alternatives[0][0], *alternatives, ("C", 1e-6)), *sure(", it is a refund")]
    with pytest.raises(Unreadable, match="word of prose"):
        read_single(traced, tuple("ABCDEFGHIJK"))
    told = [token(alternatives[0][0], *alternatives, ("C", 0.018)), *sure(", it is a refund")]
    assert len(read_single(told, tuple("ABCDEFGHIJK")).probabilities) > 1


def test_a_missing_label_is_at_most_as_probable_as_the_smallest_alternative() -> None:
    line = read_single([token("A", ("A", 0.6), ("B", 0.1), ("x", 0.05))], LETTERS)
    assert line.bound == pytest.approx(0.05)


def test_missing_labels_share_what_the_alternatives_leave() -> None:
    line = read_single([token("A", ("A", 0.9), ("x", 0.06))], LETTERS)
    assert line.bound == pytest.approx(0.02)


def test_few_alternatives_are_used() -> None:
    line = read_single([token("A", ("A", 0.7), ("B", 0.2))], tuple("ABCDEFGH"))
    assert line.probabilities == pytest.approx({0: 0.7, 1: 0.2})
    assert line.bound == pytest.approx(0.1 / 6)


def test_more_probability_than_there_is_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="more than 1"):
        read(token("A", ("A", 1.0), ("B", 1.0)))
    assert read(token("A", ("A", 0.9), ("B", 0.105))) == {0: 0.9, 1: 0.105}  # but for rounding


# --- several lines ---


def test_each_line_has_its_own_labels() -> None:
    tokens = [letter(), *sure("\n"), yes(), *sure("\n"), letter("B")]
    lines = read_lines(tokens, [LETTERS, YES_NO, LETTERS])
    assert [max(line.probabilities, key=line.probabilities.__getitem__) for line in lines] == [
        0,
        0,
        1,
    ]


def test_lines_may_be_dressed_up_each_in_its_own_way() -> None:
    tokens = [
        *sure("Line 1: "),
        letter(),
        *sure(". billing\n\n", "Line 2: "),
        yes(" yes"),
        *sure("<|im_end|>"),
    ]
    found = read_lines(tokens, [LETTERS, YES_NO])
    assert found[0].probabilities == pytest.approx(READ)
    assert found[1].probabilities == pytest.approx({0: 0.8, 1: 0.125})


def test_lines_without_any_label_are_passed_over() -> None:
    tokens = [
        *sure("Here are my answers", "\n"),
        letter(),
        *sure("\n---\n"),
        yes(),
        *sure("\nBye!"),
    ]
    assert len(read_lines(tokens, [LETTERS, YES_NO])) == 2


@pytest.mark.parametrize(
    "tokens",
    [
        [letter()],
        [letter(), *sure("\n"), yes(), *sure("\n"), yes()],
        [yes(), *sure("\n"), letter()],
        [letter(), *sure(" "), yes()],
        [letter(), *sure(", "), yes()],
        [letter(), *sure("\n"), letter()],
        [token("A\nyes", ("A\nyes", 0.9), ("B", 0.1)), *sure("\n"), yes()],
    ],
)
def test_lines_that_are_not_as_wanted_are_unreadable(tokens: list[Token]) -> None:
    with pytest.raises(Unreadable):
        read_lines(tokens, [LETTERS, YES_NO])


def numbered(*before: str) -> list[Token]:
    """As many lines with a label, with these in front of it."""
    return [one for text in before for one in (*sure(text), letter(), *sure("\n"))]


@pytest.mark.parametrize(
    "before",
    [
        ("1. ", "2. ", "3. "),
        ("Line 1: ", "Line 2: ", "Line 3: "),
        ("Q1: ", "q 2) ", "question 3: "),
        ("1) ", "2) ", ""),
        ("", "", "3. "),
        ("- 1. ", "- 2. ", "- 3. "),
        ("**1.** ", "**2.** ", "**3.** "),
        ("01. ", "02. ", "03. "),
    ],
    ids=str,
)
def test_lines_may_be_numbered_in_their_order(before: tuple[str, ...]) -> None:
    assert len(read_lines(numbered(*before), [LETTERS] * 3)) == 3


@pytest.mark.parametrize(
    "before",
    [
        ("2. ", "1. ", "3. "),
        ("1. ", "1. ", "2. "),
        ("0. ", "1. ", "2. "),
        ("1. ", "2. ", "4. "),
        ("", "1. ", "2. "),
        ("Line 3: ", "Line 2: ", "Line 1: "),
        ("- 2. ", "- 1. ", "- 3. "),
        ("**2.** ", "**1.** ", "**3.** "),
    ],
    ids=str,
)
def test_lines_that_are_numbered_in_another_order_are_unreadable(before: tuple[str, ...]) -> None:
    with pytest.raises(Unreadable, match="numbered in another order"):
        read_lines(numbered(*before), [LETTERS] * 3)


def test_a_line_without_a_label_takes_no_number() -> None:
    tokens = [*sure("Here they are:\n"), *numbered("1. ", "2. "), *sure("That is all")]
    assert len(read_lines(tokens, [LETTERS] * 2)) == 2


def test_lines_need_no_probability_on_other_tokens_than_their_labels() -> None:
    tokens = [Token("Line 1: ", 0.0, ()), letter(), Token("\n", 0.0, ()), yes()]
    assert len(read_lines(tokens, [LETTERS, YES_NO])) == 2


# --- the tokens of the reply's text ---


def told(text: str, *texts: str) -> list[str]:
    """The texts of the tokens that are the completion's text."""
    return [one.text for one in answer_tokens(Completion(text, tuple(sure(*texts))))]


def test_the_tokens_of_a_plain_reply_are_all_of_its_tokens() -> None:
    assert told("A\nyes", "A", "\n", "yes") == ["A", "\n", "yes"]
    assert told(" A\n", "A") == ["A"]
    assert told("A", "\n", " A", "\n") == ["\n", " A", "\n"]


@pytest.mark.parametrize(
    "thought",
    [
        ["<think>", "\n", "It is B", "\n", "</think>", "\n\n"],
        ["It", " is", " B", "\n\n"],
        ["A"],
        ["yes", "\n", "A", "\n"],
        ["<|channel|>", "analysis", "<|message|>", "B?", "<|end|>", "<|start|>", "final"],
    ],
    ids="".join,
)
def test_tokens_of_thought_before_the_text_are_left_out(thought: list[str]) -> None:
    assert told("A", *thought, "A") == ["A"]
    assert told("A\nyes", *thought, "A", "\n", "yes")[-3:] == ["A", "\n", "yes"]
    assert "".join(told("A\nyes", *thought, "A", "\n", "yes")).strip() == "A\nyes"


@pytest.mark.parametrize(
    "end",
    ["<|im_end|>", "<|eot_id|>", "</s>", "<eos>", "<end_of_turn>", "<|return|>", "\n"]
    + ["<\uff5cend\u2581of\u2581sentence\uff5c>", ""],
)
def test_the_mark_at_the_end_of_a_reply_is_no_text_of_it(end: str) -> None:
    assert told("A", "A", end)[0] == "A"
    assert told("A", "It is B", "\n", "A", end)[0] == "A"
    tokens = (*sure("It is B", "\n"), letter(), *sure(end))
    assert read(*answer_tokens(Completion("A", tokens))) == READ


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("A. billing", ["\u2581A", ".", "\u2581billing"]),
        ("A. billing", ["\u0120A", ".", "\u0120billing", "\u010a"]),
        ("A\nyes", ["A", "<0x0A>", "yes", "</s>"]),
        ("A \u2013 g\u00e9n\u00e9ral", ["A", " \u2013", " g", "\u00e9", "n", "\u00e9", "ral"]),
    ],
    ids=str,
)
def test_the_tokens_may_be_written_with_the_marks_of_a_tokenizer(
    text: str, texts: list[str]
) -> None:
    assert told(text, *texts) == texts
    thought = ["\u2581So", "\u2581B", "\n"]
    assert "".join(told(text, *thought, *texts)).endswith("".join(texts))


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("A", []),
        ("A", ["B"]),
        ("A", ["A", "B"]),
        ("A\nyes", ["yes"]),
        ("A\nyes", ["B", "\n", "yes"]),
        ("yes", ["es"]),
        ("Paris", ["A"]),
    ],
    ids=str,
)
def test_tokens_of_another_text_are_not_read(text: str, texts: list[str]) -> None:
    with pytest.raises(Unreadable, match="not those of the reply's text"):
        told(text, *texts)
    with pytest.raises(Unreadable, match="not those of the reply's text"):
        answer_tokens(Completion("A", None))


# --- whatever comes ---


@pytest.mark.parametrize(
    "piece",
    [
        "answer ",
        "the answer is ",
        "answer is answer",
        "my my ",
        "Line 1: ",
        "1. ",
        "1",
        "q 1 ",
        "- ",
        "*",
        "A ",
        "A, ",
        "A. ",
        "A or ",
        "yes/",
        " ",
        "\n",
        "A\n",
        "answer\n",
        "<|",
        "<|a",
        "<think>",
        "<think></think>",
        "\u0120",
        "<0x0A>",
        "\r",
    ],
)
@pytest.mark.parametrize("in_one_token", [True, False])
def test_a_hostile_reply_is_dealt_with_at_once(piece: str, in_one_token: bool) -> None:
    count = 100_000 // len(piece)
    texts = [piece * count] if in_one_token else [piece] * count
    tokens = [token(text, ("zebra", 0.9), ("zoo", 0.05)) for text in texts[:1]] * len(texts)
    began = time.process_time()
    for labels in (LETTERS, YES_NO):
        for reading in (read_single, lambda t, one: read_lines(t, [one] * 3)):
            try:
                reading(tokens, labels)
            except Unreadable:
                continue
    assert time.process_time() - began < LONGEST_S


@pytest.mark.parametrize("piece", ["\u010a", "<|", "<0x0A>", "\u010aA"])
def test_tokens_that_spell_millions_of_characters_are_not_looked_through(piece: str) -> None:
    tokens = [token("A", ("A", 0.9)), token(piece * 2_000_000, ("zebra", 0.9))]
    began = time.process_time()
    for reading in (read_single, lambda t, one: read_lines(t, [one] * 3)):
        with pytest.raises(Unreadable, match="far longer"):
            reading(tokens, LETTERS)
    with pytest.raises(Unreadable, match="far longer"):
        answer_tokens(Completion("!A", tuple(tokens)))
    assert time.process_time() - began < LONGEST_S


class Places:
    """A pattern of labels that notes at which places of a line it looks for one."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern, self.looked = pattern, list[int]()

    def match(self, line: str, at: int = 0) -> re.Match[str] | None:
        self.looked.append(at)
        return self._pattern.match(line, at)


@pytest.mark.parametrize("before", ["(" * 16, "- " * 8, "answer is " * 4, "1. " * 5, ""])
def test_the_label_of_a_line_is_looked_for_in_one_place(
    monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    places = Places(re.compile(r"(?P<label>A)\b"))
    monkeypatch.setattr(label_reading, "_pattern", lambda labels: places)
    assert len(read_lines(sure(before, "customer\n", before, "A"), [LETTERS])) == 1
    assert places.looked[:2] == [len(before), len(before)]


def test_thousands_of_lines_of_labels_are_dealt_with_at_once() -> None:
    began = time.process_time()
    many = tuple(f"O{number}" for number in range(255))
    for labels in (LETTERS, many):
        lines = [letter(labels[0]), *sure("\n")] * 8_000
        with pytest.raises(Unreadable):
            read_lines(lines, [labels] * 3)
        with contextlib.suppress(Unreadable):
            read_single(lines, labels)
        assert len(read_lines(lines, [labels] * 8_000)) == 8_000
        lines = [*sure("- "), letter(labels[0]), *sure(". x\n")] * 8_000
        with pytest.raises(Unreadable):
            read_lines(lines, [labels] * 3)
        text = "".join(one.text for one in lines)
        answer_tokens(Completion(text[len(text) // 2 :], tuple(lines)))
        with pytest.raises(Unreadable):
            answer_tokens(Completion("x" + "1" * 100_000, tuple(lines)))
    assert time.process_time() - began < LONGEST_S


TEXTS = st.sampled_from(
    ["A", "B", "yes", "no", " a", "YES\n", "\n", "", " ", "x", "<|end|>", "A\nB", "Answer: ", "1. "]
    + [
        "<think>",
        "</think>",
        "\u010a",
        "</s>",
        ",",
        " or ",
        "**",
        "```",
        "I",
        "A customer",
        "\ud7ff",
    ]
)
LOGPROBS = st.floats(max_value=0.0, allow_nan=False) | st.just(-9999.0)
TOKENS = st.builds(
    Token, TEXTS, LOGPROBS, st.lists(st.tuples(TEXTS, LOGPROBS), max_size=5).map(tuple)
)


def assert_sound(line: LabelLine, labels: Sequence[str]) -> None:
    assert all(0 <= at < len(labels) and 0 <= p <= 1 for at, p in line.probabilities.items())
    assert 0 <= line.bound <= 1
    assert line.mass is not None and 0 <= line.mass <= 1
    assert line.mass == pytest.approx(min(1.0, math.fsum(line.probabilities.values())))


@settings(max_examples=300, deadline=None)
@given(st.lists(TOKENS, max_size=9), st.sampled_from([LETTERS, NINE, YES_NO]))
def test_any_tokens_are_read_soundly_or_not_at_all(
    tokens: list[Token], labels: tuple[str, ...]
) -> None:
    with contextlib.suppress(Unreadable):
        assert_sound(read_single(tokens, labels), labels)
    for wanted in ([labels], [labels, YES_NO], [LETTERS, labels, NINE]):
        try:
            found = read_lines(tokens, wanted)
        except Unreadable:
            continue
        assert len(found) == len(wanted)
        for line, one in zip(found, wanted, strict=True):
            assert_sound(line, one)

from __future__ import annotations

import pytest

from svc.cli.tables import milliseconds, table, width


def test_words_are_aligned_to_the_left_and_numbers_to_the_right() -> None:
    assert table(("set", "rows"), [("a", "12,000"), ("spam", "5")]) == [
        "set     rows",
        "a     12,000",
        "spam       5",
    ]


def test_columns_of_words_are_named_by_their_place() -> None:
    assert table(("id", "n", "state"), [("key_1", "60", "active")], text={0, 2}) == [
        "id      n  state",
        "key_1  60  active",
    ]


def test_a_table_may_have_no_head() -> None:
    assert table((), [("a", "1"), ("bb", "22")]) == ["a    1", "bb  22"]


def test_a_head_alone_is_a_table() -> None:
    assert table(("id", "name"), []) == ["id  name"]


def test_no_line_ends_with_blanks() -> None:
    assert table(("a", ""), [("b", "why"), ("c", "")], text={0, 1}) == ["a", "b  why", "c"]


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("質問", 4), ("e\u0301", 1), ("", 0)])
def test_a_text_is_as_wide_as_a_terminal_shows_it(text: str, columns: int) -> None:
    assert width(text) == columns


def test_wide_characters_and_accents_do_not_shift_a_column() -> None:
    lines = table(("name", "n"), [("質問", "1"), ("re\u0301sume\u0301", "22")])
    assert [width(line) for line in lines] == [10, 10, 10]


def test_what_a_terminal_would_act_on_is_replaced() -> None:
    assert table(("a",), [("\x1b[31mred\n",)]) == ["a", "?[31mred?"]


@pytest.mark.parametrize(("duration", "text"), [(None, "-"), (12.4, "12 ms"), (1_234, "1.2 s")])
def test_a_duration_is_in_the_unit_that_fits(duration: float | None, text: str) -> None:
    assert milliseconds(duration) == text


ROWS = [("spam", "12,000", "a wording that takes much room", "short"), ("x", "5", "", "")]


def test_words_are_cut_where_a_terminal_is_narrow_the_longest_first() -> None:
    head = ("set", "rows", "why", "what")
    assert table(head, ROWS, {0, 2, 3}, room=40) == [
        "set     rows  why                  what",
        "spam  12,000  a wording that tak…  short",
        "x          5",
    ]
    assert (
        table(head, ROWS, {0, 2, 3}, room=52)[1]
        == "spam  12,000  a wording that takes much room  short"
    )


def test_columns_without_room_follow_below_beside_the_first() -> None:
    rows = [("spam", "12,000", "1.0%", "0.123"), ("x", "5", "-", "-")]
    assert table(("set", "rows", "share", "ECE"), rows, room=20) == [
        "set     rows  share",
        "spam  12,000   1.0%",
        "x          5      -",
        "",
        "set     ECE",
        "spam  0.123",
        "x         -",
    ]


@pytest.mark.parametrize("room", range(12, 60))
def test_no_line_is_wider_than_the_terminal(room: int) -> None:
    rows = [("質問" * 9, "12,000", "e\u0301" * 40), ("x", "5", "-")]
    assert all(width(line) <= max(room, 26) for line in table(("a", "b", "c"), rows, {0, 2}, room))

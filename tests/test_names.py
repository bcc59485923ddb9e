from __future__ import annotations

import pytest

from svc.names import UnsoundName, normal_form, project_name, visible_text


@pytest.mark.parametrize(
    "name",
    ["default", "mine & yours", "a" * 200, "Übersicht", "заказы", "παραγγελίες", "注文 2", "5 µm"]
    + ["Tシャツ\uff12\uff10\uff12\uff14", "plan\uff12", "\u0540\u0561\u0575Svc", "注文shop"]
    + ["alpha-\u03b1", "shop/заказы", "\U0001f600", "é", "ordini_2026", "क्षेत्र"],
)
def test_names_of_any_script_are_kept(name: str) -> None:
    assert project_name(name) == name


def test_names_that_are_written_in_two_ways_are_one() -> None:
    assert project_name("Cafe\u0301") == project_name("Caf\u00e9") == "Caf\u00e9"
    assert project_name("\u212b") == "\u00c5"


@pytest.mark.parametrize(
    "unseen",
    ["\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\u00ad", "\ue000", "\x00", "\x7f"]
    + ["\u2028", "\u0378", "\ud800", "\ufe0f", "\u3164", "\u00a0", "\U000e0041", "\n"]
    + ["\U0001107f", "\U00016fe4", "\U0001da9b"],
)
def test_what_nobody_sees_is_refused(unseen: str) -> None:
    with pytest.raises(UnsoundName, match="must have no control characters"):
        project_name(f"sh{unseen}op")


@pytest.mark.parametrize(
    "name", ["sh\u043ep", "my \u0430pp", "\u0391lpha", "\u043f\u03b1", "p\u0430y-2"]
)
def test_letters_of_scripts_that_look_alike_are_not_mixed_in_a_word(name: str) -> None:
    with pytest.raises(UnsoundName, match="look alike"):
        project_name(name)


@pytest.mark.parametrize("name", ["x" * 201, "e\u0301" * 5_000_000])
def test_a_long_name_is_refused_before_it_is_looked_at(name: str) -> None:
    with pytest.raises(UnsoundName, match="at most 200 characters"):
        project_name(name)


def test_a_text_too_long_for_a_name_is_not_put_in_order() -> None:
    marks = "a" + "\u0301\u0316" * 300_000
    assert normal_form(marks) == marks
    assert normal_form("a\u0301\u0316") != "a\u0301\u0316"


@pytest.mark.parametrize("text", ["x", "x" * 9, "%", "a b", "sh\u043ep", "e\u0301"])
def test_a_visible_text_is_kept_as_it_is(text: str) -> None:
    assert visible_text(text, 9) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must have 1 to 9 characters"),
        ("x" * 10, "must have 1 to 9 characters"),
        (" x", "must not begin or end with a blank"),
        ("a\u200bb", "must have no control characters"),
        ("a\x7fb", "must have no control characters"),
    ],
)
def test_a_text_that_is_not_visible_is_refused(text: str, words: str) -> None:
    with pytest.raises(UnsoundName, match=words):
        visible_text(text, 9)

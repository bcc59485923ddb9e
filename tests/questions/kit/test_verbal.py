"""How models write probabilities in JSON."""

from __future__ import annotations

import math
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.questions.kit.verbal import BOTH, PERCENT, SHARES, SURE, Stated, number_of, stated

LABELS, NAMES = ("A", "B", "C"), ("billing", "Log in ", "none_of_these")


def numbers(member: Any) -> dict[int, float]:
    return dict(stated(member, LABELS, NAMES).numbers)


def bare(member: Any) -> tuple[int, ...]:
    return stated(member, LABELS, NAMES).bare


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.5, 0.5),
        (1, 1.0),
        (0, 0.0),
        (-0.5, 0.0),
        (85, 85.0),
        ("0.5", 0.5),
        (" 85 ", 85.0),
        ("85%", 0.85),
        ("85.5 %", 0.855),
        ("0%", 0.0),
        ("100%", 1.0),
        (None, None),
        (True, None),
        (False, None),
        ("", None),
        ("high", None),
        ("-0.5", None),
        ("1e3", None),
        ("0.5.5", None),
        ("about 85%", None),
        ("85%%", None),
        ("\u0663", None),
        ("9" * 5_000, None),
        ("nan", None),
        ("inf", None),
        (math.nan, None),
        (math.inf, None),
        (-math.inf, None),
        (10**400, None),
        ([0.5], None),
        ({"p": 0.5}, None),
    ],
)
def test_a_number_is_read_from_a_number_or_a_text(value: Any, number: float | None) -> None:
    assert number_of(value) == (None if number is None else pytest.approx(number))


@pytest.mark.parametrize("end", ["", "x", "%", "%x"])
def test_white_space_in_a_number_costs_no_more_than_its_length(end: str) -> None:
    blanks, before = " " * 100_000, time.thread_time()
    found = number_of(f"{blanks}1{blanks}{end}{blanks}")
    assert time.thread_time() - before < 1.0
    assert found == {"": 1.0, "%": 0.01}.get(end)


@pytest.mark.parametrize(
    "name",
    ["B", "b", " B ", "B.", "B:", "B)", "(B)", "[B]", '"B"', "**B**", "B. access", "B: access"]
    + ["B) access", "B - access", "B \u2013 access", "Log in", "log  IN", "(b) whatever"],
)
def test_a_label_is_met_as_models_write_it(name: str) -> None:
    assert numbers({name: 0.5}) == {1: 0.5}
    assert numbers([{"label": name, "probability": 0.5}]) == {1: 0.5}
    assert bare(name) == (1,)


@pytest.mark.parametrize(
    "name", ["", " ", "D", "BB", "B access", "access", "B2", "2", "1. B", "Be: x", "\u0412"]
)
def test_other_names_are_no_label(name: str) -> None:
    assert numbers({name: 0.5}) == {}
    assert bare(name) == ()


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("e-mail: Contact", 0),
        ("E-Mail : anything", 0),
        ("e-mail", 0),
        ("e: see above", 1),
        ("E. whatever", 4),
        ("e", 1),
        ("E - whatever", 4),
        ("e-shop", None),
        ("E-mails: Contact", None),
    ],
)
def test_a_name_before_a_colon_is_met_as_a_whole(name: str, place: int | None) -> None:
    """An option may be called like a letter, or begin with one."""
    letters, names = ("A", "B", "C", "D", "E"), ("e-mail", "x", "phone", "visit", "other")
    if place == 1:
        names = ("e-mail", "e", "phone", "visit", "other")
        place = 4  # a letter wins over an option of that name
    found = stated({name: 0.5}, letters, names).numbers
    assert found == ({} if place is None else {place: 0.5})


@pytest.mark.parametrize(
    "member",
    [
        {"A": 0.7, "C": 0.3},
        {"A": 0.7, "C": "30%"},
        {"A": 0.7, "B": None, "C": 0.3},
        {"A": 0.7, "C": 0.3, "zebra": 9, "note": "x"},
        {"billing": 0.7, "none_of_these": 0.3},
        [{"A": 0.7}, {"C": 0.3}],
        [["A", 0.7], ["C", 0.3]],
        [{"label": "A", "probability": 0.7}, {"label": "C", "probability": 0.3}],
        [{"option": "A", "p": 0.7}, {"choice": "none_of_these", "confidence": 0.3}],
        [{"answer": "A. billing", "likelihood": 0.7}, 5, None, ["x"], {"C": 0.3}],
        [{"A": 0.7, "C": 0.3}, {"A": 0.1}],
    ],
    ids=str,
)
def test_probabilities_may_stand_in_objects_lists_and_entries(member: Any) -> None:
    assert numbers(member) == pytest.approx({0: 0.7, 2: 0.3})
    assert not stated(member, LABELS, NAMES).complete


@pytest.mark.parametrize(
    ("member", "ranked"),
    [
        ("C", (2,)),
        (["C", "A", "C"], (2, 0)),
        ({"label": "C"}, (2,)),
        ({"option": "none_of_these", "reason": "x"}, (2,)),
        ([{"label": "C"}, {"label": "A"}], (2, 0)),
        ([["C", None]], (2,)),
        ({"C": None}, ()),
        ({"C": "likely"}, ()),
        ({"label": "C", "probability": "high"}, ()),
        (["D", 5, None], ()),
    ],
)
def test_labels_may_be_named_alone_the_likeliest_first(
    member: Any, ranked: tuple[int, ...]
) -> None:
    assert bare(member) == ranked
    assert numbers(member) == {}


def test_labels_named_alone_get_two_thirds_of_what_is_left_in_turn() -> None:
    assert Stated(bare=(2,)).on(SHARES) == pytest.approx({2: 2 / 3})
    assert Stated(bare=(2, 0, 1)).on(SHARES) == pytest.approx({2: 2 / 3, 0: 2 / 9, 1: 2 / 27})
    assert pytest.approx(2 / 3) == SURE


def test_labels_named_alone_do_not_count_beside_numbers() -> None:
    found = stated([{"label": "A", "probability": 0.4}, "B"], LABELS, NAMES)
    assert found.on(SHARES) == {0: 0.4}


def test_a_yes_or_no_may_be_a_boolean_where_those_are_names() -> None:
    assert stated(True, ("yes", "no"), ("true", "false")).bare == (0,)
    assert stated(False, ("yes", "no"), ("true", "false")).bare == (1,)
    assert stated(True, LABELS, NAMES).bare == ()


# --- the scale ---


def of(*values: float, whole: bool = True, complete: bool = True) -> frozenset[float]:
    return Stated(dict(enumerate(values)), (), whole, complete).scales


def test_numbers_up_to_one_are_shares() -> None:
    assert of(0.7, 0.3) == of(1.0, 0.0) == of(0.2) == of(0.9, 0.9) == {SHARES}
    assert of(1.0000001, 0.0) == {SHARES}
    assert of(0.5, 0.1, whole=False) == {SHARES}


def test_numbers_of_one_distribution_are_percentages_where_they_sum_to_about_a_hundred() -> None:
    assert of(70, 30) == of(95.5, 0) == of(60, 44.9) == of(0.5, 99.5) == of(1, 99) == {PERCENT}
    assert of(94.9, 0) == of(60, 46) == of(7, 3) == of(50, 0.5) == frozenset()


def test_a_distribution_with_labels_left_out_may_sum_to_less_where_a_number_is_large() -> None:
    assert of(70, complete=False) == of(20.1, complete=False) == of(60, 8, complete=False)
    assert of(70, complete=False) == of(95, complete=False) == {PERCENT}
    assert of(20, complete=False) == of(2, complete=False) == of(7, 2, complete=False)
    assert of(20, complete=False) == of(70, 50, complete=False) == frozenset()


def test_small_numbers_are_percentages_where_they_sum_to_about_a_hundred() -> None:
    assert of(20, 20, 20, 20, 16, complete=False) == {PERCENT}
    assert of(20, 20, 20, 20, complete=False) == frozenset()


def test_independent_numbers_are_percentages_where_each_may_be_one() -> None:
    assert of(90, 80, 70, whole=False) == of(2, 1, 0, whole=False) == {PERCENT}
    assert of(90, 0.5, whole=False) == frozenset()


def test_no_number_beyond_a_hundred_is_on_any_scale() -> None:
    for whole in (True, False):
        assert of(101, whole=whole) == of(1e300, 0, whole=whole) == frozenset()


def test_nothing_is_on_both_scales() -> None:
    assert of() == of(0) == of(0, 0, whole=False) == BOTH
    assert Stated(bare=(1,)).scales == BOTH


def test_a_scale_divides_and_never_goes_over_one() -> None:
    assert Stated({0: 70, 1: 30}).on(PERCENT) == {0: 0.7, 1: 0.3}
    assert Stated({0: 104.0}).on(PERCENT) == {0: 1.0}
    assert Stated({0: 1.0000001}).on(SHARES) == {0: 1.0}


# --- whatever comes ---

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["A", "b. x", "label", "answer", "p", "probability", "log in"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES, st.booleans())
def test_any_member_is_read_as_probabilities_of_its_labels(member: Any, whole: bool) -> None:
    found = stated(member, LABELS, NAMES, whole)
    assert set(found.numbers) | set(found.bare) <= {0, 1, 2}
    assert len(set(found.bare)) == len(found.bare)
    assert all(math.isfinite(number) and number >= 0 for number in found.numbers.values())
    for scale in (SHARES, PERCENT):
        assert all(0 <= p <= 1 for p in found.on(scale).values())
    assert found.scales <= BOTH


def test_a_hostile_member_is_dealt_with_at_once() -> None:
    deep: Any = ["A"]
    for _ in range(300):
        deep = [deep]
    names = [
        "(" * 50_000,
        "A" * 50_000,
        " " * 50_000 + "A",
        "A" + " " * 50_000 + "x",
        "'*" * 25_000,
    ]
    began = time.process_time()
    for member in (deep, *names, dict.fromkeys(names, "1" * 50_000), [{"label": n} for n in names]):
        stated(member, LABELS, NAMES)
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize(
    "names", [("us", "US"), ("Straße", "STRASSE"), ("new york", "new  york"), ("US", "us")]
)
def test_names_that_differ_in_case_or_blanks_alone_are_told_by_how_they_are_written(
    names: tuple[str, str],
) -> None:
    first, second = names
    assert dict(stated({first: 0.9, second: 0.1}, "AB", names).numbers) == {0: 0.9, 1: 0.1}
    assert dict(stated({second: 0.1, first: 0.9}, "AB", names).numbers) == {0: 0.9, 1: 0.1}
    assert dict(stated({"A": 0.9, "B": 0.1}, "AB", names).numbers) == {0: 0.9, 1: 0.1}
    # Neither of them is written so.
    assert dict(stated({f" {first.title()} ": 0.9}, "AB", names).numbers) == {}


def test_a_name_is_met_again_however_many_others_were_looked_up() -> None:
    # More names than are kept, of all lengths.
    others = {f"{'x' * number} nothing": 0.1 for number in range(90)}
    for _ in range(2):
        assert numbers({"(b)": 0.7, "billing.": 0.2, "a: 1": 0.2, **others}) == {1: 0.7, 0: 0.2}


def test_of_a_name_no_more_is_looked_at_than_any_may_have() -> None:
    names = ("access", "billing " + "x" * 400, "other")
    said = {" " * 1_000 + "access ": 0.2, "Billing \n " + "X" * 400: 0.7, "C. " + "y" * 5_000: 0.1}
    assert dict(stated(said, "ABC", names).numbers) == {0: 0.2, 1: 0.7, 2: 0.1}
    assert dict(stated({"x" * 1_000 + ": access": 0.8}, "ABC", names).numbers) == {}


def test_a_shared_name_never_stands_for_what_it_begins_with() -> None:
    names = ("spam: ads", "Spam: ads", "spam")
    said = {"spam: ads": 0.7, "Spam: ads": 0.2, "spam": 0.1}
    assert dict(stated(said, "ABC", names).numbers) == {0: 0.7, 1: 0.2, 2: 0.1}
    assert dict(stated({"SPAM: ADS": 0.9}, "ABC", names).numbers) == {}
    names = ("(b) left", "(B) left", "other")
    said = {"(b) left": 0.8, "(B) left": 0.1, "other": 0.1}
    assert dict(stated(said, "ABC", names).numbers) == {0: 0.8, 1: 0.1, 2: 0.1}


def test_what_is_remembered_of_many_long_names_is_bounded() -> None:
    """Callers choose the names, and each question has others."""
    labels = [f"L{number}" for number in range(250)]
    tracemalloc.start()
    for question in range(100):
        names = [f"{question} {number} {'X' * 380}" for number in range(250)]
        assert stated(names[7], labels, names).bare == (7,)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 16_000_000

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.questions.kit.lettering import argmax, complete, letters, normalised, tidy

WEIGHTS = st.lists(st.floats(0, 1e300), min_size=1, max_size=256).filter(any)


def test_letters_go_on_as_spreadsheet_columns_do() -> None:
    names = letters(256)
    assert (names[0], names[25], names[26], names[27], names[255]) == ("A", "Z", "AA", "AB", "IV")
    assert len(set(names)) == 256


def test_missing_labels_share_what_is_left() -> None:
    assert complete({0: 0.7, 1: 0.1}, 4) == pytest.approx((0.7, 0.1, 0.1, 0.1))


def test_a_missing_label_is_no_more_probable_than_its_bound() -> None:
    assert complete({0: 0.5, 1: 0.1}, 3, bound=0.1) == pytest.approx((5 / 7, 1 / 7, 1 / 7))
    assert complete({0: 0.5, 1: 0.1}, 3, bound=0.0) == pytest.approx((5 / 6, 1 / 6, 0.0))
    assert complete({0: 0.5, 1: 0.1}, 3, bound=0.9) == pytest.approx((0.5, 0.1, 0.4))


@pytest.mark.parametrize("seen", [{}, {0: 0.0}, {0: -1.0}, {0: math.nan}, {0: math.inf}, {9: 0.5}])
def test_nothing_usable_is_no_distribution(seen: dict[int, float]) -> None:
    assert complete(seen, 3) is None


@given(st.dictionaries(st.integers(-2, 30), st.floats()), st.integers(2, 26), st.floats(0, 1))
def test_a_completed_distribution_is_one(seen: dict[int, float], count: int, bound: float) -> None:
    filled = complete(seen, count, bound=bound)
    if filled is not None:
        assert len(filled) == count
        assert all(0 <= p <= 1 for p in filled)
        assert math.fsum(filled) == pytest.approx(1)


@given(WEIGHTS)
def test_rounding_keeps_the_sum_and_the_top(weights: list[float]) -> None:
    exact = normalised(weights)
    rounded = tidy(exact)
    assert math.fsum(rounded) == pytest.approx(1, abs=1e-9)
    assert all(0 <= p <= 1 for p in rounded)
    assert rounded[argmax(exact)] == max(rounded)

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from svc.stats import by_number, numbered


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_rows_are_found_by_their_group(count: int) -> None:
    groups = np.random.default_rng(1).integers(0, count, 12) if count else np.zeros(0, np.int64)
    found = [mine.tolist() for mine in by_number(groups, count)]
    assert found == [np.flatnonzero(groups == number).tolist() for number in range(count)]


def test_a_group_may_have_no_rows() -> None:
    assert [mine.tolist() for mine in by_number(np.array([2, 0, 2]), 4)] == [[1], [], [0, 2], []]


def test_names_are_numbered_in_their_order() -> None:
    names, numbers = numbered(["b", "a", "c", "a"])
    assert (names, numbers.tolist()) == (["a", "b", "c"], [1, 0, 2, 0])
    assert numbered([])[0] == [] and numbered([])[1].dtype == np.int64


def test_a_long_name_takes_no_room_in_the_rows_of_others() -> None:
    """An array of texts has room for the longest in each row: 60 MB here, and copies of it."""
    names = [f"m{n}" for n in range(9_999)] + ["x" * 1_500]
    tracemalloc.start()
    try:
        numbered(names)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()

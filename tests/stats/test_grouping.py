from __future__ import annotations

import numpy as np
import pytest

from svc.stats import by_number


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_rows_are_found_by_their_group(count: int) -> None:
    groups = np.random.default_rng(1).integers(0, count, 12) if count else np.zeros(0, np.int64)
    found = [mine.tolist() for mine in by_number(groups, count)]
    assert found == [np.flatnonzero(groups == number).tolist() for number in range(count)]


def test_a_group_may_have_no_rows() -> None:
    assert [mine.tolist() for mine in by_number(np.array([2, 0, 2]), 4)] == [[1], [], [0, 2], []]

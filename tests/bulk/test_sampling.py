"""The rows that a forecast looks at."""

from __future__ import annotations

import random

from svc import limits
from svc.bulk.sampling import SAMPLE_CHARS, drawn, sample


def rows(count: int) -> list[tuple[str, int]]:
    return [(f"row {n}", n) for n in range(count)]


def test_few_rows_are_all_of_the_sample() -> None:
    assert sorted(sample(rows(60))) == list(range(60))
    assert sample([]) == []


def test_the_sample_is_the_same_in_any_order_and_in_any_parts() -> None:
    whole = rows(5_000)
    mixed = random.Random(1).sample(whole, len(whole))
    parts = [mixed[:7], mixed[7:3_000], mixed[3_000:]]
    assert drawn(mixed) == drawn(whole)
    assert drawn(row for part in parts for row in drawn(part)) == drawn(whole)
    assert len(sample(whole)) == limits.FORECAST_SAMPLE


def test_rows_of_every_place_are_as_likely_as_others() -> None:
    thirds = [n // 10_000 for n in sample(rows(30_000))]
    # One in a hundred thousand samples has so few of a third.
    assert all(thirds.count(third) > 14 for third in range(3))


def test_a_sample_of_long_states_has_fewer_of_them_and_stays_a_request() -> None:
    long = [(str(n), {"text": "x" * 120_000}) for n in range(200)]
    assert len(sample(long)) == SAMPLE_CHARS // 120_011


def test_a_state_that_is_too_long_stays_too_long() -> None:
    (cut,) = sample([("a", {"text": "x" * 10_000_000})])
    assert len(cut) == limits.STATE_CHARS + 1

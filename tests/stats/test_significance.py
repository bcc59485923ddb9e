"""Drift as a test: what it flags, and how seldom without drift."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulations import drift as simulation
from svc.stats.drift import WeekTally, latest_significance, level

REPETITIONS = 15


def week(confidence: float = 0.8, **counts: int) -> WeekTally:
    n = sum(counts.values())
    return WeekTally("", counts, confidence * n, n * (confidence**2 + 0.01))


def test_the_errors_of_all_tests_of_a_year_add_up_to_a_twentieth() -> None:
    for mixed, kinds in ((True, 2), (False, 1)):
        finished, unfinished = (level(mixed=mixed, finished=end) for end in (True, False))
        # Each finished week has a test against all earlier weeks, and one of the month.
        assert 52 * kinds * (2 * finished + 7 * unfinished) == pytest.approx(0.05)


def test_each_week_is_compared_with_the_earlier_weeks_together() -> None:
    weeks = [week(a=50, b=50), week(a=900, b=100), week(a=10, b=90)]
    first, second, third = (
        latest_significance(weeks[:seen], mixed=True, finished=True) for seen in (1, 2, 3)
    )
    assert first["mix"] is first["confidence"] is first["slow_mix"] is None
    assert first["alarm"] is False
    assert second["mix"]["change"] == pytest.approx(0.4)
    assert third["mix"]["change"] == pytest.approx(950 / 1_100 - 0.1, abs=1e-6)
    assert second["alarm"] and third["alarm"]
    assert third["confidence"]["alarm"] is False
    assert third["mix"]["yearly"] <= 0.05 < second["confidence"]["yearly"]


def test_an_unfinished_week_has_less_to_say() -> None:
    weeks = [week(a=80, b=20)] * 8 + [week(a=63, b=37)]
    whole, part = (
        latest_significance(weeks, mixed=True, finished=finished) for finished in (True, False)
    )
    assert whole["mix"]["p"] == part["mix"]["p"]
    assert (whole["alarm"], part["alarm"]) == (True, False)
    assert part["slow_mix"] is None


def test_ten_decisions_on_a_monday_flag_a_collapse_and_nothing_less() -> None:
    earlier = [week(a=85, b=10, c=5)] * 8
    for counts, alarm in (({"a": 6, "b": 3, "c": 1}, False), ({"c": 10}, True)):
        found = latest_significance([*earlier, week(**counts)], mixed=True, finished=False)
        assert found["mix"]["alarm"] is alarm


def test_extracted_values_are_tested_by_confidence_alone() -> None:
    weeks = [WeekTally("", {"": 100}, 90.0, 82.0)] * 6 + [WeekTally("", {"": 100}, 70.0, 55.0)]
    found = latest_significance(weeks, mixed=False, finished=True)
    assert found["mix"] is found["slow_mix"] is None
    assert found["confidence"]["change"] == pytest.approx(-0.2)
    assert found["alarm"]


def test_weeks_whose_squares_were_not_kept_are_tested_too() -> None:
    weeks = [WeekTally("", {"a": 500}, 450.0)] * 6 + [WeekTally("", {"a": 500}, 350.0)]
    assert latest_significance(weeks, mixed=True, finished=True)["confidence"]["alarm"]


def test_the_change_that_chance_makes_stands_beside_it() -> None:
    random = np.random.default_rng(1)
    found = []
    for _ in range(60):
        rows = random.multinomial(300, np.full(77, 1 / 77), size=9)
        weeks = [WeekTally("", {str(n): int(c) for n, c in enumerate(row)}, 240.0) for row in rows]
        found.append(latest_significance(weeks, mixed=True, finished=True)["mix"])
    changes, expected = ([one[key] for one in found] for key in ("change", "by_chance"))
    assert np.mean(changes) == pytest.approx(np.mean(expected), rel=0.05)
    # Which is most of what the fixed rule calls drift.
    assert np.mean(changes) > 0.17


def test_a_year_without_drift_has_hardly_ever_an_alarm() -> None:
    quiet = [project for project in simulation.QUIET if len(project.mix) < 10][:4]
    false = sum(
        bool(simulation.year(project, seed)) for project in quiet for seed in range(REPETITIONS)
    )
    # Of 60 years; 3 would be a twentieth.
    assert false <= 6


def test_a_year_of_mondays_has_hardly_ever_an_alarm() -> None:
    assert sum(simulation.mondays(seed) for seed in range(REPETITIONS)) <= 3


@pytest.mark.parametrize("path", [simulation.SLOW, simulation.AFTER])
def test_a_slow_drift_is_flagged(path: tuple[str, list[float]]) -> None:
    seen = sum(bool(simulation.flagged(300, path[1], seed)[-1]) for seed in range(REPETITIONS))
    assert seen >= 0.8 * REPETITIONS


def test_a_step_that_stays_stays_flagged() -> None:
    for seed in range(5):
        weeks = simulation.flagged(1_000, simulation.STEP[1], seed)
        assert not any(weeks[:8])
        assert all(weeks[8:])


def test_ten_points_are_seen_where_decisions_are_many() -> None:
    seen = sum(bool(simulation.flagged(1_000, simulation.SHIFT[1], seed)[-1]) for seed in range(40))
    assert seen >= 38

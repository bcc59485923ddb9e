"""Weeks of as many different answers as are counted cost little to compare."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from svc.stats import drift, homogeneity
from svc.store.kept_names import KEPT_NAMES
from svc.store.weeks import Week

PROCESSOR_S = 1.0
MEMORY_BYTES = 50_000_000


def test_a_year_of_many_sets_of_options_costs_little() -> None:
    random = np.random.default_rng(4)
    weeks = []
    for number in range(53):
        chosen = random.choice(3 * KEPT_NAMES, KEPT_NAMES, replace=False)
        counts = {f'["{one}"]': int(random.integers(1, 4)) for one in chosen}
        weeks.append(Week(number, counts, 0.7 * sum(counts.values())))
    before = time.thread_time()
    year = [
        drift.WeekTally(week.name, week.counts, week.confidence, None, week.grouped)
        for week in weeks
    ]
    drift.report(year, mixed=True)
    drift.latest_significance(year, mixed=True, finished=True)
    assert time.thread_time() - before < PROCESSOR_S


def test_tables_of_many_columns_cost_little() -> None:
    columns = homogeneity.COLUMNS
    one = [2] * (columns * 5 // 8) + [0] * (columns * 3 // 8)
    other = [2 - count for count in one]
    tracemalloc.start()
    before = time.thread_time()
    assert homogeneity.counts_p_value(one, other) < homogeneity.ORDINARY
    took, (_, peak) = time.thread_time() - before, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < PROCESSOR_S
    assert peak < MEMORY_BYTES


def test_no_week_leaves_answers_without_a_name_that_are_compared_by_name() -> None:
    assert drift.NAMED <= KEPT_NAMES

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from svc.evals.figures import figures_of, wilson
from svc.evals.scoring import Scored
from tests.evals.samples import scored


@pytest.mark.parametrize(("right", "rows"), [(0, 1), (1, 1), (3, 10), (59, 60), (500, 1_000)])
def test_the_interval_is_wilsons(right: int, rows: int) -> None:
    theirs = binomtest(right, rows).proportion_ci(method="wilson")
    assert wilson(right, rows) == pytest.approx((theirs.low, theirs.high))


def test_figures_of_answers_failures_and_skipped_questions() -> None:
    found = figures_of(
        [
            scored("a", "a", 0.95, latency_ms=10.0),
            scored("a", "b", 0.9, latency_ms=20.0, brier=0.4),
            scored("b", "b", 0.55, latency_ms=90.0),
            Scored(label="b", skipped=True, cost_usd=0.25),
            Scored(error="model_error: no"),
        ]
    )
    assert (found.rows, found.right, found.failed, found.skipped) == (3, 2, 1, 1)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.brier == pytest.approx(0.2)
    assert found.ece == pytest.approx((0.05 + 0.9 + 0.45) / 3)
    assert (found.automated, found.accuracy_when_automated) == (pytest.approx(2 / 3), 0.5)
    assert found.cost_usd == pytest.approx(1.75)
    assert (found.median_ms, found.p95_ms) == (20.0, pytest.approx(83.0))
    assert found.confusion == {("a", "a"): 1, ("a", "b"): 1, ("b", "b"): 1}
    assert [one["target"] for one in found.promises] == [0.9, 0.95, 0.99]


@pytest.mark.parametrize("rows", [[], [Scored(error="model_error: no")]])
def test_nothing_answered_has_no_figures(rows: list[Scored]) -> None:
    found = figures_of(rows)
    assert (found.accuracy, found.ece, found.brier, found.automated) == (None,) * 4
    assert (found.median_ms, found.p95_ms, found.interval) == (None, None, (0.0, 1.0))


def test_values_are_not_counted_in_pairs() -> None:
    assert figures_of([scored("4", "5", comparable=False)]).confusion == {}

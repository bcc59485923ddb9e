"""Rates: that the intervals hold the truth, and that probabilities never cost labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks.simulations import rates as simulation
from svc.stats.calibrators import Floats, Ints
from svc.stats.intervals import bounded_mean, effective, wilson
from svc.stats.rates import DecisionSums, rates

REPETITIONS = 200


def period(labels: int, seed: int = 0) -> tuple[DecisionSums, Floats, Ints]:
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(3), 1_000)
    truth = (random.random((1_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    answers = np.bincount(p.argmax(axis=1), minlength=3)
    return DecisionSums(1_000, p.sum(axis=0), answers), p[:labels], truth[:labels]


@pytest.mark.parametrize("name", ["calibrated", "biased", "useless", "misleading", "rare"])
@pytest.mark.parametrize("sampled", ["evenly", "by doubt"])
def test_the_intervals_hold_the_true_rate(name: str, sampled: str) -> None:
    found = simulation.replays(simulation.WORLDS[name], 100, REPETITIONS, seed=900, sampled=sampled)
    # A true 95% stays within these in all but one run of a thousand.
    assert (found.covered >= 0.905).all()
    # Few labels of a rare answer are held to hide more than they do.
    assert found.covered.mean() <= (1.0 if name == "rare" else 0.99)
    assert (found.width <= 1.02).all()


def test_probabilities_that_track_truth_save_a_fifth_of_the_labels_and_more() -> None:
    found = simulation.replays(simulation.WORLDS["calibrated"], 200, 100, seed=1)
    assert (found.width <= 0.8).all()
    assert (found.error <= 0.9).all()


def test_probabilities_that_tell_nothing_cost_nothing() -> None:
    for name in ("useless", "misleading"):
        found = simulation.replays(simulation.WORLDS[name], 50, 200, seed=2)
        assert (found.width <= 1.02).all()
        assert (found.error <= 1.1).all()


def test_the_estimate_is_that_of_ppi_with_the_same_power() -> None:
    decisions, p, truth = period(200)
    unlabelled = (decisions.probabilities - p.sum(axis=0)) / 800
    for option, rate in enumerate(rates(decisions, p, truth)):
        # Theirs multiplies the mean over decisions without a label, and has its own scale.
        power = rate.power * 800 / 1_000
        theirs = power * unlabelled[option] + np.mean((truth == option) - power * p[:, option])
        assert rate.rate.estimate == pytest.approx(theirs, abs=1e-12)


def test_weights_undo_how_labels_were_chosen() -> None:
    random = np.random.default_rng(3)
    estimates = []
    for seed in range(60):
        decisions, p, truth = period(1_000, seed)
        chance = np.where(truth == 0, 0.9, 0.15)
        chosen = random.random(1_000) < chance
        found = rates(decisions, p[chosen], truth[chosen], 1 / chance[chosen])
        estimates.append([rate.rate.estimate for rate in found])
    assert np.mean(estimates, axis=0) == pytest.approx([1 / 3] * 3, abs=0.015)


def test_equal_weights_are_none_in_any_unit() -> None:
    decisions, p, truth = period(80)
    one, other = (rates(decisions, p, truth, weights) for weights in (None, np.full(80, 7.0)))
    for plain, weighted in zip(one, other, strict=True):
        assert plain.rate.low == pytest.approx(weighted.rate.low)
        assert plain.power == pytest.approx(weighted.power)


def test_an_answer_never_seen_has_a_rate_above_none_and_both_sides_of_a_yes_or_no_agree() -> None:
    p = np.tile([0.01, 0.99], (40, 1))
    decisions = DecisionSums(4_000, np.array([80.0, 3_920.0]), np.array([60, 3_940]))
    yes, no = rates(decisions, p, np.ones(40, dtype=np.int64))
    assert (yes.rate.estimate, yes.rate.low) == (0.0, 0.0)
    assert 0.05 < yes.rate.high < 0.15
    assert no.rate.low == pytest.approx(1 - yes.rate.high)
    assert yes.naive == 0.015


@pytest.mark.parametrize("labels", [1, 2, 9])
def test_too_few_labels_to_fit_a_power_stand_alone(labels: int) -> None:
    decisions, p, truth = period(labels)
    for rate in rates(decisions, p, truth):
        assert rate.power == 0
        assert rate.rate == rate.labels_alone
        assert rate.worth == 1


def test_without_labels_there_are_no_rates() -> None:
    decisions, p, truth = period(0)
    assert rates(decisions, p, truth) == []


def test_what_callers_see_is_complete() -> None:
    decisions, p, truth = period(50)
    found = rates(decisions, p, truth)[0].as_json
    assert set(found) == {"estimate", "low", "high", "naive", "labels_alone", "power", "worth"}
    assert found["low"] < found["estimate"] < found["high"]


@pytest.mark.parametrize(("share", "n"), [(0.0, 30), (0.1, 30), (0.5, 200), (1.0, 5)])
def test_a_share_of_equal_rows_has_wilsons_interval(share: float, n: int) -> None:
    count = round(share * n)
    expected = binomtest(count, n).proportion_ci(method="wilson")
    values = (np.arange(n) < count).astype(np.int64)
    for found in (wilson(share, n), bounded_mean(values)):
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_unequal_weights_are_worth_fewer_rows() -> None:
    assert effective(np.ones(7)) == pytest.approx(7)
    assert effective(np.array([1.0, 1.0, 100.0])) < 1.1
    values = np.arange(100) % 2
    even, uneven = bounded_mean(values), bounded_mean(values, np.linspace(0.1, 5, 100))
    assert uneven.high - uneven.low > even.high - even.low


def test_values_that_vary_little_have_a_narrower_interval_that_holds_their_mean() -> None:
    held = widths = 0.0
    for seed in range(300):
        values = np.random.default_rng(seed).beta(2, 20, 1_000)
        found = bounded_mean(values)
        held += found.low <= 2 / 22 <= found.high
        widths += found.high - found.low
    assert 0.93 <= held / 300 <= 0.995
    assert widths / 300 < 0.4 * (wilson(2 / 22, 1_000).high - wilson(2 / 22, 1_000).low)

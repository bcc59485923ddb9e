"""Fits against scikit-learn's, penalised and not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.calibration import _TemperatureScaling
from sklearn.linear_model import LogisticRegression

from svc.stats.calibrators import (
    AS_IS,
    SMALLEST,
    TEMPERATURES,
    Floats,
    Ints,
    Platt,
    Temperature,
    log_odds,
)
from svc.stats.fitting import (
    SHIFT_SD,
    SLOPE_SD,
    STRENGTH,
    effective,
    fit_biased,
    fit_platt,
    fit_temperature,
)
from svc.stats.tasks import TASKS
from tests.stats import judges, problems

AGREE = 1e-3
OPTIMUM = 1e-4


def loss(calibrator: Temperature, p: Floats, truth: Ints) -> float:
    task = TASKS["classes"]
    return float(task.log_losses(calibrator.apply(p), truth).sum())


@pytest.mark.parametrize("seed", problems.SEEDS)
def test_a_temperature_without_a_penalty_is_scikit_learns(seed: int) -> None:
    p, truth = problems.classes(seed)
    oracle = _TemperatureScaling().fit(np.log(np.maximum(p, SMALLEST)), truth)
    expected = np.clip(1 / float(oracle.beta_), *TEMPERATURES)
    found = fit_temperature(p, truth, strength=0.0).t
    assert found == pytest.approx(expected, abs=AGREE, rel=AGREE)


@pytest.mark.parametrize("strength", [0.0, STRENGTH])
@pytest.mark.parametrize("verbal", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_the_optimum_is_found_with_any_number_of_options(
    seed: int, verbal: bool, strength: float
) -> None:
    p, truth = problems.options(seed, verbal=verbal)
    found = math.log(fit_temperature(p, truth, strength=strength).t)
    assert found == pytest.approx(judges.temperature(p, truth, strength), abs=OPTIMUM)


@pytest.mark.parametrize(("name", "p", "truth"), list(problems.edges_of_classes()))
@pytest.mark.parametrize("strength", [0.0, STRENGTH])
def test_the_optimum_is_found_at_the_edges(
    name: str, p: Floats, truth: Ints, strength: float
) -> None:
    ours = fit_temperature(p, truth, strength=strength)
    assert TEMPERATURES[0] <= ours.t <= TEMPERATURES[1]
    judge = Temperature(math.exp(judges.temperature(p, truth, strength)))
    assert ours.apply(p) == pytest.approx(judge.apply(p), abs=AGREE)


@pytest.mark.parametrize("bias_sd", [0.3, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_biases_are_those_of_scikit_learns_penalised_loss(seed: int, bias_sd: float) -> None:
    p, truth = problems.classes(seed)
    weights = np.random.default_rng(seed).uniform(0.2, 2, len(truth))
    ours = fit_biased(p, truth, weights, bias_sd=bias_sd)
    expected = judges.biased(p, truth, STRENGTH, bias_sd, weights)
    assert (1 / ours.t, *ours.bias) == pytest.approx(expected, abs=AGREE)


def test_two_options_with_biases_are_a_penalised_logistic_regression() -> None:
    """The bias of each is shrunk alike, so their difference has twice the variance."""
    p, truth = problems.binary(3)
    both, sd = np.hstack([1 - p, p]), 0.7
    ours = fit_biased(both, truth, bias_sd=sd)
    offsets = ours.bias[1] - ours.bias[0]
    z = log_odds(p[:, 0]) / ours.t
    slope = (truth - 1 / (1 + np.exp(-(z + offsets)))).sum()
    assert slope == pytest.approx(offsets / (2 * sd**2), abs=1e-5)


@pytest.mark.parametrize("seed", problems.SEEDS)
def test_platts_parameters_are_those_of_scikit_learns_penalised_loss(seed: int) -> None:
    p, truth = problems.binary(seed)
    weights = np.random.default_rng(seed).uniform(0.2, 2, len(truth)) if seed % 2 else None
    ours = fit_platt(p, truth, weights)
    expected = judges.platt(p, truth, (SLOPE_SD, SHIFT_SD), weights)
    assert (ours.a, ours.b) == pytest.approx(expected, abs=AGREE)


@pytest.mark.parametrize("seed", range(20))
def test_a_slope_drawn_towards_nothing_is_scikit_learns_logistic_regression(seed: int) -> None:
    p, truth = problems.binary(seed)
    x = log_odds(p[:, 0])
    judge = LogisticRegression(C=0.25, tol=1e-10, max_iter=1_000).fit(x[:, None], truth)
    ours = fit_platt(p, truth, towards=Platt(0.0, 0.0), slope_sd=0.5, shift_sd=1e6)
    assert ours.a == pytest.approx(float(judge.coef_[0, 0]), abs=AGREE)
    assert ours.b == pytest.approx(float(judge.intercept_[0]), abs=AGREE)


@pytest.mark.parametrize(("name", "p", "truth"), list(problems.edges_of_binary()))
def test_platts_predictions_at_the_edges_are_the_judges(name: str, p: Floats, truth: Ints) -> None:
    expected = Platt(*judges.platt(p, truth, (SLOPE_SD, SHIFT_SD)))
    assert fit_platt(p, truth).apply(p) == pytest.approx(expected.apply(p), abs=AGREE)


def test_a_label_that_counts_twice_is_two_labels_but_for_the_penalty() -> None:
    p, truth = problems.classes(5)
    twice = np.arange(len(truth)) % 3 == 0
    weighted = fit_temperature(p, truth, np.where(twice, 2.0, 1.0), strength=0.0)
    doubled = np.concatenate([np.arange(len(truth)), np.flatnonzero(twice)])
    assert weighted.t == pytest.approx(fit_temperature(p[doubled], truth[doubled], strength=0.0).t)


def test_only_the_ratios_of_weights_matter() -> None:
    p, truth = problems.binary(5)
    some = np.random.default_rng(0).uniform(0.1, 1, len(truth))
    one, other = fit_platt(p, truth, some), fit_platt(p, truth, some * 50)
    assert (one.a, one.b) == pytest.approx((other.a, other.b))
    assert effective(np.array([1.0, 1.0, 0.0, 0.0]), 4).sum() == pytest.approx(2)
    assert effective(np.full(7, 0.3), 7) == pytest.approx(np.ones(7))


@pytest.mark.parametrize("n", [0, 1])
def test_without_labels_it_is_what_it_is_drawn_towards(n: int) -> None:
    p, truth = problems.classes(5)
    towards = Temperature(2.0, (0.5,) * p.shape[1])
    for strength in (1e9, STRENGTH / 1e9):
        if n == 0 or strength > 1:
            found = fit_temperature(p[:n], truth[:n], towards=towards, strength=strength)
            assert found.t == pytest.approx(2, abs=1e-3)
            assert found.bias == towards.bias
    biased = fit_biased(p[:n], truth[:n], towards=towards, strength=1e9, bias_sd=1e-6)
    assert (biased.t, *biased.bias) == pytest.approx((2.0, *towards.bias), abs=1e-3)
    yes, answers = problems.binary(5)
    line = fit_platt(yes[:n], answers[:n], towards=Platt(2, 1), slope_sd=1e-6, shift_sd=1e-6)
    assert (line.a, line.b) == pytest.approx((2, 1), abs=1e-3)


@pytest.mark.parametrize("k", [2, 30, 255])
def test_thirty_right_answers_do_not_run_to_the_bound(k: int) -> None:
    p = np.full((30, k), 0.03 / (k - 1))
    p[:, 0] = 0.97
    found = fit_temperature(p, np.zeros(30, dtype=np.int64))
    assert 0.5 < found.t < 1
    assert fit_temperature(p, np.zeros(30, dtype=np.int64), strength=0.0).t < 0.1


def test_temperatures_stay_within_their_bounds_with_biases_too() -> None:
    random = np.random.default_rng(0)
    p = np.eye(4)[random.integers(0, 4, 3_000)]
    truth = random.integers(0, 4, 3_000)
    assert fit_biased(p, truth, bias_sd=1.0, strength=1e-6).t == pytest.approx(TEMPERATURES[1])
    assert fit_biased(p, truth, bias_sd=1.0, towards=AS_IS).t > 5


def test_no_value_weighs_nothing() -> None:
    task = TASKS["rightness"]
    p, truth = np.full((80, 1), 0.9), (np.arange(80) < 40).astype(np.int64)
    weights = np.linspace(1, 2, 80)
    p[::4] = 0
    kept = p[:, 0] > 0
    whole = task.fit(p, truth, weights)
    assert whole == task.fit(p[kept], truth[kept], weights[kept])

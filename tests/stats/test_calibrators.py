"""Fits against scikit-learn's, and what a calibrator promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.calibration import _sigmoid_calibration, _TemperatureScaling

from svc.stats.calibrators import (
    SMALLEST,
    TEMPERATURES,
    Floats,
    Ints,
    Platt,
    Temperature,
    fit_platt,
    fit_temperature,
    from_parameters,
)
from tests.stats import problems

AGREE = 1e-3


def logits(p: Floats) -> Floats:
    inside = np.clip(p[:, 0], SMALLEST, 1 - SMALLEST)
    odds: Floats = np.log(inside / (1 - inside))
    return odds


def judge_temperature(p: Floats, truth: Ints) -> float:
    oracle = _TemperatureScaling().fit(np.log(np.maximum(p, SMALLEST)), truth)
    return 1 / float(oracle.beta_)


@pytest.mark.parametrize("seed", problems.SEEDS)
def test_a_temperature_is_scikit_learns(seed: int) -> None:
    p, truth = problems.classes(seed)
    expected = np.clip(judge_temperature(p, truth), *TEMPERATURES)
    assert fit_temperature(p, truth).t == pytest.approx(expected, abs=AGREE, rel=AGREE)


@pytest.mark.parametrize(("name", "p", "truth"), list(problems.edges_of_classes()))
def test_a_temperature_at_the_edges_predicts_as_scikit_learns_within_bounds(
    name: str, p: Floats, truth: Ints
) -> None:
    ours = fit_temperature(p, truth)
    assert TEMPERATURES[0] <= ours.t <= TEMPERATURES[1]
    bounded = Temperature(float(np.clip(judge_temperature(p, truth), *TEMPERATURES)))
    assert ours.apply(p) == pytest.approx(bounded.apply(p), abs=AGREE)


@pytest.mark.parametrize("seed", problems.SEEDS)
def test_platts_parameters_are_scikit_learns(seed: int) -> None:
    p, truth = problems.binary(seed)
    a, b = _sigmoid_calibration(logits(p), truth)
    ours = fit_platt(p, truth)
    assert (ours.a, ours.b) == pytest.approx((-a, -b), abs=AGREE)


@pytest.mark.parametrize(("name", "p", "truth"), list(problems.edges_of_binary()))
def test_platts_predictions_at_the_edges_are_scikit_learns(
    name: str, p: Floats, truth: Ints
) -> None:
    a, b = _sigmoid_calibration(logits(p), truth)
    assert fit_platt(p, truth).apply(p) == pytest.approx(Platt(-a, -b).apply(p), abs=AGREE)


@pytest.mark.parametrize("calibrator", [Temperature(0.05), Temperature(3.7), Temperature(20.0)])
@pytest.mark.parametrize("p", [(0.5, 0.3, 0.2), (1.0, 0.0), (0.0, 1e-12, 1.0), (0.25,) * 4])
def test_a_temperature_keeps_the_order_and_the_sum(
    calibrator: Temperature, p: tuple[float, ...]
) -> None:
    found = calibrator.one(p)
    assert math.fsum(found) == pytest.approx(1, abs=1e-12)
    assert max(range(len(p)), key=found.__getitem__) == max(range(len(p)), key=p.__getitem__)
    assert found == pytest.approx(calibrator.apply(np.array([p]))[0], abs=1e-12)


@pytest.mark.parametrize("calibrator", [Platt(1.0, 0.0), Platt(0.2, -3.0), Platt(-50.0, 800.0)])
@pytest.mark.parametrize("p", [0.0, 1e-300, 0.2, 0.5, 1 - 1e-16, 1.0])
def test_platts_method_stays_a_probability(calibrator: Platt, p: float) -> None:
    (found,) = calibrator.one((p,))
    assert 0 <= found <= 1
    assert found == pytest.approx(calibrator.apply(np.array([[p]]))[0, 0], abs=1e-12)


def test_doing_nothing_is_a_temperature_of_one_and_a_slope_of_one() -> None:
    assert Temperature(1.0).one((0.7, 0.2, 0.1)) == pytest.approx((0.7, 0.2, 0.1))
    assert Platt(1.0, 0.0).one((0.3,)) == pytest.approx((0.3,))


@pytest.mark.parametrize("calibrator", [Temperature(2.5), Platt(0.5, -1.0)])
def test_parameters_lead_back_to_the_calibrator(calibrator: Temperature | Platt) -> None:
    assert from_parameters(calibrator.parameters) == calibrator


def test_constant_probabilities_teach_no_slope() -> None:
    truth = (np.arange(100) % 10 == 0).astype(np.int64)
    found = fit_platt(np.full((100, 1), 0.8), truth)
    assert found.a == pytest.approx(0, abs=1e-6)
    assert found.one((0.8,))[0] == pytest.approx(0.1, abs=0.01)

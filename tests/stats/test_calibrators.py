"""What a calibrator promises."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from svc.stats.calibrators import Platt, Temperature, from_parameters


@pytest.mark.parametrize("calibrator", [Temperature(0.05), Temperature(3.7), Temperature(20.0)])
@pytest.mark.parametrize("p", [(0.5, 0.3, 0.2), (1.0, 0.0), (0.0, 1e-12, 1.0), (0.25,) * 4])
def test_a_temperature_keeps_the_order_and_the_sum(
    calibrator: Temperature, p: tuple[float, ...]
) -> None:
    found = calibrator.one(p)
    assert math.fsum(found) == pytest.approx(1, abs=1e-12)
    assert max(range(len(p)), key=found.__getitem__) == max(range(len(p)), key=p.__getitem__)
    assert found == pytest.approx(calibrator.apply(np.array([p]))[0], abs=1e-12)


def test_a_bias_may_change_the_order_and_keeps_the_sum() -> None:
    calibrator = Temperature(2.0, (0.0, 1.5, 0.0))
    found = calibrator.one((0.5, 0.3, 0.2))
    assert math.fsum(found) == pytest.approx(1, abs=1e-12)
    assert found[1] == max(found)
    wanted = np.sqrt([0.5, 0.3, 0.2]) * np.exp([0.0, 1.5, 0.0])
    assert found == pytest.approx(wanted / wanted.sum(), abs=1e-12)
    assert found == pytest.approx(calibrator.apply(np.array([[0.5, 0.3, 0.2]]))[0], abs=1e-12)


@pytest.mark.parametrize("calibrator", [Platt(1.0, 0.0), Platt(0.2, -3.0), Platt(-50.0, 800.0)])
@pytest.mark.parametrize("p", [0.0, 1e-300, 0.2, 0.5, 1 - 1e-16, 1.0])
def test_platts_method_stays_a_probability(calibrator: Platt, p: float) -> None:
    (found,) = calibrator.one((p,))
    assert 0 <= found <= 1
    assert found == pytest.approx(calibrator.apply(np.array([[p]]))[0, 0], abs=1e-12)


def test_doing_nothing_is_a_temperature_of_one_and_a_slope_of_one() -> None:
    assert Temperature(1.0).one((0.7, 0.2, 0.1)) == pytest.approx((0.7, 0.2, 0.1))
    assert Platt(1.0, 0.0).one((0.3,)) == pytest.approx((0.3,))


@pytest.mark.parametrize(
    "calibrator", [Temperature(2.5), Temperature(2.5, (0.1, -0.25, 1 / 3)), Platt(0.5, -1.0)]
)
def test_parameters_lead_back_to_the_calibrator(calibrator: Temperature | Platt) -> None:
    kept = json.loads(json.dumps(calibrator.parameters))
    assert from_parameters(kept) == calibrator


def test_parameters_have_a_bias_only_where_one_was_fitted() -> None:
    assert Temperature(2.5).parameters == {"kind": "temperature", "t": 2.5}
    assert Temperature(2.5, (0.5, -0.5)).parameters == {
        "kind": "temperature",
        "t": 2.5,
        "bias": [0.5, -0.5],
    }

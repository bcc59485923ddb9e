"""What the order of options does to probabilities, in worlds where that is known."""

from __future__ import annotations

import math
import random

import pytest

from svc.stats.order_bias import OrderBias

PRIOR = (0.6, 0.2, 0.15, 0.05)


def normalised(weights: list[float]) -> list[float]:
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def answer(truth: list[float], draw: random.Random, spread: float) -> tuple[list[float], ...]:
    """Both orders of a model that multiplies what it thinks with a prior of the position."""
    orders = []
    for prior in (PRIOR, PRIOR[::-1]):
        noise = [math.exp(draw.gauss(0, spread)) for _ in truth]
        weights = zip(truth, prior, noise, strict=True)
        orders.append(normalised([a * b * c for a, b, c in weights]))
    return tuple(orders)


def worlds(draw: random.Random, count: int) -> list[list[float]]:
    return [normalised([draw.random() + 0.02 for _ in PRIOR]) for _ in range(count)]


def test_a_prior_of_positions_is_told_exactly_by_one_pair() -> None:
    draw, bias = random.Random(1), OrderBias(exclusive=True)
    bias.learn(*answer([0.4, 0.3, 0.2, 0.1], draw, 0))
    for truth in worlds(draw, 50):
        first, second = answer(truth, draw, 0)
        assert bias.reversed_of(first) == pytest.approx(second)
        assert bias.distance(bias.reversed_of(first), second) == pytest.approx(0, abs=1e-12)


def test_noise_of_single_answers_is_averaged_out() -> None:
    draw, bias = random.Random(2), OrderBias(exclusive=True)
    for truth in worlds(draw, 40):
        bias.learn(*answer(truth, draw, 0.2))
    gaps, uncorrected = [], []
    for truth in worlds(draw, 200):
        first, second = answer(truth, draw, 0.2)
        gaps.append(bias.distance(bias.reversed_of(first), second))
        uncorrected.append(bias.distance(first, second))
    assert math.fsum(gaps) < 0.3 * math.fsum(uncorrected)


def test_a_yes_or_no_each_is_told_by_its_log_odds() -> None:
    bias = OrderBias(exclusive=False)
    bias.learn((0.5, 0.2), (0.8, 0.2))
    assert bias.reversed_of((0.2, 0.9)) == pytest.approx((0.5, 0.9))
    assert bias.distance((0.2, 0.9), (0.5, 0.8)) == pytest.approx(0.3)


def test_it_follows_a_model_that_changes() -> None:
    bias = OrderBias(exclusive=False)
    for _ in range(1_000):
        bias.learn((0.5,), (0.9,))
    for _ in range(1_000):
        bias.learn((0.5,), (0.2,))
    assert bias.reversed_of((0.5,)) == pytest.approx((0.2,), abs=0.01)


def test_probabilities_of_0_and_1_are_no_infinities() -> None:
    for exclusive in (True, False):
        bias = OrderBias(exclusive)
        bias.learn((0.0, 1.0), (1.0, 0.0))
        assert math.isfinite(math.fsum(bias.reversed_of((1.0, 0.0))))

"""Paired differences that may be looked at after every pair."""

from __future__ import annotations

import math

import numpy as np
import pytest

from svc.stats.calibrators import Floats
from svc.stats.paired import BETS, difference


def flips(random: np.random.Generator, pairs: int, better: float = 0.0) -> tuple[Floats, Floats]:
    """Right answers of two models that agree on three quarters of the decisions."""
    alike = random.random(pairs) < 0.75
    own = (random.random(pairs) < 0.8).astype(float)
    other = np.where(alike, own, random.random(pairs) < 0.8 + 4 * better).astype(float)
    return other, own


def test_without_pairs_anything_is_possible() -> None:
    found = difference(np.zeros(0), np.zeros(0), 1.0)
    assert (found.estimate, found.low, found.high) == (0.0, -1.0, 1.0)


def test_the_bound_is_where_the_wealth_of_the_gambler_reaches_its_mark() -> None:
    of, than = np.array([1.0] * 30), np.zeros(30)
    low = (difference(of, than, 1.0).low + 1) / 2
    wealth = np.mean([math.prod([1 + bet * (1 / low - 1)] * 30) for bet in BETS])
    assert wealth == pytest.approx(40, rel=1e-6)


def test_both_sides_are_each_others_mirror() -> None:
    of, than = flips(np.random.default_rng(1), 500)
    ahead, behind = difference(of, than, 1.0), difference(than, of, 1.0)
    assert (ahead.low, ahead.high) == pytest.approx((-behind.high, -behind.low))


def test_the_order_of_the_pairs_makes_no_difference() -> None:
    random = np.random.default_rng(2)
    of, than = random.random(300), random.random(300)
    mixed = random.permutation(300)
    one, other = difference(of, than, 1.0), difference(of[mixed], than[mixed], 1.0)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_a_better_model_is_found_within_a_thousand_pairs() -> None:
    random = np.random.default_rng(3)
    found = [difference(*flips(random, 1_000, better=0.05), 1.0).low > 0 for _ in range(20)]
    assert sum(found) >= 12


def test_equal_models_are_seldom_ever_told_apart() -> None:
    random = np.random.default_rng(4)
    looks = range(25, 1_001, 75)
    wrong = 0
    for _ in range(60):
        of, than = flips(random, looks[-1])
        wrong += any(difference(of[:n], than[:n], 1.0).low > 0 for n in looks)
    # Of 60 with a chance of 5% each, more than 8 come once in 500.
    assert wrong <= 8


def test_the_true_difference_stays_inside() -> None:
    random = np.random.default_rng(5)
    inside = 0
    for _ in range(60):
        of, than = flips(random, 600, better=0.03)
        found = [difference(of[:n], than[:n], 1.0) for n in range(50, 601, 50)]
        inside += all(one.low <= 0.03 <= one.high for one in found)
    assert inside >= 52

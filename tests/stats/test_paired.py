"""Paired differences that may be looked at after every pair."""

from __future__ import annotations

import math

import numpy as np
import pytest

from svc.stats.calibrators import Floats
from svc.stats.drawing import SIZES
from svc.stats.paired import BETS, HEAVIEST, capped, difference, weights_of


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


def test_a_pair_that_was_drawn_counts_by_one_over_its_chance() -> None:
    # Of ten decisions five are doubtful, which are drawn with twice the chance of others.
    chances = np.array([4 / 3, 4 / 3, 2 / 3])
    assert weights_of(np.array([4 / 3, 2 / 3, np.nan])) == pytest.approx([0.75, 1.5, 1.0])
    found = difference(np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]), 1.0, chances)
    assert found.estimate == pytest.approx(0.0)


def test_what_counts_more_is_bet_less_on() -> None:
    one, zero, known = np.ones(200), np.zeros(200), np.full(200, 1.0)
    drawn, plain = difference(one, zero, 1.0, known), difference(one, zero, 1.0)
    assert drawn.estimate == plain.estimate == 1.0
    assert 0.8 < drawn.low < plain.low
    # The lightest chance that a draw has is as far from the mean as can be.
    assert weights_of(np.array([min(SIZES) / max(SIZES), 0.01])).max() == HEAVIEST


def test_a_pair_of_unknown_chance_counts_as_without_a_queue() -> None:
    of, than = flips(np.random.default_rng(6), 200)
    assert difference(of, than, 1.0, np.full(200, np.nan)) == difference(of, than, 1.0)


def test_values_without_a_bound_count_up_to_the_lowest_cap_above_them() -> None:
    of, than, caps = np.array([3.0, 5.0]), np.array([1.0, 2.0]), (1.0, 4.0, 8.0)
    found, cap = capped(of, than, caps)
    assert (cap, found.estimate) == (8.0, 2.5)
    assert found.low >= -8.0 and found.high <= 8.0
    cut, highest = capped(of, than, caps[:2])
    assert (highest, cut.estimate) == (4.0, 2.0)
    nothing, widest = capped(of[:0], than[:0], caps)
    assert (nothing.low, nothing.high, widest) == (-8.0, 8.0, 8.0)


def test_the_caps_share_the_error() -> None:
    of, than = np.full(100, 0.9), np.full(100, 0.1)
    alone, among = capped(of, than, (1.0,))[0], capped(of, than, (1.0, 2.0, 4.0))[0]
    assert alone == difference(of, than, 1.0)
    assert among.low < alone.low < alone.high < among.high


def test_the_true_difference_of_capped_values_stays_inside() -> None:
    random = np.random.default_rng(7)
    caps = tuple(2.0**power for power in range(-3, 8))
    inside = 0
    for _ in range(60):
        of, than = random.exponential(1.0, 600), random.exponential(0.5, 600)
        found = [capped(of[:n], than[:n], caps) for n in range(50, 601, 50)]
        inside += all(
            one.low <= 1 - math.exp(-cap) - 0.5 * (1 - math.exp(-2 * cap)) <= one.high
            for one, cap in found
        )
    assert inside >= 55

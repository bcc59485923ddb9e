from __future__ import annotations

import math

import numpy as np
import pytest

from svc.stats import betting
from svc.stats.calibrators import Floats

ONE = np.ones(1)
RIGHT, WRONG = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)


def wealth(target: float, correct: Floats) -> Floats:
    """The logarithm of the wealth after each answer; rows are gamblers."""
    right = betting.log_factors(target, RIGHT, ONE)[..., None]
    wrong = betting.log_factors(target, WRONG, ONE)[..., None]
    return betting.mixed(np.cumsum(np.where(correct[None] == 1, right, wrong), axis=2))


@pytest.mark.parametrize("target", [0.9, 0.95, 0.99])
def test_a_bet_is_fair_on_the_target(target: float) -> None:
    right = np.exp(betting.log_factors(target, RIGHT, ONE))
    wrong = np.exp(betting.log_factors(target, WRONG, ONE))
    assert target * right + (1 - target) * wrong == pytest.approx(np.ones_like(right))
    assert betting.SHARES.sum() == pytest.approx(1)


def test_weights_make_the_bet_fair_on_the_weighted_share() -> None:
    """Half the answers weigh 4 and are always right, the others 1 and are right half the time."""
    target, weight = (4 * 1.0 + 1 * 0.5) / 5, np.array([4.0, 1.0, 1.0])
    factors = np.exp(betting.log_factors(target, np.array([1, 1, 0]), weight))
    assert factors @ np.array([0.5, 0.25, 0.25]) == pytest.approx(np.ones(len(factors)))


def test_wealth_on_the_boundary_is_reached_in_at_most_one_of_twenty() -> None:
    """Looked at after each of 1,000 answers; 2.2 standard deviations may come by chance."""
    correct = (np.random.default_rng(1).random((1_000, 1_000)) < 0.9).astype(np.int64)
    reached = (wealth(0.9, correct) >= math.log(20)).any(axis=1).mean()
    assert 0.01 < reached <= 0.065


def test_eighty_percent_have_it_within_twice_the_labels_of_one_fixed_look() -> None:
    """Clopper and Pearson's bound needs 179 for an accuracy of .95 and a target of .9."""
    correct = (np.random.default_rng(2).random((1_000, 2 * 179)) < 0.95).astype(np.int64)
    assert (wealth(0.9, correct) >= math.log(20)).any(axis=1).mean() >= 0.8


@pytest.mark.parametrize(("target", "fewest"), [(0.9, 41), (0.95, 83), (0.99, 423)])
def test_so_many_right_answers_are_enough(target: float, fewest: int) -> None:
    assert betting.fewest(target, 0.05) == pytest.approx(fewest, rel=0.1)
    correct = np.ones((1, 600), dtype=np.int64)
    reached = wealth(target, correct)[0] >= math.log(20)
    assert int(reached.argmax()) + 1 == betting.fewest(target, 0.05)

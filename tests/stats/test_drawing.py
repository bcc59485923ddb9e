"""What is drawn for labelling speaks for all."""

from __future__ import annotations

import numpy as np
import pytest

from svc.stats import drawing
from svc.stats.calibrators import Floats, Ints

RANDOM = np.random.default_rng


def frame(seed: int, count: int = 400) -> tuple[Floats, Ints]:
    """Confidences that are too high, and which answers are right."""
    random = RANDOM(seed)
    confidence = random.uniform(0.4, 1.0, count)
    right = random.random(count) < np.clip(1.5 * confidence - 0.5, 0, 1)
    return confidence, right.astype(np.int64)


def drawn_first(level: Ints, count: int, random: np.random.Generator) -> tuple[Ints, Floats]:
    """The first places in the order of priority, with weights of one over their chance."""
    priority = drawing.priorities(level, np.zeros(len(level), dtype=np.int64), random)
    order = np.argsort(priority)
    chances = np.minimum(1.0, priority[order[count]] * np.array(drawing.SIZES)[level])
    return order[:count], (chances.mean() / chances)[order[:count]]


def test_levels_are_fifths_by_how_many_are_surer() -> None:
    confidence = np.arange(100) / 100
    found = drawing.levels(confidence, confidence)
    assert np.bincount(found).tolist() == [20] * 5
    assert found[0] == 4 and found[-1] == 0


def test_answers_that_are_equally_sure_are_of_one_level_in_the_middle_of_them() -> None:
    assert drawing.levels(np.full(7, 0.9), np.full(7, 0.9)).tolist() == [2] * 7
    half_sure = np.array([1.0] * 50 + [0.5] * 50)
    assert set(drawing.levels(half_sure, half_sure)[:50]) == {1}
    assert drawing.levels(np.array([0.5]), np.zeros(0)).tolist() == [4]


def test_each_number_is_uniform() -> None:
    found = np.array([drawing.numbers(11, RANDOM(seed)) for seed in range(2_000)])
    assert found.mean(axis=0) == pytest.approx(np.full(11, 0.5), abs=0.03)
    assert (found < 0.25).mean(axis=0) == pytest.approx(np.full(11, 0.25), abs=0.04)


@pytest.mark.parametrize("halvings", [1, 2, 3, 5])
def test_whatever_part_is_drawn_is_spread_over_the_list(halvings: int) -> None:
    drawn = np.sort(np.flatnonzero(drawing.numbers(256, RANDOM(3)) < 0.5**halvings))
    assert len(drawn) == 256 // 2**halvings
    assert np.bincount(drawn // 2**halvings).max() <= 2
    assert np.diff(drawn).max() < 2 * 2**halvings


def test_weighted_labels_tell_the_accuracy_of_all_while_the_least_certain_do_not() -> None:
    errors, plain, least = [], [], []
    for seed in range(200):
        confidence, right = frame(seed)
        level = drawing.levels(confidence, confidence)
        drawn, weights = drawn_first(level, 80, RANDOM(1_000 + seed))
        counts = np.bincount(level, minlength=drawing.LEVELS).astype(np.float64)
        found = drawing.accuracy(right[drawn], level[drawn], weights, counts)
        assert found is not None
        errors.append(found.estimate - right.mean())
        plain.append(weights @ right[drawn] / weights.sum() - right.mean())
        least.append(right[np.argsort(confidence)[:80]].mean() - right.mean())
    assert abs(np.mean(errors)) < 0.01
    assert abs(np.mean(plain)) < 0.01
    assert np.mean(least) < -0.2


def test_the_interval_holds_the_accuracy_and_is_narrower_than_one_of_even_labels() -> None:
    held = []
    for seed in range(100):
        confidence, right = frame(seed, 2_000)
        level = drawing.levels(confidence, confidence)
        drawn, weights = drawn_first(level, 100, RANDOM(seed))
        counts = np.bincount(level, minlength=drawing.LEVELS).astype(np.float64)
        found = drawing.accuracy(right[drawn], level[drawn], weights, counts)
        assert found is not None
        held.append(found.low <= right.mean() <= found.high)
        assert found.high - found.low < 0.2
    assert np.mean(held) >= 0.93


def test_without_labels_there_is_no_accuracy() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert drawing.accuracy(nothing, nothing, np.zeros(0), np.ones(5)) is None

"""Small, seeded editions of the simulations that set the margins of `svc.stats`."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulations import calibrators, worlds

REPETITIONS = 30
SEED = 11


def means(world: worlds.World, labels: int) -> tuple[float, float, float]:
    """Mean log-loss: raw, as served after so many labels, and the least that can be had."""
    rows = calibrators.sequences(world, REPETITIONS, SEED, (30, 60, labels))
    last = [row for row in rows if row.labels == labels]
    raw, now, simple = zip(*((row.raw[0], row.now[0], row.simple) for row in last), strict=True)
    return float(np.mean(raw)), float(np.mean(now)), float(np.mean(simple))


@pytest.mark.parametrize("world", worlds.calibrated()[:3], ids=lambda world: world.name)
def test_a_model_that_is_right_nearly_always_is_left_alone(world: worlds.World) -> None:
    raw, now, _ = means(world, 100)
    assert now <= 1.03 * raw


@pytest.mark.parametrize("world", worlds.mistaken()[:2], ids=lambda world: world.name)
def test_most_of_what_can_be_gained_is_gained_by_a_hundred_labels(world: worlds.World) -> None:
    raw, now, least = means(world, 100)
    assert raw - now >= 0.9 * (raw - least)


def test_two_models_behind_one_question_are_both_made_true() -> None:
    draws = [calibrators.two_models(np.random.default_rng(n), 1_000) for n in range(10)]
    before, after = (np.mean([max(draw[which]) for draw in draws]) for which in (0, 1))
    assert before > 0.2
    assert after <= 0.03

"""Small, seeded editions of the simulations that set the margins of `svc.stats`."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulations import calibrators, challengers, worlds
from svc.stats.paired import difference

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


def test_equal_challengers_are_seldom_said_to_be_better() -> None:
    for line in challengers.wrong_switches(100, 500):
        share = float(line.rpartition(": ")[2].split("%")[0])
        # Of 100 with a chance of 2.5% each, more than 8 come once in 900.
        assert share <= 8, line


def test_challengers_that_are_better_on_doubtful_decisions_alone_are_seldom_said_to_be() -> None:
    for line in challengers.wrong_switches_of_the_queue(40, 400, 20):
        share = float(line.rpartition(": ")[2].split("%")[0])
        # Of 40 with a chance of 2.5% each, more than 5 come once in 2,000.
        assert share <= 100 * 5 / 40, line


def test_without_weights_they_would_be() -> None:
    random = np.random.default_rng(SEED)
    worlds = [(random, 8_000, 2_000, challengers.BETTER, 50, known) for known in (True, False)]
    said = [sum(challengers.ever_ahead(*world) for _ in range(40)) for world in worlds]
    assert said[0] <= 5 < 10 <= said[1]


def test_the_simulation_finds_the_label_with_which_the_report_says_better() -> None:
    random = np.random.default_rng(SEED)
    challenger, present = challengers.answers(random, 600, 0.8, 0.5, 0.1)
    first = challengers.first_ahead(challenger, present)
    assert first is not None
    bounds = [difference(challenger[:n], present[:n], 1.0).low for n in (first - 1, first)]
    assert bounds[0] <= 0 < bounds[1]

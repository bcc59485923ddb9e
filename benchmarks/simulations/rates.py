"""How often the intervals of `svc.stats.rates` hold the true rate, and what labels they save."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from svc.stats.calibrators import Floats, Ints
from svc.stats.rates import DecisionSums, Rate, rates

Random = np.random.Generator
# What a decision's true probabilities are, and what the model says they are.
World = Callable[[Random, int], tuple[Floats, Floats]]
DECISIONS = 2_000
LABELS = (20, 50, 200)
# Decisions from which a world's true rates are taken, by their probabilities.
MANY = 400_000
_COMMON = np.array([0.0, 0.0, -1.0, -2.0])


def softmax(z: Floats) -> Floats:
    shares = np.exp(z - z.max(axis=1, keepdims=True))
    normal: Floats = shares / shares.sum(axis=1, keepdims=True)
    return normal


def two(p: Floats) -> Floats:
    return np.stack([p, 1 - p], axis=1)


def calibrated(random: Random, n: int) -> tuple[Floats, Floats]:
    p = softmax(2.5 * random.normal(size=(n, 4)) + _COMMON)
    return p, p


def overconfident(random: Random, n: int) -> tuple[Floats, Floats]:
    z = 1.5 * random.normal(size=(n, 4)) + _COMMON
    return softmax(z), softmax(3 * z)


def flat(random: Random, n: int) -> tuple[Floats, Floats]:
    z = 3 * random.normal(size=(n, 4)) + _COMMON
    return softmax(z), softmax(z / 3)


def biased(random: Random, n: int) -> tuple[Floats, Floats]:
    z = 2 * random.normal(size=(n, 3))
    return softmax(z + np.array([0.0, 1.0, -1.0])), softmax(z)


def useless(random: Random, n: int) -> tuple[Floats, Floats]:
    return np.tile([0.5, 0.3, 0.2], (n, 1)), random.dirichlet(np.ones(3), n)


def misleading(random: Random, n: int) -> tuple[Floats, Floats]:
    p = softmax(2 * random.normal(size=(n, 3)))
    return p, p[:, [1, 2, 0]]


def rare(random: Random, n: int) -> tuple[Floats, Floats]:
    p = two(1 / (1 + np.exp(5.5 - 2 * random.normal(size=n))))
    return p, p


def rare_and_told(random: Random, n: int) -> tuple[Floats, Floats]:
    p = two(np.where(random.random(n) < 0.03, 0.9, 0.003))
    return p, p


def rare_and_mistaken(random: Random, n: int) -> tuple[Floats, Floats]:
    suspect = random.random(n) < 0.03
    return two(np.where(suspect, 0.3, 0.01)), two(np.where(suspect, 0.95, 0.02))


WORLDS: dict[str, World] = {
    world.__name__.replace("_", " "): world
    for world in (
        calibrated,
        overconfident,
        flat,
        biased,
        useless,
        misleading,
        rare,
        rare_and_told,
        rare_and_mistaken,
    )
}


@dataclass(frozen=True, slots=True)
class Found:
    """Of each option, over all replays; ratios are of the labels alone."""

    covered: Floats
    covered_alone: Floats
    width: Floats
    error: Floats


def replays(
    world: World, labels: int, repetitions: int, seed: int, *, sampled: str = "evenly"
) -> Found:
    """Periods of decisions of which some are labelled, evenly or the less sure ones more often."""
    target = world(np.random.default_rng(seed), MANY)[0].mean(axis=0)
    found = [
        replay(world, labels, np.random.default_rng(seed + 1 + one), sampled)
        for one in range(repetitions)
    ]
    both = np.array(
        [[_row(rate, true) for rate, true in zip(one, target, strict=True)] for one in found]
    )
    means = both.mean(axis=0).T
    return Found(means[0], means[1], means[2] / means[3], means[4] / means[5])


def _row(rate: Rate, true: float) -> list[float]:
    one, alone = rate.rate, rate.labels_alone
    return [
        one.low <= true <= one.high,
        alone.low <= true <= alone.high,
        (one.high - one.low) ** 2,
        (alone.high - alone.low) ** 2,
        (one.estimate - true) ** 2,
        (alone.estimate - true) ** 2,
    ]


def replay(world: World, labels: int, random: Random, sampled: str) -> list[Rate]:
    q, p = world(random, DECISIONS)
    drawn = (random.random((DECISIONS, 1)) > q.cumsum(axis=1)).sum(axis=1)
    truth = np.minimum(drawn, q.shape[1] - 1)
    chosen, weights = _labelled(p, labels, random, sampled)
    answers = np.bincount(p.argmax(axis=1), minlength=p.shape[1])
    decisions = DecisionSums(DECISIONS, p.sum(axis=0), answers)
    return rates(decisions, p[chosen], truth[chosen], weights)


def _labelled(p: Floats, labels: int, random: Random, sampled: str) -> tuple[Ints, Floats | None]:
    if sampled == "evenly":
        return random.choice(DECISIONS, labels, replace=False), None
    doubt = 1 - p.max(axis=1)
    chance = np.minimum((doubt / doubt.mean() + 0.5) / 1.5 * labels / DECISIONS, 1.0)
    chosen = np.flatnonzero(random.random(DECISIONS) < chance)
    return chosen, 1 / chance[chosen]


def run(repetitions: int, seed: int) -> None:
    """Print the table."""
    print(f"Rates: {repetitions} replays of {DECISIONS:,} decisions, from seed {seed}\n")
    print("Per option: coverage of the 95% interval, that of labels alone, and the squared width")
    print("and the squared error as parts of those of the labels alone.\n")
    print("| world | labels | sampled | coverage | alone | width² | error² |\n" + "|---" * 7 + "|")
    for name, world in WORLDS.items():
        for labels in LABELS:
            for sampled in ("evenly", "by doubt"):
                found = replays(world, labels, repetitions, seed, sampled=sampled)
                print(f"| {name} | {labels} | {sampled} | {_cells(found)} |", flush=True)


def _cells(found: Found) -> str:
    columns = (found.covered, found.covered_alone, found.width, found.error)
    return " | ".join(" ".join(f"{value:.3f}" for value in column) for column in columns)

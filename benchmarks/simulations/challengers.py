"""Whether a challenger that is no better is ever said to be, and what a better one needs.

Seeds are fixed. The comparison is looked at after every label, which is more often than anybody
does. `python -m benchmarks.simulations challengers` prints the figures of `RESULTS.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from benchmarks.simulations.answers import Random
from svc.stats import drawing
from svc.stats.calibrators import Floats
from svc.stats.intervals import CERTAINTY
from svc.stats.paired import BETS, HEAVIEST, weights_of

REPLAYS = 1_000
LABELS = 2_000
# Of decisions by level of doubt, how often the sides differ, and by how much the challenger is
# better there: with decisions of all levels together they are equal.
DIFFER = np.array([0.25, 0.3, 0.3, 0.4, 0.5])
BETTER = np.array([-0.2, -0.2, 0.0, 0.1, 0.3])
# How many decisions the queue has for its labels: few are left at the end, half, or most.
QUEUES = (LABELS, 2 * LABELS, 5 * LABELS)
# The accuracies of the present model, and how many of its answers the challenger shares.
WORLDS = tuple((right, alike) for right in (0.6, 0.8, 0.95) for alike in (0.0, 0.5, 0.9))


def run() -> None:
    """Print all tables."""
    for table in (wrong_switches, wrong_switches_of_the_queue, labels_needed):
        print(f"\n{(table.__doc__ or '').splitlines()[0]}", flush=True)
        for line in table():
            print(f"  {line}", flush=True)


def wrong_switches(replays: int = REPLAYS, labels: int = LABELS) -> Iterable[str]:
    """Equal models: replays in which the challenger is said to be better after any label."""
    for number, (right, alike) in enumerate(WORLDS):
        random = np.random.default_rng([7, number])
        wrong = sum(
            first_ahead(*answers(random, labels, right, alike)) is not None for _ in range(replays)
        )
        yield f"{right:.0%} right, {alike:.0%} alike: {wrong / replays:.1%} of {replays:,}"


def wrong_switches_of_the_queue(
    replays: int = REPLAYS, labels: int = LABELS, step: int = 10
) -> Iterable[str]:
    """Models equal but for which doubt, labels of the review queue: the same, by looks."""
    for decisions in (labels * part // LABELS for part in QUEUES):
        for better in (BETTER, -BETTER):
            random = np.random.default_rng([9, decisions, int(better[0] > 0)])
            wrong = sum(ever_ahead(random, decisions, labels, better, step) for _ in range(replays))
            where = "doubtful" if better[-1] > 0 else "sure"
            named = f"{labels:,} of {decisions:,} labelled, better on {where} ones"
            yield f"{named}: {wrong / replays:.1%} of {replays:,}"


def ever_ahead(
    random: Random, decisions: int, labels: int, better: Floats, step: int, weighted: bool = True
) -> bool:
    """Whether the report ever says better, looked at after each `step` labels of the queue.

    `weighted` as the report does it, with the chances of the time of the look.
    """
    level = np.arange(decisions) * drawing.LEVELS // decisions
    priority = drawing.priorities(level, np.zeros_like(level), random)
    order = np.argsort(priority)
    ahead = np.where(random.random(decisions) < (1 + (better / DIFFER)[level]) / 2, 1.0, -1.0)
    gaps = np.where(random.random(decisions) < DIFFER[level], ahead, 0.0)[order]
    turns, sizes = priority[order], np.array(drawing.SIZES)
    for seen in range(step, labels + 1, step):
        chances = np.minimum(1, (turns[seen] if seen < decisions else math.inf) * sizes)
        relative = (chances / chances.mean())[level[order[:seen]]]
        largest = HEAVIEST if weighted else 1.0
        weights = weights_of(relative) if weighted else 1.0
        factors = np.log1p(BETS[:, None] * (weights * gaps[:seen] / largest)[None, :])
        wealth = np.logaddexp.reduce(factors.sum(axis=1)) - math.log(len(BETS))
        if wealth >= -math.log((1 - CERTAINTY) / 2):
            return True
    return False


def labels_needed(replays: int = REPLAYS // 5, labels: int = 10 * LABELS) -> Iterable[str]:
    """Better models, 80% right before, half alike: labels until that is said, median and 90%."""
    for better in (0.02, 0.05, 0.1):
        random = np.random.default_rng([8, round(100 * better)])
        found = [
            first_ahead(*answers(random, labels, 0.8, 0.5, better)) or math.inf
            for _ in range(replays)
        ]
        usual, most = (np.quantile(found, share, method="higher") for share in (0.5, 0.9))
        yield f"{better:.0%} better: {usual:,.0f} and {most:,.0f}"


def answers(
    random: Random, labels: int, right: float, alike: float, better: float = 0.0
) -> tuple[Floats, Floats]:
    """Whether the challenger and the present model were right, 1 or 0, of each label."""
    present = (random.random(labels) < right).astype(float)
    own = (random.random(labels) < right + better / (1 - alike)).astype(float)
    return np.where(random.random(labels) < alike, present, own), present


def first_ahead(challenger: Floats, present: Floats) -> int | None:
    """After how many labels the report first says that the challenger is better, if ever.

    The lower bound of the difference is above zero exactly where the wealth that was bet on that
    has grown enough: it falls as the candidate rises.
    """
    factors = np.log1p(BETS[:, None] * (challenger - present)[None, :])
    wealth = np.logaddexp.reduce(factors.cumsum(axis=1), axis=0) - math.log(len(BETS))
    ahead = np.flatnonzero(wealth >= -math.log((1 - CERTAINTY) / 2))
    return int(ahead[0]) + 1 if len(ahead) else None

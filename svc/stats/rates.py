"""How common each answer truly is, from all decisions and a few labels.

The labels correct what the probabilities say on average: prediction-powered inference with tuned
power (Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference, 2023, arXiv
2311.01453). With all decisions, labelled ones included, in the mean of the probabilities, their
estimator is the regression estimator of surveys (Cochran, Sampling Techniques, 1977, chapter 7):
share = labels' share + power x (all decisions' probability - labelled decisions' probability),
with the power that makes the variance least, so that probabilities that tell nothing add nothing.

The intervals are of the rate behind the period's decisions. They rest on labels that were drawn by
chance among all decisions of the period; where some were likelier to be drawn, `weights` are one
over the chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svc.jsontext import JsonObject
from svc.stats.calibrators import Floats, Ints
from svc.stats.intervals import (
    Interval,
    bounded_mean,
    effective,
    normalised,
    part_of_spread,
    wilson,
)

# With fewer labels the power is zero: it would be fitted to noise.
FEWEST = 10
# A sum of squares as small is what rounding leaves of none.
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class DecisionSums:
    """All decisions of a period, labelled or not: sums that a database can keep.

    `probabilities` has for each option the sum of its probabilities over all `count` decisions,
    `answers` how many had it as their answer.
    """

    count: int
    probabilities: Floats
    answers: Ints


@dataclass(frozen=True, slots=True)
class Rate:
    """The share of one answer, by labels and probabilities, and by the labels alone."""

    rate: Interval
    labels_alone: Interval
    naive: float
    power: float

    @property
    def worth(self) -> float:
        """How many labels take the place of one without the probabilities."""
        widths = [one.high - one.low for one in (self.labels_alone, self.rate)]
        return (widths[0] / widths[1]) ** 2 if widths[1] else 1.0

    @property
    def as_json(self) -> JsonObject:
        return {
            **self.rate.as_json,
            "naive": round(self.naive, 6),
            "labels_alone": self.labels_alone.as_json,
            "power": round(self.power, 6),
            "worth": round(self.worth, 3),
        }


def rates(
    decisions: DecisionSums, p: Floats, truth: Ints, weights: Floats | None = None
) -> list[Rate]:
    """The rate of each option; empty without labels.

    `p` is (n, k), the probabilities of the labelled decisions, `truth` (n,) their true columns,
    `weights` (n,) in any unit. A yes/no question has two columns.
    """
    if not len(truth):
        return []
    shares = normalised(weights, len(truth))
    return [
        _rate(decisions, option, p[:, option], (truth == option).astype(np.int64), shares)
        for option in range(p.shape[1])
    ]


def _rate(decisions: DecisionSums, option: int, p: Floats, true: Ints, shares: Floats) -> Rate:
    everywhere, naive = (
        float(sums[option]) / max(decisions.count, 1)
        for sums in (decisions.probabilities, decisions.answers)
    )
    labels, rows = float(shares @ true), effective(shares)
    guessed = float(shares @ p)
    misses = np.subtract(true, labels, dtype=np.float64)
    guesses = p - guessed
    # Of the labels' spread, what they have because not every decision is labelled can be told
    # from the probabilities; what is left would stay, were all of them labelled.
    drawn = shares**2 * _unlabelled(shares, decisions.count)
    kept = float((shares**2 - drawn) @ misses**2)
    power = _power(drawn, misses, guesses) if rows >= FEWEST else 0.0
    spread = kept + float(drawn @ (misses - power * guesses) ** 2) * _fit_cost(rows)
    alone = bounded_mean(true, shares)
    if not power:
        return Rate(alone, alone, naive, power)
    estimate = min(max(labels + power * (everywhere - guessed), 0.0), 1.0)
    part = part_of_spread(rows**2 * spread, rows * labels * (1 - labels))
    return Rate(wilson(estimate, rows / part), alone, naive, power)


def _unlabelled(shares: Floats, decisions: int) -> Floats:
    """For each label the chance that its like was not drawn."""
    missed: Floats = np.maximum(1 - 1 / (max(decisions, 1) * shares), 0.0)
    return missed


def _power(drawn: Floats, misses: Floats, guesses: Floats) -> float:
    """What part of the probabilities to believe, for the least spread."""
    squares, products = float(drawn @ guesses**2), float(drawn @ (misses * guesses))
    if squares < _NOTHING or abs(products) < _NOTHING:
        return 0.0
    return min(max(products / squares, 0.0), 1.0)


def _fit_cost(rows: float) -> float:
    """By how much the residuals of a fitted power are too small."""
    return (rows - 1) / (rows - 2) if rows >= FEWEST else 1.0

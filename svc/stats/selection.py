"""Whether labelled decisions look like the others of the same weeks.

Where nobody knows the chance with which a decision was labelled, this much can be tested: whether
the mix of answers and the confidences of labelled decisions are those of a random draw. Weeks are
compared within themselves, so that neither a changing mix nor a changing number of labels counts
as a difference: counts by the generalised test of Mantel and Haenszel for several strata (Landis,
Heyman and Koch, Average Partial Association in Three-way Contingency Tables, 1978), and means in
the same way. What was labelled for a reason that neither shows, say because the answer was wrong
however sure it was, cannot be seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from svc.jsontext import JsonObject
from svc.stats.calibrators import Floats
from svc.stats.homogeneity import chi_square_tail, few_values_tail, skewed_tail, worst_skew

# The p-value of either test up to which labelled decisions count as others.
DIFFERENT = 0.01
# Answers of which fewer are expected among the labelled ones, or the others, are counted together.
EXPECTED = 5.0
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class WeekOfLabels:
    """A week's decisions, and those among them that have labels.

    `counts` and `labelled_counts` are by top answer. `confidence` and `labelled_confidence` are
    sums; `squares` is the sum of all squared confidences, None where it was not kept.
    """

    counts: Mapping[str, int]
    confidence: float
    squares: float | None
    labelled_counts: Mapping[str, int]
    labelled_confidence: float

    @property
    def decisions(self) -> int:
        return sum(self.counts.values())

    @property
    def labels(self) -> int:
        return sum(self.labelled_counts.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """How far labelled decisions are from a draw, and how often a draw is as far."""

    change: float
    p: float

    @property
    def as_json(self) -> JsonObject:
        return {"change": round(self.change, _DIGITS), "p": self.p}


def mix_difference(weeks: Sequence[WeekOfLabels]) -> Difference:
    """Of the top answers; the change is the total-variation distance from what is expected."""
    tops = sorted({top for week in weeks for top in week.counts})
    labelled = _counts([week.labelled_counts for week in weeks], tops)
    whole = np.maximum(_counts([week.counts for week in weeks], tops), labelled)
    drawn, there = labelled.sum(axis=1), whole.sum(axis=1)
    expected = (whole * (drawn / there)[:, None]).sum(axis=0)
    change = float(np.abs(labelled.sum(axis=0) - expected).sum()) / 2 / max(float(drawn.sum()), 1.0)
    bins = _bins(expected, whole.sum(axis=0) - expected)
    labelled, whole = labelled @ bins, whole @ bins
    return Difference(change, _p_value(labelled, whole))


def confidence_difference(weeks: Sequence[WeekOfLabels]) -> Difference:
    """Of confidences; the change is how far their mean is from the expected one."""
    labels = sum(week.labels for week in weeks)
    gap = sum(week.labelled_confidence - week.labels * _mean(week) for week in weeks)
    variance = skewed = 0.0
    # Of the fewer ones, labelled or not: how many, and how far and how widely their values lie.
    fewer = reached = varied = 0.0
    for week in weeks:
        n, m = week.decisions, week.labels
        mean, few = _mean(week), max(min(m, n - m), 0)
        spread = _spread(week, mean)
        # A gap upwards is made by high values of the fewer ones, or by low ones of the others.
        room = 1 - mean if (gap > 0) == (m * 2 <= n) else mean
        fewer, reached, varied = fewer + few, reached + few * room, varied + few * spread
        if spread > 0:
            variance += _finite(n, m) * spread
            skewed += _finite(n, m) * abs(1 - 2 * m / n) * worst_skew(room, spread) * spread**1.5
    if variance <= 0:
        return Difference(0.0, 1.0)
    tail = 2 * skewed_tail(abs(gap) / math.sqrt(variance), skewed / variance**1.5)
    few_values = few_values_tail(int(fewer), abs(gap) / fewer, reached / fewer, varied / fewer)
    return Difference(gap / labels, min(1.0, max(tail, few_values)))


def _mean(week: WeekOfLabels) -> float:
    return week.confidence / week.decisions


def _counts(weeks: Sequence[Mapping[str, int]], tops: Sequence[str]) -> Floats:
    return np.array([[week.get(top, 0) for top in tops] for week in weeks], dtype=np.float64)


def _bins(expected: Floats, others: Floats) -> Floats:
    """(answers, bins) with a 1 where an answer is counted; rare ones share the last bin."""
    rare = np.minimum(expected, others) < EXPECTED
    columns = np.eye(len(expected))[:, ~rare]
    return np.column_stack([columns, rare]) if rare.any() else columns


def _p_value(labelled: Floats, whole: Floats) -> float:
    drawn, there = labelled.sum(axis=1), whole.sum(axis=1)
    shares = whole / there[:, None]
    gap = (labelled - drawn[:, None] * shares).sum(axis=0)[:-1]
    finite = np.array([_finite(n, m) for n, m in zip(there, drawn, strict=True)])
    covariance = np.diag(finite @ shares) - (shares * finite[:, None]).T @ shares
    # One column follows from the others; those that do not vary at all are left out.
    varies = np.flatnonzero(covariance.diagonal()[:-1] > 0)
    if not len(varies):
        return 1.0
    within = covariance[np.ix_(varies, varies)]
    distance = float(gap[varies] @ np.linalg.pinv(within, hermitian=True) @ gap[varies])
    return chi_square_tail(distance, len(varies))


def _finite(there: float, drawn: float) -> float:
    """What the variance of one is multiplied by, for a sum of some that are drawn from a few."""
    return drawn * max(there - drawn, 0) / max(there - 1, 1)


def _spread(week: WeekOfLabels, mean: float) -> float:
    """The variance of confidences; the largest that their mean allows, where it is not known."""
    if week.squares is None:
        return mean * (1 - mean)
    return max(week.squares / week.decisions - mean**2, 0.0)

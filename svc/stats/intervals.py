"""Intervals of means of values between 0 and 1, from few and from weighted rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from svc.jsontext import JsonObject
from svc.stats.calibrators import Floats, Ints

CERTAINTY = 0.95
_NORMAL = NormalDist().inv_cdf((1 + CERTAINTY) / 2)
# The squared misses that a handful of rows is held to hide, so that a spread of none is not
# believed; simulated: 2 covers too often with few rows, 0.5 too seldom rare answers.
UNSEEN = 1.0
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the ends of its 95% interval."""

    estimate: float
    low: float
    high: float

    @property
    def as_json(self) -> JsonObject:
        return {
            "estimate": round(self.estimate, _DIGITS),
            "low": round(self.low, _DIGITS),
            "high": round(self.high, _DIGITS),
        }


def wilson(share: float, count: float) -> Interval:
    """Wilson's score interval of a share of `count` rows, which may be an effective number.

    Wilson, Probable Inference, the Law of Succession, and Statistical Inference (1927).
    """
    if count <= 0:
        return Interval(share, 0.0, 1.0)
    z = _NORMAL
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) * z / (1 + z**2 / count)
    return Interval(share, max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share)))


def normalised(weights: Floats | None, rows: int) -> Floats:
    """Weights that add up to one, equal ones where none are given."""
    parts: Floats = np.ones(rows) if weights is None else weights
    return parts / max(float(parts.sum()), 1e-300)


def effective(weights: Floats) -> float:
    """How many equally weighted rows tell as much (Kish, Survey Sampling, 1965)."""
    return float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0


def bounded_mean(values: Floats | Ints, weights: Floats | None = None) -> Interval:
    """The mean of values between 0 and 1; of zeros and ones Wilson's.

    Values that vary less than zeros and ones of the same mean count for as many more rows, as in
    the intervals of surveys (Korn and Graubard, Confidence Intervals for Proportions with Small
    Expected Number of Positive Counts, 1998).
    """
    if not len(values):
        return Interval(0.5, 0.0, 1.0)
    shares = normalised(weights, len(values))
    mean = float(np.clip(shares @ values, 0.0, 1.0))
    rows = effective(shares)
    spread = rows**2 * float(shares**2 @ (values - mean) ** 2)
    return wilson(mean, rows / part_of_spread(spread, rows * mean * (1 - mean)))


def part_of_spread(spread: float, largest: float) -> float:
    """Which part of the largest sum of squares there is, with `UNSEEN` of it taken for granted."""
    return (spread + UNSEEN) / (largest + UNSEEN)

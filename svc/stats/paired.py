"""Which of two answers to the same decisions is better, whenever it is looked at.

The difference of two bounded losses of each pair has a mean; a gambler bets that it lies above a
value m, and his wealth is a fair game where it does not. So the chance that it ever grows by a
factor f is at most 1/f (Ville 1939), and the values at which it has not are a confidence sequence:
with 95% certainty the mean lies in all of the intervals that are ever looked at. This is the
betting confidence sequence of Waudby-Smith and Ramdas (Estimating means of bounded random variables
by betting, JRSS B 2024, section 4), one-sided twice with half of the error each, with a fixed
mixture of bets (Robbins 1970) in the place of tuned ones. With fixed bets the order of the pairs
makes no difference, so that a label which comes late or replaces another one changes no bet.

A pair that was drawn with a known chance counts by one over it, relative to the mean. Of what is
drawn next the weighted difference has the mean of all, and is larger by no more than the heaviest
weight, so that less is bet on it. That is exact as long as chances keep their ratios; where nearly
all that is doubtful has been drawn they draw level, and simulations tell
(`benchmarks/simulations/challengers.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from svc.stats import drawing
from svc.stats.calibrators import Floats, Ints
from svc.stats.intervals import CERTAINTY, Interval

# How much of the wealth is bet, spaced for 30 to 100,000 pairs.
BETS = np.array([0.01, 0.03, 0.1, 0.3, 0.6, 0.9])
# No weight of what the review queue draws is more than so many times the mean.
HEAVIEST = max(drawing.SIZES) / min(drawing.SIZES)
# The interval is found to this many halvings.
_STEPS = 40


def difference(
    of: Floats,
    than: Floats,
    most: float,
    chances: Floats | None = None,
    error: float = 1 - CERTAINTY,
) -> Interval:
    """By how much values `of` one side are larger `than` the other's, on average.

    Both are values of the same pairs, and no difference is larger than `most`. `chances` are as for
    `weights_of`, None where none is known. With a chance of at most `error` the mean is ever
    outside of the interval, however often that is computed as pairs are added.
    """
    if not len(of):
        return Interval(0.0, -most, most)
    chances = np.full(len(of), np.nan) if chances is None else chances
    weights = weights_of(chances)
    bounds = most * np.where(np.isnan(chances), 1.0, HEAVIEST)
    gaps = np.stack([weights * (of - than), bounds])
    (found, largest), counts = np.unique(gaps, axis=1, return_counts=True)
    low = _lower(found, largest, counts, most, error / 2)
    high = -_lower(-found, largest, counts, most, error / 2)
    return Interval(float(weights @ (of - than) / weights.sum()), low, high)


def capped(of: Floats, than: Floats, caps: Sequence[float]) -> tuple[Interval, float]:
    """The same of values from 0 on that have no upper bound, each counted up to a cap; and that.

    It is the lowest of the `caps` that no value exceeds, or the last. The intervals for all caps
    hold at the same time, as they share the error: so pairs may tell which one is looked at.
    """
    largest = max(of.max(), than.max()) if len(of) else math.inf
    cap = next((one for one in caps if largest <= one), caps[-1])
    error = (1 - CERTAINTY) / len(caps)
    return difference(np.minimum(of, cap), np.minimum(than, cap), cap, error=error), cap


def weights_of(chances: Floats) -> Floats:
    """What each pair counts, by its chance to be drawn, relative to the mean of all.

    Of a pair whose chance is NaN nothing is known: it counts once.
    """
    weights: Floats = np.where(np.isnan(chances), 1.0, np.minimum(1 / chances, HEAVIEST))
    return weights


def _lower(gaps: Floats, bounds: Floats, counts: Ints, most: float, error: float) -> float:
    """The lower bound of the mean of gaps within bounds of their own, each seen so often.

    At a candidate m the bet s multiplies wealth by 1 + s (gap - m) / (bound + m): at least 1 - s,
    and 1 on average where the mean is m. That falls as m rises, so that halving finds the bound.
    """
    low, high = -most, most
    for _ in range(_STEPS):
        middle = (low + high) / 2
        factors = np.log1p(BETS[:, None] * ((gaps - middle) / (bounds + middle))[None, :])
        logs = factors @ counts
        wealth = float(logs.max() + math.log(np.exp(logs - logs.max()).mean()))
        if wealth >= -math.log(error):
            low = middle
        else:
            high = middle
    return low

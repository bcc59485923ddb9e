"""Which of two answers to the same decisions is better, whenever it is looked at.

The difference of two bounded losses of each pair has a mean; a gambler bets that it lies above a
value m, and his wealth is a fair game where it does not. So the chance that it ever grows by a
factor f is at most 1/f (Ville 1939), and the values at which it has not are a confidence sequence:
with 95% certainty the mean lies in all of the intervals that are ever looked at. This is the
betting confidence sequence of Waudby-Smith and Ramdas (Estimating means of bounded random variables
by betting, JRSS B 2024, section 4), one-sided twice with half of the error each, with a fixed
mixture of bets (Robbins 1970) in the place of tuned ones. With fixed bets the order of the pairs
makes no difference, so that a label which comes late or replaces another one changes no bet.
"""

from __future__ import annotations

import math

import numpy as np

from svc.stats.calibrators import Floats, Ints
from svc.stats.intervals import CERTAINTY, Interval

# How much of the wealth is bet, spaced for 30 to 100,000 pairs.
BETS = np.array([0.01, 0.03, 0.1, 0.3, 0.6, 0.9])
# The interval is found to this many halvings.
_STEPS = 40


def difference(of: Floats, than: Floats, most: float, error: float = 1 - CERTAINTY) -> Interval:
    """By how much values `of` one side are larger `than` the other's, on average.

    Both are values of the same pairs, and no difference is larger than `most`. With a chance of at
    most `error` the mean is ever outside of the interval, however often that is computed as pairs
    are added.
    """
    if not len(of):
        return Interval(0.0, -most, most)
    share, found = np.unique(((of - than) / most + 1) / 2, return_counts=True)
    counts: Ints = found.astype(np.int64)
    low = _lower(share, counts, error / 2)
    high = 1 - _lower(1 - share, counts, error / 2)
    return Interval(float((of - than).mean()), *(most * (2 * bound - 1) for bound in (low, high)))


def _lower(values: Floats, counts: Ints, error: float) -> float:
    """The lower bound of the mean of values between 0 and 1, each seen so often.

    At a candidate m the bet s multiplies wealth by 1 + s (x / m - 1): at least 1 - s, and 1 on
    average where the mean is m. That falls as m rises, so that halving finds the bound.
    """
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        factors = np.log1p(BETS[:, None] * (values[None, :] / middle - 1))
        logs = factors @ counts
        wealth = float(logs.max() + math.log(np.exp(logs - logs.max()).mean()))
        if wealth >= -math.log(error):
            low = middle
        else:
            high = middle
    return low

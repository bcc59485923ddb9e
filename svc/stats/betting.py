"""Evidence, whenever it is looked at, that answers are right more often than a target.

A gambler bets on each answer, at odds that are fair when exactly the target share is right and
against him when fewer are. So the chance that his wealth ever grows by a factor f is at most 1/f
(Ville 1939): a promise made when it has is false that rarely, however often one looks. This is
the betting martingale of Waudby-Smith and Ramdas (Estimating means of bounded random variables by
betting, JRSS B 2024, section 4), with a fixed mixture of bets in the place of a tuned one (the
method of mixtures; Robbins 1970; Howard et al., Time-uniform Chernoff bounds, 2020).
"""

from __future__ import annotations

import math

import numpy as np

from svc.stats.calibrators import Floats, Ints

# How far the true share is thought to lie on the way from the target to 1, and how much of the
# wealth is bet on it. They are spaced for samples of up to 5,000 answers.
PLACES = np.array([0.1, 0.2, 0.4, 0.7, 1.0])
SHARES = np.array([0.05, 0.25, 0.3, 0.3, 0.1])
# The logarithm of what is left to a gambler who bet everything and lost.
_RUIN = -1e6


def log_factors(target: float, correct: Ints, weight: Floats) -> Floats:
    """For each of `PLACES` a row with the logarithm of what each answer multiplies wealth by.

    With the weight w of an answer, relative to the largest, the factor is 1 + b w (correct -
    target), where the bet b is such that nothing is left when the answer of the largest weight is
    wrong and b is the highest. Its mean over the answers is at most 1 where the weighted share of
    right ones is at most the target.
    """
    bets = PLACES[:, None] * (weight / weight.max())[None, :]
    right = np.log1p(bets * (1 - target) / target)
    wrong = np.log1p(-np.minimum(bets, 1 - 1e-9)) + np.where(bets < 1, 0.0, _RUIN)
    factors: Floats = np.where(correct[None, :] == 1, right, wrong)
    return factors


def mixed(logs: Floats) -> Floats:
    """The logarithm of the wealth of all bets together; those of `PLACES` are the first axis."""
    largest = logs.max(axis=0)
    total: Floats = largest + np.log(np.tensordot(SHARES, np.exp(logs - largest), 1))
    return total


def fewest(target: float, error: float) -> int:
    """How many answers it takes, all of them right, to grow the wealth by 1 / `error`."""
    one = log_factors(target, np.ones(1, dtype=np.int64), np.ones(1))
    counts = np.arange(1, math.ceil(-2 * math.log(error) / -math.log(target)) + 1)
    return int(counts[mixed(one * counts) >= -math.log(error)][0])

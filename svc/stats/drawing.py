"""Which answers to have labelled: doubtful ones more often, every one sometimes.

**The draw.** Each answer gets a size, which grows with its doubt, and one number u between 0 and 1
by chance. Those with the smallest u / size come first (sequential Poisson sampling; Ohlsson,
Journal of Official Statistics, 1998). When all below a frontier were handed out, the chance of each
was min(1, frontier x size), and the smallest quotient that was not handed out is a frontier with
which weights of one over the chance are unbiased (priority sampling; Duffield, Lund and Thorup,
JACM 2007). As the number is drawn once (a permanent random number; Brewer, Early and Joyce 1972), a
chance depends neither on when somebody looks nor on what is drawn afterwards, and answers that come
later are drawn in the same way.

**The size.** The variance of a weighted mean is least where chances are proportional to the
standard deviation of what is averaged (Neyman 1934). How wrong doubtful answers are is not known
before there are labels, and confidences are often too high; their order tells more. So answers are
parted into `LEVELS` of doubt by how many others are surer, each with one of the `SIZES`. No weight
is more than about two times another (confidence-driven inference, Gligoric et al. 2024, arXiv
2408.15204; active testing, Kossen et al. 2021).

**The spread.** Answers that stand next to each other share out the numbers: in each pair one gets a
number in the lower half, and again among those of the lower half, so that whatever part is drawn is
spread over the whole list (a nested systematic sample). Each number by itself is still uniform.
"""

from __future__ import annotations

import math

import numpy as np

from svc.stats.calibrators import Floats, Ints
from svc.stats.intervals import Interval, effective, part_of_spread, wilson

# Levels of doubt, each a fifth of the answers, the surest first; and how likely answers of each are
# to be drawn, by their ratios. Of sizes from 0.25 to 0.5 for the surest, these gave the narrowest
# intervals on real messages (`benchmarks/simulations/review.py`).
SIZES = (0.46, 0.58, 0.7, 0.82, 0.94)
LEVELS = len(SIZES)
# How many times the usual label one may count.
HEAVIEST = 5.0


def levels(confidence: Floats, among: Floats) -> Ints:
    """The level of doubt of each answer: how many of `among` are surer, ties half."""
    ordered = np.sort(among)
    below, within = (np.searchsorted(ordered, confidence, side) for side in ("left", "right"))
    surer = 1 - (below + within) / (2 * max(len(ordered), 1))
    found: Ints = np.minimum((surer * LEVELS).astype(np.int64), LEVELS - 1)
    return found


def priorities(level: Ints, alike: Ints, random: np.random.Generator) -> Floats:
    """The turn of each answer, the lowest first, spread over levels and over groups that are alike.

    `alike` has a number for each answer, equal for answers of one kind.
    """
    order = np.lexsort((alike, level))
    found = np.empty(len(level))
    found[order] = numbers(len(level), random)
    found /= np.array(SIZES)[level]
    return found


def numbers(count: int, random: np.random.Generator) -> Floats:
    """A uniform number for each place of a list, such that any part is spread over the list."""
    halvings = math.ceil(math.log2(max(count, 2)))
    half = np.zeros(count, dtype=np.int64)
    for _ in range(halvings):
        half = half * 2 + _lower_or_upper(half, random)
    drawn: Floats = (half + random.random(count)) / 2**halvings
    return drawn


def _lower_or_upper(group: Ints, random: np.random.Generator) -> Ints:
    """0 or 1 by chance for each place, one of each in every pair of neighbours of a group."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    first = np.searchsorted(ordered, ordered)
    rank = np.arange(len(group)) - first
    coins = random.integers(0, 2, len(group))
    side = np.empty(len(group), dtype=np.int64)
    side[order] = (rank + coins[first + rank - rank % 2]) % 2
    return side


def weights_of(chance: Floats) -> Floats:
    """What each label counts: one over its chance, but no more than `HEAVIEST` times the usual one.

    Decisions that came later were handed out more seldom so far; a few labels of them would
    outweigh all others.
    """
    if not len(chance):
        return chance
    found: Floats = 1 / chance
    return np.minimum(found, HEAVIEST * np.median(found))


def accuracy(correct: Ints, level: Ints, weights: Floats, decisions: Floats) -> Interval | None:
    """The share of right answers among all, with labels of each level made to count for its part.

    `decisions` says how many there are of each level. A post-stratified mean (Holt and Smith, JRSS
    A 1979): what the levels differ by adds nothing to the interval. None without labels.
    """
    if not len(correct):
        return None
    labelled = np.bincount(level, minlength=LEVELS)
    parts = np.where(labelled > 0, decisions, 0.0)
    if not parts.sum():
        return None
    sums = np.bincount(level, weights, LEVELS)
    shares = weights / sums[level] * (parts / parts.sum())[level]
    means = np.bincount(level, weights * correct, LEVELS) / np.maximum(sums, 1e-300)
    unseen = labelled / np.maximum(labelled - 1, 1)
    squares = (correct - means[level]) ** 2 * unseen[level]
    mean, rows = float(np.clip(shares @ correct, 0.0, 1.0)), effective(shares)
    spread = rows**2 * float(shares**2 @ squares)
    return wilson(mean, rows / part_of_spread(spread, rows * mean * (1 - mean)))

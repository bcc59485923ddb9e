"""Split conformal prediction sets (Vovk et al.; Angelopoulos and Bates, A Gentle Introduction).

They hold the truth with the probability asked for as long as the labelled answers are drawn like
those to come, or weighted so that they count like them (Tibshirani et al., Conformal Prediction
Under Covariate Shift, 2019). Class-conditional limits hold it for the answers of each true option
by itself (Vovk, Conditional Validity of Inductive Conformal Predictors, 2012).

Scores are negative logarithms: 1 - p rounds every p below 1e-16 to one score, and an overconfident
model gives the truth less than that often enough for the limit to lie there, which lets every
option in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from svc.stats.calibrators import Floats, Ints
from svc.stats.grouping import by_number
from svc.stats.intervals import Interval, bounded_mean

_ROUNDING = 1e-9  # what (n + 1) times a coverage may be off by
# What two ways to a logarithm may be apart; stored probabilities differ by more, or not at all.
_LOG_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class OptionLimit:
    """The limit of one option, and whether its own labels were enough to set it."""

    limit: float
    labels: int
    guaranteed: bool


@dataclass(frozen=True, slots=True)
class OptionCoverage:
    """How many labels of one option their sets hold; None without any."""

    labels: int
    covered: Interval | None


def log_scores(true_probabilities: Floats) -> Floats:
    """The nonconformity of labelled answers: infinite where the truth was given nothing."""
    with np.errstate(divide="ignore"):
        scores: Floats = -np.log(true_probabilities)
    return scores


def weighted_quantile(
    scores: Floats, coverage: float, weights: Floats | None = None, new: float | None = None
) -> float:
    """The smallest score up to which the weights reach `coverage` of all, a new answer's included.

    With equal weights it is the ⌈(n + 1) coverage⌉-th smallest of n scores; infinite, had there to
    be more. `new` is the weight of the answer to come; where its
    chance to be labelled is unknown, the largest weight is on the safe side.
    """
    parts = np.ones(len(scores)) if weights is None else weights
    if not len(scores):
        return math.inf
    order = np.argsort(scores, kind="stable")
    reached = parts[order].cumsum()
    unit = reached[-1] / len(scores)
    wanted = coverage * (reached[-1] + (parts.max() if new is None else new)) - _ROUNDING * unit
    place = int(np.searchsorted(reached, wanted))
    return float(scores[order[place]]) if place < len(scores) else math.inf


def class_limits(
    scores: Floats, truth: Ints, options: int, coverage: float, weights: Floats | None = None
) -> list[OptionLimit]:
    """A limit for each option, by its own labels where they suffice, else by all of them.

    They suffice where the option's limit is finite: 9 labels for a coverage of 0.9.
    """
    parts = np.ones(len(scores)) if weights is None else weights
    shared = weighted_quantile(scores, coverage, parts)
    limits = []
    for own in by_number(truth, options):
        enough = len(own) > 0 and _enough(parts[own], coverage)
        limit = weighted_quantile(scores[own], coverage, parts[own]) if enough else shared
        limits.append(OptionLimit(limit, len(own), enough))
    return limits


def _enough(weights: Floats, coverage: float) -> bool:
    total = weights.sum()
    return bool(total >= coverage * (total + weights.max()) - _ROUNDING)


def guaranteed(
    truth: Ints, options: int, groups: Ints, coverage: float, weights: Floats | None = None
) -> list[bool]:
    """Of which options the labels of every group suffice for a limit, as in `class_limits`.

    Groups are numbered from 0, and each of them has labels.
    """
    parts = np.ones(len(truth)) if weights is None else weights
    shape = (int(groups.max()) + 1, options)
    total, heaviest = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (groups, truth), parts)
    np.maximum.at(heaviest, (groups, truth), parts)
    enough = (total > 0) & (total >= coverage * (total + heaviest) - _ROUNDING)
    return [bool(of_groups.all()) for of_groups in enough.T]


def coverage_by_option(
    held: Floats, truth: Ints, options: int, weights: Floats | None = None
) -> list[OptionCoverage]:
    """How often sets hold each true option; `held` is as `held_without_itself` gives it."""
    parts = np.ones(len(held)) if weights is None else weights
    return [_covered(held[own], parts[own]) for own in by_number(truth, options)]


def held_without_itself(scores: Floats, coverage: float, weights: Floats | None = None) -> Floats:
    """1 where a label is in the set that the other labels make for it.

    It is if its score is at most their limit: for equal weights, if it is among the
    `ceil(n coverage)` smallest of all n. That is so where the labels of lower scores weigh less
    than `coverage` of all: until the limit of the others is found, none of them has reached it.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    order = np.argsort(scores, kind="stable")
    _, first = np.unique(scores[order], return_index=True)
    below = np.concatenate([[0.0], weights[order].cumsum()])[first]
    where = np.searchsorted(scores[order][first], scores)
    unit = weights.sum() / max(len(weights), 1)
    held: Floats = (below[where] < coverage * weights.sum() - _ROUNDING * unit).astype(np.float64)
    return held


def _covered(held: Floats, weights: Floats) -> OptionCoverage:
    if not len(held):
        return OptionCoverage(0, None)
    return OptionCoverage(len(held), bounded_mean(held, weights))


def options_within(
    probabilities: Sequence[float], limits: Sequence[float], best: int | None = None
) -> list[int]:
    """Places of the options whose score is within their limit.

    Never empty: where none is, it is the most probable one, which `best` tells in a tie.
    """
    inside = [
        place
        for place, (p, limit) in enumerate(zip(probabilities, limits, strict=True))
        if limit == math.inf or (p > 0 and -math.log(p) <= limit + _LOG_ROUNDING)
    ]
    if inside:
        return inside
    return [probabilities.index(max(probabilities)) if best is None else best]

"""Calibration error that knows its own noise.

The expected calibration error of a perfectly calibrated model is not zero: every bin is a little
off by chance, and distances do not cancel. So beside it stands what chance alone makes of it
(consistency resampling: Bröcker and Smith, Increasing the Reliability of Reliability Diagrams,
2007), and the error without that noise: each bin's gap is made so many standard errors smaller,
down to none, or larger; labels are drawn at the rates that this gives, and the interval holds the
errors with which the observed one is neither among the smallest nor among the largest 2.5% (the
inversion of a test, whose other parameters are estimated: Lee and Young, Parametric bootstrapping
with nuisance parameters, 2005). The estimate is where it is in the middle, which is zero where
chance explains all. It serves as the debiasing of squared errors does (Kumar, Liang and Ma,
Verified Uncertainty Calibration, 2019), for distances.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from svc.jsontext import JsonObject
from svc.stats.calibrators import Floats, Ints
from svc.stats.intervals import Interval, normalised

BINS = 10  # of equal width
SEED = 20_260_115
DRAWS = 300
# A tail of 2.5% takes more of them, at the places between which an end of the interval lies.
_DRAWS_AT_THE_ENDS = 600
# How many sizes of the error are tried, within so many times its noise, and of how many standard
# errors gaps may be by chance alone.
_MULTIPLES = 45
_REACH = 4.0
_BY_CHANCE = 1.5
# The room above or below in standard errors within which chance may have led to either side.
_CRAMPED = 2.0
_TAIL = 0.025
_EDGES = np.linspace(0, 1, BINS + 1)
_DIGITS = 6
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """The observed error, what chance makes of none, and the error without chance.

    `p` is how often a perfectly calibrated model would show as much.
    """

    observed: float
    by_chance: float
    p: float
    corrected: Interval

    @property
    def as_json(self) -> JsonObject:
        return {
            "observed": round(self.observed, _DIGITS),
            "by_chance": round(self.by_chance, _DIGITS),
            "p": round(self.p, _DIGITS),
            "corrected": self.corrected.as_json,
        }


@dataclass(frozen=True, slots=True)
class _Filled:
    """The bins with rows in them: share of all, mean probability, observed rate, rows it is of.

    `labels` is the number of all rows, as many as tell the same where weights differ.
    """

    share: Floats
    expected: Floats
    rate: Floats
    rows: Ints
    labels: float


def calibration_error(
    probability: Floats, happened: Ints, weights: Floats | None = None
) -> CalibrationError | None:
    """Of probabilities of events, over ten bins of equal width; None without rows."""
    if not len(happened):
        return None
    bins = _filled(probability, happened, normalised(weights, len(happened)))
    gaps = bins.rate - bins.expected
    observed = float(bins.share @ np.abs(gaps))
    rates = _possible(bins)
    sizes = np.abs(rates - bins.expected) @ bins.share

    # Drawn where the search below looks, which is at a third of the places.
    @functools.cache
    def errors(place: int, draws: int) -> Floats:
        return _redrawn(bins, rates[place], draws, [SEED, place, draws])

    def above(place: int, draws: int) -> float:
        return float((errors(place, draws) >= observed - _ROUNDING).mean())

    def below_from_the_end(place: int, draws: int) -> float:
        return float((errors(len(sizes) - 1 - place, draws) <= observed + _ROUNDING).mean())

    corrected = Interval(
        _passing(0.5, above, sizes),
        _passing(_TAIL, above, sizes),
        _passing(_TAIL, below_from_the_end, sizes[::-1]),
    )
    return CalibrationError(observed, float(errors(0, DRAWS).mean()), above(0, DRAWS), corrected)


def _possible(bins: _Filled) -> Floats:
    """Rates of the bins by rising error: the expected ones, and others on the observed side.

    Each is as far from what is expected as the observed one, but for a multiple of its standard
    error. So gaps that chance explains vanish before others do.
    """
    gaps, variance = bins.rate - bins.expected, _variance(bins)
    error = np.sqrt(variance)
    # Where chance may have led to the side on which there is less room, the other one is meant.
    room = np.where(gaps < 0, bins.expected, 1 - bins.expected) + np.abs(gaps)
    side = np.where(gaps < 0, -1, 1) * np.where(room < _CRAMPED * error, -1, 1)
    of_all = bins.share**2 @ variance + _variance_of_shares(bins, np.abs(gaps))
    reach = _REACH * float(np.sqrt(of_all)) / float(bins.share @ error)
    multiples = np.linspace(-reach - _BY_CHANCE, reach, _MULTIPLES)
    distances = np.maximum(side * gaps + multiples[:, None] * error, 0.0)
    distances = np.concatenate([np.zeros((1, len(gaps))), distances])
    rates: Floats = np.clip(bins.expected + side * distances, 0.0, 1.0)
    return rates


def _variance(bins: _Filled) -> Floats:
    """Of each observed rate: at the expected one, or at that with one more of each."""
    likely = (bins.rate * bins.rows + 1) / (bins.rows + 2)
    variance: Floats = np.maximum(bins.expected * (1 - bins.expected), likely * (1 - likely))
    return variance / bins.rows


def bins_of(probability: Floats) -> Ints:
    """The bin of each; a bin holds its upper edge, the first one its lower edge too."""
    bins: Ints = np.maximum(np.searchsorted(_EDGES, probability) - 1, 0)
    return bins


def _filled(probability: Floats, happened: Ints, shares: Floats) -> _Filled:
    bins = bins_of(probability)
    share, expected, rate, squares = (
        np.bincount(bins, weights=values, minlength=BINS).astype(np.float64)
        for values in (shares, shares * probability, shares * happened, shares**2)
    )
    there = share > 0
    share, squares = share[there], squares[there]
    rows: Ints = np.maximum(np.rint(share**2 / squares), 1).astype(np.int64)
    labels = 1 / float(squares.sum())
    return _Filled(share, expected[there] / share, rate[there] / share, rows, labels)


def _redrawn(bins: _Filled, rates: Floats, draws: int, seed: Sequence[int]) -> Floats:
    """The error that is observed when labels come true at these rates, many times."""
    random = np.random.default_rng(seed)
    # Draws of one rate one after the other: what numpy prepares for a rate then serves them all.
    size = (len(bins.rows), draws)
    drawn = random.binomial(bins.rows[:, None], rates[:, None], size=size) / bins.rows[:, None]
    errors: Floats = bins.share @ np.abs(drawn - bins.expected[:, None])
    # By chance there were more labels in some bins, and fewer in others.
    sd = np.sqrt(_variance_of_shares(bins, np.abs(rates - bins.expected)))
    errors += random.normal(size=draws) * sd
    return errors


def _variance_of_shares(bins: _Filled, gaps: Floats) -> Floats:
    """The variance of an error, the last axis of `gaps` its bins, by whose labels were drawn."""
    squares: Floats = gaps**2 @ bins.share - (gaps @ bins.share) ** 2
    return np.maximum(squares, 0.0) / bins.labels


def _passing(level: float, chance: Callable[[int, int], float], sizes: Floats) -> float:
    """The size at which rising chances reach a level, by straight lines between places.

    `chance` is that at a place, found by so many draws: few where the level is looked for, and
    more at the four places around it, since the search may be off by one.
    """
    places = range(len(sizes))
    found = min(bisect_left(places, level, key=lambda place: chance(place, DRAWS)), places[-1])
    if found == 0:
        return float(sizes[0])
    around = places[max(found - 2, 0) : found + 2]
    chances = np.maximum.accumulate([chance(place, _DRAWS_AT_THE_ENDS) for place in around])
    return float(np.interp(level, chances, sizes[around]))

"""Whether labels still speak of the model that answers now: a change test, and what it leaves.

The test looks at one score per label: `surprise`, or the log-loss, of what was said before the
label was known. While nothing changes, the scores are exchangeable, and the rank of each among
those before it is uniform and independent of all earlier ranks, whatever the scores' distribution
(conformal p-values; Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005,
theorem 8.2).
So a bet on ranks is fair, and a sum of fair bets begun after each label is a Shiryaev-Roberts
e-detector (Shin, Ramdas and Rinaldo, E-detectors, 2023; for ranks Vovk et al., Retrain or not
retrain, 2021): after n labels its mean is n, so by Doob's inequality it reaches `HORIZON / FALSE`
within `HORIZON` labels in at most the share `FALSE` of projects, read after each label or not.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from svc.stats.calibrators import SMALLEST, Floats, Ints

# Labels within which a false alarm has at most the probability FALSE.
HORIZON = 5_000
FALSE = 0.05
# What all labels from before a change weigh together, in labels.
OLD_LABELS = 10.0
_SEED = 14
# Ranks are counted anew where more labels than these have come and gone since.
STEPS = 50

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bet:
    """That ranks fall `times` as often as they should within a tail that holds `share` of them."""

    upper: float
    lower: float
    times: float

    def logs(self, ranks: Floats) -> Floats:
        """The logarithm of what one unit becomes, for each rank."""
        share = self.upper + self.lower
        hit = (ranks > 1 - self.upper) | (ranks < self.lower)
        missed = (1 - self.times * share) / (1 - share)
        return np.where(hit, math.log(self.times), math.log(missed))


# Scores rise, as losses do when answers become worse.
RISE = tuple(
    Bet(share, 0.0, times) for share, times in ((0.02, 3), (0.05, 3), (0.1, 2.5), (0.25, 1.7))
)
# They fall.
FALL = tuple(Bet(0.0, share, times) for share, times in ((0.1, 2.5), (0.3, 1.7)))
# They part, as losses do when a model becomes too sure, or move together, when it no longer is.
PART = tuple(Bet(share, share, times) for share, times in ((0.1, 2.0), (0.25, 0.5)))
ANY = RISE + FALL + PART


def changes(scores: Floats, bets: Sequence[Bet] = ANY, horizon: float = HORIZON) -> list[int]:
    """The places of the labels with which something else began, in ascending order.

    `scores` are in the order in which the labels came. After each change that is found the test
    begins anew with the labels since then.
    """
    return _changes(scores, lambda start: conformal_ranks(scores[start:]), bets, horizon)


class ChangeTest:
    """`latest` for labels that are looked at again and again, as they come and go.

    Ranks are kept, and brought up to date label by label.
    """

    def __init__(self) -> None:
        # For the labels since the start, and since each change.
        self._kept: list[_Counts] = []

    def latest(self, ids: Ints, scores: Floats) -> int | None:
        """As of the function; `ids` grow from label to label, and a score never changes."""
        counts: list[_Counts] = []

        def ranks(start: int) -> Floats:
            before = self._kept[len(counts)] if len(counts) < len(self._kept) else _NO_COUNTS
            counts.append(before.updated(ids[start:], scores[start:]))
            return counts[-1].ranks()

        found = _changes(scores, ranks)
        self._kept = counts
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Change:
    """Since when the answers of a group are others.

    `places` are those of all its labels, `before` how many of these are from before.
    """

    places: Ints
    before: int

    @property
    def since(self) -> int:
        """The place of its first label since."""
        return int(self.places[self.before])


class GroupedChangeTest:
    """`ChangeTest` for each group of labels by itself."""

    def __init__(self) -> None:
        self._tests: dict[Any, ChangeTest] = {}

    def latest(self, ids: Ints, groups: npt.NDArray[Any], scores: Floats) -> dict[Any, Change]:
        """The latest change of each group that has one; `groups` names that of each label."""
        found = {}
        for group in np.unique(groups).tolist():
            mine = np.flatnonzero(groups == group)
            test = self._tests.setdefault(group, ChangeTest())
            before = test.latest(ids[mine], scores[mine])
            if before is not None:
                found[group] = Change(mine, before)
        return found


def _changes(
    scores: Floats,
    ranks: Callable[[int], Floats],
    bets: Sequence[Bet] = ANY,
    horizon: float = HORIZON,
) -> list[int]:
    """`changes`; `ranks` gives those of all labels from a place on, among themselves."""
    found: list[int] = []
    start, limit = 0, math.log(horizon / FALSE)
    while start < len(scores) and (change := _first(ranks(start), bets, limit)) is not None:
        start += change
        found.append(start)
    return found


def latest(scores: Floats, bets: Sequence[Bet] = ANY) -> int | None:
    """The place of the first label since the latest change, None when there was none."""
    found = changes(scores, bets)
    return found[-1] if found else None


def surprise(confidence: Floats, correct: Ints) -> Floats:
    """How surprising it is, given its confidence, that an answer was right, or that it was not.

    This is the log-loss of the confidence. It shows a fall in accuracy sooner than the log-loss
    of the whole distribution, which also depends on where the rest of the probability went.
    """
    happened = np.where(correct == 1, confidence, 1 - confidence)
    losses: Floats = -np.log(np.maximum(happened, SMALLEST))
    return losses


def weights(labels: int, change: int | None) -> Floats:
    """1 for each label since the change; those before it weigh `OLD_LABELS` together at most."""
    weight = np.ones(labels)
    if change:
        weight[:change] = min(1.0, OLD_LABELS / change)
    return weight


def _first(ranks: Floats, bets: Sequence[Bet], limit: float) -> int | None:
    """Where the first change that the test notices is likely to lie."""
    gains = np.cumsum([bet.logs(ranks) for bet in bets], axis=1)
    before = np.concatenate([np.zeros((len(bets), 1)), gains[:, :-1]], axis=1)
    detectors = gains + np.logaddexp.accumulate(-before, axis=1)
    alarmed = np.logaddexp.reduce(detectors, axis=0) - math.log(len(bets)) >= limit
    if not alarmed.any():
        return None
    alarm = int(alarmed.argmax())
    winner = int(detectors[:, alarm].argmax())
    return max(1, int(before[winner, : alarm + 1].argmin()))


def conformal_ranks(scores: Floats) -> Floats:
    """The rank of each score among itself and those before it, as a share; ties are drawn."""
    return _counted(np.zeros(len(scores), dtype=np.int64), scores).ranks()


@dataclass(frozen=True, slots=True)
class _Counts:
    """Labels, and of each how many before it have a lower score, and one that is not higher."""

    ids: Ints
    scores: Floats
    below: Ints
    up_to: Ints

    def ranks(self) -> Floats:
        """See `conformal_ranks`."""
        drawn = np.random.default_rng(_SEED).random(len(self.scores))
        equal = self.up_to - self.below + 1
        ranks: Floats = (self.below + drawn * equal) / np.arange(1, len(self.scores) + 1)
        return ranks

    def updated(self, ids: Ints, scores: Floats) -> _Counts:
        """The same for other labels: in steps where few have come and gone, else counted anew."""
        gone = np.flatnonzero(~_among(self.ids, ids))
        left = len(self.ids) - len(gone)
        new = len(ids) - left
        if len(gone) + new > STEPS or not np.array_equal(np.delete(self.ids, gone), ids[:left]):
            return _counted(ids, scores)
        below, up_to = self.below.copy(), self.up_to.copy()
        for place in gone:
            below[place:] -= self.scores[place] < self.scores[place:]
            up_to[place:] -= self.scores[place] <= self.scores[place:]
        below, up_to = np.delete(below, gone), np.delete(up_to, gone)
        for end in range(left, len(ids)):
            earlier = scores[:end]
            below = np.append(below, np.count_nonzero(earlier < scores[end]))
            up_to = np.append(up_to, np.count_nonzero(earlier <= scores[end]))
        return _Counts(ids, scores, below, up_to)


_NOTHING = np.zeros(0, dtype=np.int64)
_NO_COUNTS = _Counts(_NOTHING, np.zeros(0), _NOTHING, _NOTHING)


def _counted(ids: Ints, scores: Floats) -> _Counts:
    seen, below, up_to = list[float](), list[int](), list[int]()
    for score in scores.tolist():
        below.append(bisect_left(seen, score))
        up_to.append(bisect_right(seen, score, below[-1]))
        seen.insert(up_to[-1], score)
    return _Counts(ids, scores, np.array(below, np.int64), np.array(up_to, np.int64))


def _among(ids: Ints, others: Ints) -> Flags:
    """Whether each id is one of the others; both ascend."""
    if not len(others):
        return np.zeros(len(ids), dtype=bool)
    places = np.minimum(np.searchsorted(others, ids), len(others) - 1)
    found: Flags = others[places] == ids
    return found

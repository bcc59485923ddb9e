"""Whether labels still speak of the model that answers now: a change test, and what it leaves.

The test looks at one score per label: `surprise`, or the log-loss, of what was said before the
label was known. They have to show a change in each of several orders, since any may be sorted: in
that of the answers, because who labels may take the sure ones last, and in that of the labels.
Answers of the same day are in a random order: they may be those of a file, in its order. Days that
begin at midnight and days that begin at noon both count, so that no file of half a day is cut in
two by both. While nothing changes, the scores are exchangeable, and the rank of each among those
before it is uniform and independent of all earlier ranks, whatever the scores' distribution
(conformal p-values; Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005,
theorem 8.2). So a bet on ranks is fair, and a sum of fair bets begun after each label is a
Shiryaev-Roberts e-detector (Shin, Ramdas and Rinaldo, E-detectors, 2023; for ranks Vovk et al.,
Retrain or not retrain, 2021): after n labels its mean is n, so by Doob's inequality it reaches
`HORIZON / FALSE` within `HORIZON` labels in at most the share `FALSE` of projects, read after each
label or not. The proof for all readings together is for the order of the labels.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from svc.stats.calibrators import SMALLEST, Floats, Ints
from svc.stats.grouping import by_number

# Labels within which a false alarm has at most the probability FALSE.
HORIZON = 5_000
FALSE = 0.05
# What all labels from before a change weigh together, in labels.
OLD_LABELS = 10.0
# Answers of the same day may stand in the order of a file. Days begin at midnight, and at noon.
DAY_MS = 24 * 3_600_000
_BEGINNINGS = (0, DAY_MS // 2)
# Ranks are counted anew where more labels than these have come and gone since.
STEPS = 50
# A change is looked for among so many labels first, and then among four times as many, and so on.
FEW = 64
# After so many changes the test begins anew where the last one was noticed, and not where it lies:
# of answers that change without end each label could begin it anew, at the cost of all after it.
CLOSE = 5

# Among fewer labels no change is noticed: each makes at most three times as much of what is there,
# so that of a unit bet on each of n labels 3 + ... + 3^n are there in the end at most.
FEWEST = 11

Keys = npt.NDArray[np.uint64]


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

    `scores` are in the order that is looked at. After each change that is found the test begins
    anew with the labels since then, and after many with those since the last one was noticed.
    """
    found, _ = _changes(np.arange(len(scores)), scores, (), bets, horizon)
    return found


class ChangeTest:
    """`latest` for labels that are looked at again and again, as they come and go at any place.

    Ranks are kept, and brought up to date label by label.
    """

    def __init__(self) -> None:
        # For the labels since the start, and since each change.
        self._kept: Sequence[Counts] = ()

    def latest(self, ids: Ints, scores: Floats) -> int | None:
        """As of the function; `ids` say which answers the scores are of."""
        found, self._kept = _changes(ids, scores, self._kept)
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Change:
    """The places of a group's labels of answers from before a change, and of those since."""

    before: Ints
    since: Ints


@dataclass(frozen=True, slots=True)
class Given:
    """Labels in any order: the id of each one's answer, when that was given, and when the label.

    Times are in milliseconds.
    """

    answers: Ints
    answered_at: Ints
    labelled_at: Ints

    def orders(self) -> list[Ints]:
        """The places in the orders of the answers, and last in that of the labels."""
        mixed = _mixed(self.answers, 1)
        days = [(self.answered_at + beginning) // DAY_MS for beginning in _BEGINNINGS]
        by_answers = [np.lexsort((mixed, one)) for one in days]
        return [*by_answers, np.lexsort((mixed, days[0], self.labelled_at))]


class GroupedChangeTest:
    """`ChangeTest` for each group of labels by itself, in all orders."""

    def __init__(self) -> None:
        self._tests: dict[tuple[Any, int], ChangeTest] = {}

    def latest(self, labels: Given, groups: npt.NDArray[Any], scores: Floats) -> dict[Any, Change]:
        """The latest change of each group that has one; `groups` names that of each label."""
        orders = labels.orders()
        found = {}
        # The places of each are found once for each order, as there may be many groups.
        names, numbers = np.unique(groups, return_inverse=True)
        by_order = [by_number(numbers[order], len(names)) for order in orders]
        for group, *places in zip(names.tolist(), *by_order, strict=True):
            if len(places[0]) < FEWEST:
                continue
            own = [order[mine] for order, mine in zip(orders, places, strict=True)]
            before = self._before(group, labels.answers, own, scores)
            if before is not None:
                found[group] = Change(own[0][:before], own[0][before:])
        return found

    def _before(self, group: Any, ids: Ints, orders: Sequence[Ints], scores: Floats) -> int | None:
        """How many answers come before a change in the first order; None where one shows none."""
        places = []
        for number, order in enumerate(orders):
            test = self._tests.setdefault((group, number), ChangeTest())
            # Of a wording that one decision has several times there is one answer: the first label
            # of it counts. In the order of the answers the others follow at once.
            firsts = np.sort(np.unique(ids[order], return_index=True)[1])
            place = test.latest(ids[order][firsts], scores[order][firsts])
            if place is None:
                return None
            places.append(int(firsts[place]))
        return places[0]


def _changes(
    ids: Ints,
    scores: Floats,
    kept: Sequence[Counts],
    bets: Sequence[Bet] = ANY,
    horizon: float = HORIZON,
) -> tuple[list[int], list[Counts]]:
    """`changes`, and the counts since each place at which the test began.

    `kept` are those of an earlier look at the labels.
    """
    found: list[int] = []
    counts: list[Counts] = []
    start, limit = 0, math.log(horizon / FALSE)
    while start < len(scores):
        before = kept[len(counts)] if len(counts) < len(kept) else _NO_COUNTS
        for since in _more_and_more(before, ids[start:], scores[start:]):
            noticed = _first(since.ranks(), bets, limit)
            if noticed is not None:
                break
        counts.append(since)
        if noticed is None:
            break
        change, alarm = noticed
        found.append(start + change)
        start += change if len(found) <= CLOSE else alarm + 1
    return found, counts


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


def weight_of(before: int) -> float:
    """What each of so many labels from before a change weighs: `OLD_LABELS` together at most."""
    return min(1.0, OLD_LABELS / max(1, before))


def _first(ranks: Floats, bets: Sequence[Bet], limit: float) -> tuple[int, int] | None:
    """Where the first change that the test notices is likely to lie, and where it notices that."""
    gains = np.cumsum([bet.logs(ranks) for bet in bets], axis=1)
    before = np.concatenate([np.zeros((len(bets), 1)), gains[:, :-1]], axis=1)
    detectors = gains + np.logaddexp.accumulate(-before, axis=1)
    alarmed = np.logaddexp.reduce(detectors, axis=0) - math.log(len(bets)) >= limit
    if not alarmed.any():
        return None
    alarm = int(alarmed.argmax())
    winner = int(detectors[:, alarm].argmax())
    return max(1, int(before[winner, : alarm + 1].argmin())), alarm


@dataclass(frozen=True, slots=True)
class Counts:
    """Labels, and of each how many before it have a lower score, and one that is not higher."""

    ids: Ints
    scores: Floats
    below: Ints
    up_to: Ints

    def ranks(self) -> Floats:
        """The rank of each score among itself and those before it, as a share.

        Ties are drawn by the ids.
        """
        equal = self.up_to - self.below + 1
        ranks: Floats = (self.below + _drawn(self.ids) * equal) / np.arange(1, len(self.ids) + 1)
        return ranks

    def updated(self, ids: Ints, scores: Floats) -> Counts:
        """The same for other labels: in steps where few have come and gone, else counted anew."""
        mine, theirs = _keys(self.ids, self.scores), _keys(ids, scores)
        gone, new = _differing(mine, theirs)
        few = len(gone) + len(new) <= STEPS
        if not few or not np.array_equal(np.delete(mine, gone), np.delete(theirs, new)):
            return counted(ids, scores)
        below, up_to = self.below.copy(), self.up_to.copy()
        for place in gone:
            below[place:] -= self.scores[place] < self.scores[place:]
            up_to[place:] -= self.scores[place] <= self.scores[place:]
        below, up_to = np.delete(below, gone), np.delete(up_to, gone)
        left = np.delete(self.scores, gone)
        for place in new:
            score, earlier, later = scores[place], left[:place], left[place:]
            below[place:] += score < later
            up_to[place:] += score <= later
            below = np.insert(below, place, np.count_nonzero(earlier < score))
            up_to = np.insert(up_to, place, np.count_nonzero(earlier <= score))
            left = np.insert(left, place, score)
        return Counts(ids, scores, below, up_to)


_NOTHING = np.zeros(0, dtype=np.int64)
_NO_COUNTS = Counts(_NOTHING, np.zeros(0), _NOTHING, _NOTHING)


def counted(ids: Ints, scores: Floats) -> Counts:
    """The counts of all these labels."""
    *_, counts = _counting(ids, scores, [len(ids)])
    return counts


def _counting(ids: Ints, scores: Floats, sizes: Sequence[int]) -> Iterator[Counts]:
    """The counts of so many of the labels, each time."""
    seen, below, up_to = list[float](), list[int](), list[int]()
    for size in sizes:
        for score in scores[len(below) : size].tolist():
            below.append(bisect_left(seen, score))
            up_to.append(bisect_right(seen, score, below[-1]))
            seen.insert(up_to[-1], score)
        counts = (np.array(below, np.int64), np.array(up_to, np.int64))
        yield Counts(ids[:size], scores[:size], *counts)


def _more_and_more(kept: Counts, ids: Ints, scores: Floats) -> Iterator[Counts]:
    """The counts of the first labels, of more of them, and in the end of all.

    Those that were looked at before are the first, and come out of what was `kept`.
    """
    known = len(kept.ids)
    if known:
        size = len(ids) if len(ids) <= known + STEPS else known
        yield kept.updated(ids[:size], scores[:size])
        known = size
    sizes = [*(FEW * 4**power for power in range(8)), len(ids)]
    yield from _counting(ids, scores, [size for size in sizes if known < size <= len(ids)])


def _keys(ids: Ints, scores: Floats) -> Keys:
    """A number for each label: another one where it is of another answer, or has another score."""
    keys: Keys = _mixed(ids, 0) + scores.view(np.uint64)
    return keys


def _differing(mine: Keys, theirs: Keys) -> tuple[Ints, Ints]:
    """The places of keys that the other has not; what both begin and end with is passed over."""
    size = min(len(mine), len(theirs))
    first = _same(mine[:size], theirs[:size])
    last = _same(mine[::-1][: size - first], theirs[::-1][: size - first])
    old, new = mine[first : len(mine) - last], theirs[first : len(theirs) - last]
    return first + np.flatnonzero(~np.isin(old, new)), first + np.flatnonzero(~np.isin(new, old))


def _same(mine: Keys, theirs: Keys) -> int:
    """How many keys both begin with, of as many."""
    differ = mine != theirs
    return int(differ.argmax()) if differ.any() else len(differ)


def _drawn(ids: Ints) -> Floats:
    """A number from 0 to 1 for each label: the same one whichever labels come before it."""
    drawn: Floats = _mixed(ids, 0) / 2.0**64
    return drawn


def _mixed(ids: Ints, stream: int) -> Keys:
    """Random numbers for ids, others in stream 1 than in stream 0.

    SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014).
    """
    mixed = (2 * ids.astype(np.uint64) + np.uint64(1 + stream)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Keys = mixed ^ (mixed >> np.uint64(31))
    return found

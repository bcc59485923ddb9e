"""From which confidence on answers may be automated, as a promise that may be read at any time.

The promise of a threshold is that of the answers at or above it at least the target share is
right. It is false in at most `ERROR` of all projects, counted over every report that is ever read
of one target, one after each label if need be. Labels are of final answers, so for a cascade or a
chain the promise is about the whole of it, whoever answered.

**The test.** For each threshold a gambler bets against it (`betting.py`): while it is false, his
wealth ever reaches 1 / `ERROR` with a probability of at most `ERROR`. Thresholds are tested from
the strictest down and the first that fails ends the walk: a fixed-sequence test (Maurer, Hothorn
and Lehmacher 1995; Learn then Test, Angelopoulos et al. 2021). No grid has to be chosen and no
labels to be split off for that: *every* threshold is tested, so also the highest false one, which
is a fixed number c* of the world. A right answer only adds to wealth, so it is enough to test at
the confidences of wrong ones.

**Where the walk starts.** Above the strictest start nothing is tested, as too few labels reach so
high. Starts are the confidences of fixed ranks among the first `FIRST` labels. Each has a part of
`ERROR`; a walk that arrives at the next start takes its part along (the fallback procedure; Wiens
2003). A false promise needs one of these:

- a walk from a start above c* passes c*, with the parts of these starts together;
- a walk begins at a start s at or below c*, with its own part.

Take as given which labels lie above c*, and the confidences of all others. Then it is known which
starts lie at or below c*, and where. Labels above c* are still independent, and right with the
probability that answers above c* have on the whole, at most the target; those below are right
with at most the target each. So the wealth at c* and at each s is a supermartingale, and the
parts add up to `ERROR`. This rests on labels that are drawn like the decisions (or weighted by
one over their chance), and, for the starts alone, on this: below the highest threshold that is
false, no answers are right more often than the target. It holds where surer answers are not
right less often.

**Refits.** Everything is computed anew from all labels on the scale of the calibrator in effect.
A calibrator that keeps the order of confidences changes nothing at all, as only order counts. One
that changes it was fitted on the same labels, which the proof does not cover; the simulation
`benchmarks/simulations/promises.py` has the share of false promises with a refit at every look.
A caller who reads the most recent labels only has other first ones each time, so the proof holds
until the oldest labels fall out.

**Withdrawal.** Wealth once reached counts, unless it has been lost since; so a promise does not
come and go with chance. But the latest labels must not speak against it: the ratio of the
likelihoods that accuracy above the threshold fell under the target, and that it is as before, is
summed over the labels since which it may have fallen (the Shiryaev-Roberts statistic; E-detectors,
Shin, Ramdas and Rinaldo 2023). When the sum is large, only labels since the likeliest of these
count, for every threshold. They begin with a run of wrong answers, so this makes promises rarer,
not more often false. Weights have no say in it. What changed for good is found by `recency.py`,
whose callers leave out the labels from before.

**Rows without an order**, as those of a file, count in a random order that is always the same.
Where they stand may say how hard they are: with the easier ones first, wealth that they brought
would count for all, and with the surest first no walk would begin low enough. Any order that
nothing of the rows has a part in will do, and none of them is the latest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from svc.stats import betting
from svc.stats.calibrators import Floats, Ints
from svc.stats.tasks import SHOWN

TARGETS = (0.9, 0.95, 0.99)
# How often a promise may be false.
ERROR = 0.05
# Labels whose confidences fix where walks start; fewer never suffice for a promise.
FIRST = 32
# Ranks among them, the surest first, and the part of ERROR that each start has.
STARTS = ((4, 0.15), (8, 0.35), (16, 0.2), (32, 0.3))
# Wealth is looked up after so many labels, each time this much more, and now.
LOOKS = 1.1
# Logarithms of wealth that are summed in another order differ by less.
_ROUNDING = 1e-9
# Labels among which accuracy may have fallen, and how far under the target it is looked for.
LATEST = 400
FALL = 0.05
# The sum of likelihood ratios that withdraws a promise. Where nothing changed, it is reached once
# in at least about so many labels.
AGAINST = 2_000.0
# Of the order in which rows count that have none.
SEED = 1
# A promise is not plausible that needs more labels.
PLAUSIBLE = 100_000


@dataclass(frozen=True, slots=True)
class Promise:
    """What labels say of a target."""

    # The lowest confidence that keeps it, None when no promise can be made.
    min_confidence: float | None
    # About how many more labels it takes: 0 when promised, None when it is not plausible.
    labels_needed: int | None
    # The place of the first label that counts: 0, unless accuracy fell.
    since: int = 0


def report(
    confidence: Floats, correct: Ints, weight: Floats | None = None, *, ordered: bool = True
) -> list[dict[str, Any]]:
    """For each target the lowest `min_confidence` that keeps it, and the share it automates.

    Labels are in the order in which they came, of several at once in any that has nothing to do
    with whether they are right, and weigh one over their chance of being drawn.
    Where rows are not `ordered`, as those of a file, nothing is made of the order they stand in.
    """
    shown = np.round(confidence, SHOWN)
    weight = np.ones(len(shown)) if weight is None else weight
    return [_row(target, shown, correct, weight, ordered) for target in TARGETS]


def lowest(
    target: float, confidence: Floats, correct: Ints, weight: Floats | None = None
) -> float | None:
    """The lowest promised threshold, one of the labelled confidences."""
    weight = np.ones(len(confidence)) if weight is None else weight
    return promise(target, confidence, correct, weight).min_confidence


def promise(
    target: float, confidence: Floats, correct: Ints, weight: Floats, *, ordered: bool = True
) -> Promise:
    """What may be promised now."""
    if not ordered:
        mixed = np.random.default_rng(SEED).permutation(len(confidence))
        return _walk(target, confidence[mixed], correct[mixed], weight[mixed])
    since, found = 0, _walk(target, confidence, correct, weight)
    while found.min_confidence is not None:
        fall = _fall(target, found.min_confidence, confidence[since:], correct[since:])
        if fall is None:
            break
        since += fall
        found = _walk(target, confidence[since:], correct[since:], weight[since:])
    return replace(found, since=since)


def fewest(target: float) -> int:
    """How many answers of one confidence it takes, all of them right, to promise `target`."""
    return max(FIRST, betting.fewest(target, ERROR))


def _row(
    target: float, confidence: Floats, correct: Ints, weight: Floats, ordered: bool
) -> dict[str, Any]:
    found = promise(target, confidence, correct, weight, ordered=ordered)
    reason, share = None, None
    if found.min_confidence is None:
        reason = _why_not(target, len(correct) - found.since, found.labels_needed)
    else:
        share = float(weight[confidence >= found.min_confidence].sum() / weight.sum())
    return {
        "target": target,
        "min_confidence": found.min_confidence,
        "automated": share,
        "reason": reason,
        "labels_needed": found.labels_needed,
        "since": found.since,
    }


def _why_not(target: float, labels: int, needed: int | None) -> str:
    if labels < fewest(target):
        return f"needs at least {fewest(target)} labels, there are {labels}"
    if needed is None:
        return "the surest answers are not right often enough"
    return f"needs about {needed:,} more labels"


def _walk(target: float, confidence: Floats, correct: Ints, weight: Floats) -> Promise:
    """What labels promise among which accuracy did not fall."""
    if len(confidence) < FIRST:
        return Promise(None, max(fewest(target) - len(confidence), 1))
    starts, parts = _starts(confidence)
    factors = betting.log_factors(target, correct, weight)
    tested = _reachable(starts, factors, confidence, correct)
    logs = _logs(factors, tested, confidence, _looks(len(confidence)))
    wealth = betting.mixed(logs)
    places = np.searchsorted(-tested, -starts)
    end = _end_of_walk(np.where(wealth[-1] >= 0, wealth.max(axis=0), -np.inf), places, parts)
    if end is None:
        needed = -np.log(ERROR * parts) - wealth[-1, places]
        return Promise(None, _more_labels(logs[:, -1, places], needed, len(confidence)))
    failed = tested[end] if end < len(tested) else -math.inf
    return Promise(float(confidence[confidence > failed].min()), 0)


def _starts(confidence: Floats) -> tuple[Floats, Floats]:
    """The thresholds at which walks start, the strictest first, and their parts of `ERROR`."""
    ranked = np.sort(confidence[:FIRST])[::-1]
    values, owners = np.unique([-ranked[rank - 1] for rank, _ in STARTS], return_inverse=True)
    parts = np.bincount(owners, weights=[part for _, part in STARTS]).astype(np.float64)
    return np.asarray(-values, np.float64), parts


def _reachable(starts: Floats, factors: Floats, confidence: Floats, correct: Ints) -> Floats:
    """The thresholds that walks may come to, the strictest first.

    A wrong answer makes wealth smaller, so that a walk tests there, and it ends where nothing is
    won now. That is seen at one look, where promises need all of them.
    """
    wrong = confidence[correct == 0]
    tested: Floats = np.union1d(wrong[wrong <= starts[0]], starts)[::-1]
    now = betting.mixed(_logs(factors, tested, confidence, np.array([len(confidence)])))[0]
    reachable = np.ones(len(tested), dtype=bool)
    for start, end in pairwise([*np.searchsorted(-tested, -starts), len(tested)]):
        won = now[start : end - 1] >= -_ROUNDING
        reachable[start + 1 : end] = np.logical_and.accumulate(won)
    return tested[reachable]


def _looks(labels: int) -> Ints:
    """How many labels there were whenever wealth was looked at; the last look is now."""
    steps = math.ceil(math.log(labels / FIRST, LOOKS))
    return np.append(np.unique((FIRST * LOOKS ** np.arange(steps)).astype(np.int64)), labels)


def _logs(factors: Floats, tested: Floats, confidence: Floats, looks: Ints) -> Floats:
    """The logarithm of wealth for each bet, look and threshold."""
    look = np.searchsorted(looks, np.arange(len(confidence)), side="right")
    threshold = np.searchsorted(-tested, -confidence)
    shape = (len(looks), len(tested) + 1)
    cell = look * shape[1] + threshold
    grown = [np.bincount(cell, row, shape[0] * shape[1]).reshape(shape) for row in factors]
    logs: Floats = np.cumsum(np.cumsum(grown, axis=1, dtype=np.float64), axis=2, dtype=np.float64)
    return logs[:, :, :-1]


def _end_of_walk(grown: Floats, places: Ints, parts: Floats) -> int | None:
    """The place of the first threshold that is not promised, None when none is."""
    end, part = None, 0.0
    for first, last, own in zip(places, [*places[1:], len(grown)], parts, strict=True):
        part = own + (part if end == first else 0.0)
        passed = grown[first:last] >= -math.log(ERROR * part)
        count = len(passed) if passed.all() else int(passed.argmin())
        end = int(first) + count if count else end
    return end


def _more_labels(logs: Floats, needed: Floats, labels: int) -> int | None:
    """About how many more it takes at the start that is nearest; `logs` are of bets and starts.

    Wealth is expected to grow as it did until now, had there been one more wrong answer.
    """
    growth = (logs[:-1] + np.log1p(-betting.PLACES[:-1, None])).max(axis=0) / labels
    plausible = growth * PLAUSIBLE > needed
    if not plausible.any():
        return None
    return max(1, math.ceil(float((needed[plausible] / growth[plausible]).min())))


def _fall(target: float, threshold: float, confidence: Floats, correct: Ints) -> int | None:
    """The place since which answers that reach a threshold are likely to be worse, or None."""
    (reached,) = np.nonzero(confidence >= threshold)
    late = reached[reached >= len(confidence) - LATEST]
    usual = 1 - _usual_accuracy(target, correct[reached[: len(reached) - len(late)]])
    fallen = 1 - target + FALL
    right, wrong = math.log((1 - fallen) / (1 - usual)), math.log(fallen / usual)
    since = np.cumsum(np.where(correct[late] == 1, right, wrong)[::-1])[::-1]
    if np.exp(since).sum() < AGAINST:
        return None
    return max(1, int(late[since.argmax()]))


def _usual_accuracy(target: float, correct: Ints) -> float:
    """An accuracy drawn to the target, which it is at the least.

    It is never so high that a wrong answer or two would speak of a fall.
    """
    shrunk = (float(correct.sum()) + FIRST * target) / (len(correct) + FIRST)
    return min(max(shrunk, target), 1 - (1 - target) / 3)

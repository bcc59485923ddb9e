"""From which confidence on answers may be automated, as a promise about their accuracy.

For a target, thresholds are tested one after the other, from the strictest one down, and the
first that fails ends it: a fixed-sequence test, which keeps its error over all of them together
(Maurer, Hothorn and Lehmacher 1995; for such promises Angelopoulos et al., Learn then Test,
2021). The lowest passing one of all would make false promises far more often.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from svc.stats.calibrators import Floats, Ints
from svc.stats.tasks import SHOWN

TARGETS = (0.9, 0.95, 0.99)
ERROR = 0.05  # how often a promise may be false
GRID = 100  # steps between 1 and 0
FIRST_SHARE = 10  # the first threshold that is tested lets at least 1 in so many answers pass


def report(confidence: Floats, correct: Ints) -> list[dict[str, Any]]:
    """For each target the lowest `min_confidence` that keeps it, and the share it automates."""
    return [_row(target, np.round(confidence, SHOWN), correct) for target in TARGETS]


def lowest(target: float, confidence: Floats, correct: Ints) -> float | None:
    """The lowest threshold at which the one-sided 95% Clopper-Pearson bound reaches `target`.

    Thresholds that too few answers reach are passed over: that is decided by the confidences
    alone, never by the labels, so it does not touch the promise. Fewer than a tenth are too few
    as well: a single wrong one among them would end the walk before it began.
    """
    passed = None
    enough = max(fewest(target), len(confidence) // FIRST_SHARE)
    for threshold in (step / GRID for step in range(GRID, -1, -1)):
        reached = confidence >= threshold
        count = int(reached.sum())
        if count < enough:
            continue
        if not _holds(target, count, count - int(correct[reached].sum())):
            return passed
        passed = threshold
    return passed


def fewest(target: float) -> int:
    """How many answers it takes, all of them right, to promise `target`."""
    return math.ceil(math.log(ERROR) / math.log(target))


def _row(target: float, confidence: Floats, correct: Ints) -> dict[str, Any]:
    threshold = lowest(target, confidence, correct)
    if threshold is None:
        return {
            "target": target,
            "min_confidence": None,
            "automated": None,
            "reason": _why_not(target, len(correct)),
        }
    return {
        "target": target,
        "min_confidence": threshold,
        "automated": float((confidence >= threshold).mean()),
        "reason": None,
    }


def _why_not(target: float, labels: int) -> str:
    if labels < fewest(target):
        return f"needs at least {fewest(target)} labels, there are {labels}"
    return "the surest answers are not right often enough"


def _holds(target: float, count: int, wrong: int) -> bool:
    """Whether `wrong` or fewer of `count` would be wrong at most as rarely as `ERROR`, were the
    accuracy just below the target: then the Clopper-Pearson bound reaches it."""
    logs = np.array([_log_choose(count, k) for k in range(wrong + 1)])
    ks = np.arange(wrong + 1)
    terms = logs + ks * math.log(1 - target) + (count - ks) * math.log(target)
    return float(np.exp(terms).sum()) <= ERROR


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

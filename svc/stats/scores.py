"""How true probabilities are: accuracy, calibration error, Brier score, reliability bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from svc.jsontext import JsonObject
from svc.stats.calibration_errors import BINS as BINS
from svc.stats.calibration_errors import CalibrationError, bins_of, calibration_error
from svc.stats.calibrators import Floats, Ints
from svc.stats.intervals import Interval, bounded_mean, normalised
from svc.stats.tasks import Task

AUTOMATE_FROM = 0.9  # confidence at which an answer counts as automated
MOST_OPTIONS = 64  # of so many the calibration error is told, each of which takes milliseconds


def summary(task: Task, p: Floats, truth: Ints, weights: Floats | None = None) -> dict[str, Any]:
    """All figures of labelled answers; without any, null and empty bins.

    `weights` are one over each label's chance to be asked for, in any unit.
    """
    confidence, correct = task.confidence(p), task.correct(p, truth)
    automated = (task.shown(p) >= AUTOMATE_FROM).astype(np.int64)
    parts = np.ones(len(correct)) if weights is None else weights
    some = len(correct) > 0
    return {
        "accuracy": _mean(correct, parts),
        "ece": expected_calibration_error(confidence, correct, parts) if some else None,
        "brier": _mean(task.briers(p, truth), parts),
        "automated": _mean(automated, parts),
        "accuracy_when_automated": _mean(correct[automated == 1], parts[automated == 1]),
        "bins": reliability(confidence, correct, parts),
    }


def expected_calibration_error(
    confidence: Floats, correct: Ints, weights: Floats | None = None
) -> float:
    """The mean distance between confidence and accuracy over the bins, by their share of answers.

    Naeini et al., Obtaining Well Calibrated Probabilities Using Bayesian Binning (AAAI 2015).
    """
    parts = np.ones(len(correct)) if weights is None else weights
    gaps = np.bincount(bins_of(confidence), weights=parts * (correct - confidence), minlength=BINS)
    return float(np.abs(gaps).sum() / parts.sum())


def reliability(
    confidence: Floats, correct: Ints, weights: Floats | None = None
) -> list[dict[str, Any]]:
    """Every bin with its number of labels, their mean confidence and their accuracy."""
    parts, bins = np.ones(len(correct)) if weights is None else weights, bins_of(confidence)
    return [
        {
            "from": index / BINS,
            "to": (index + 1) / BINS,
            "count": int(inside.sum()),
            "confidence": _mean(confidence[inside], parts[inside]),
            "accuracy": _mean(correct[inside], parts[inside]),
        }
        for index, inside in ((index, bins == index) for index in range(BINS))
    ]


def uncertainty(task: Task, p: Floats, truth: Ints, weights: Floats | None = None) -> JsonObject:
    """The 95% intervals of accuracy, calibration error and Brier score; empty without labels.

    `weights` are one over each label's chance to be asked for, in any unit.
    """
    if not len(truth):
        return {}
    confidence, correct = task.confidence(p), task.correct(p, truth)
    error = calibration_error(confidence, correct, weights)
    return {
        "accuracy": bounded_mean(correct, weights).as_json,
        "brier": _brier(task.briers(p, truth), weights).as_json,
        "ece": _json(error),
    }


def _brier(briers: Floats, weights: Floats | None) -> Interval:
    """Of scores between 0 and 2, as those of several classes are."""
    half = bounded_mean(briers / 2, weights)
    return Interval(2 * half.estimate, 2 * half.low, 2 * half.high)


def by_option(
    p: Floats, answers: Ints, truth: Ints, weights: Floats | None = None
) -> list[JsonObject]:
    """For each option how its probabilities match its labels, and how its answers do.

    `p` is (n, k), two columns for a yes/no question, and `answers` are columns. Classwise
    reliability as of Kull et al., Beyond Temperature Scaling (2019). Precision is null where the
    option was never the answer, recall where it was never true. The calibration error is told of
    the `MOST_OPTIONS` that were most often true or the answer, and null of the others.
    """
    shares = normalised(weights, len(truth))
    frequent = _most_frequent(answers, truth, p.shape[1])
    return [
        {
            "labels": int((truth == option).sum()),
            "answers": int((answers == option).sum()),
            "probability": float(shares @ p[:, option]),
            "share": bounded_mean((truth == option).astype(np.int64), shares).as_json,
            "ece": _json(
                calibration_error(p[:, option], (truth == option).astype(np.int64), shares)
                if option in frequent
                else None
            ),
            **_hits(answers == option, truth == option, shares),
        }
        for option in range(p.shape[1] if len(truth) else 0)
    ]


def _most_frequent(answers: Ints, truth: Ints, options: int) -> set[int]:
    """Those that most often were true or the answer; of as many the first ones."""
    counts = np.bincount(answers, minlength=options) + np.bincount(truth, minlength=options)
    return set(np.argsort(-counts, kind="stable")[:MOST_OPTIONS].tolist())


def _hits(answered: Ints, true: Ints, shares: Floats) -> JsonObject:
    """Precision, recall and F1 of one option."""
    both = (answered & true).astype(np.int64)
    precision, recall = (
        bounded_mean(both[within], shares[within]).as_json if within.any() else None
        for within in (answered, true)
    )
    total = float(shares @ answered + shares @ true)
    f1 = 2 * float(shares @ both) / total if total else None
    return {"precision": precision, "recall": recall, "f1": f1}


def confusion(answers: Ints, truth: Ints, options: int) -> list[JsonObject]:
    """How many labels of each true option got which answer; pairs without any are left out."""
    counts = np.bincount(truth * options + answers, minlength=options**2)
    return [
        {"true": int(place) // options, "answer": int(place) % options, "count": int(counts[place])}
        for place in np.flatnonzero(counts)
    ]


def _json(error: CalibrationError | None) -> JsonObject | None:
    return None if error is None else error.as_json


def _mean(values: Floats | Ints, weights: Floats) -> float | None:
    return float(weights @ values / weights.sum()) if len(values) else None

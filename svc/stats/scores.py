"""How true probabilities are: accuracy, calibration error, Brier score, reliability bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from svc.stats.calibrators import Floats, Ints
from svc.stats.tasks import SHOWN, Task

BINS = 10  # of equal width
_EDGES = np.linspace(0, 1, BINS + 1)
AUTOMATE_FROM = 0.9  # confidence at which an answer counts as automated


def summary(task: Task, p: Floats, truth: Ints) -> dict[str, Any]:
    """All figures of labelled answers; without any, null and empty bins."""
    confidence, correct = task.confidence(p), task.correct(p, truth)
    automated = (np.round(confidence, SHOWN) >= AUTOMATE_FROM).astype(np.int64)
    return {
        "accuracy": _mean(correct),
        "ece": expected_calibration_error(confidence, correct) if len(correct) else None,
        "brier": _mean(task.briers(p, truth)),
        "automated": _mean(automated),
        "accuracy_when_automated": _mean(correct[automated == 1]),
        "bins": reliability(confidence, correct),
    }


def expected_calibration_error(confidence: Floats, correct: Ints) -> float:
    """The mean distance between confidence and accuracy over the bins, by their share of answers.

    Naeini et al., Obtaining Well Calibrated Probabilities Using Bayesian Binning (AAAI 2015).
    """
    bins = _bins(confidence)
    gaps = np.bincount(bins, weights=correct - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(correct))


def reliability(confidence: Floats, correct: Ints) -> list[dict[str, Any]]:
    """Every bin with its number of answers, their mean confidence and their accuracy."""
    bins = _bins(confidence)
    return [
        {
            "from": index / BINS,
            "to": (index + 1) / BINS,
            "count": int((bins == index).sum()),
            "confidence": _mean(confidence[bins == index]),
            "accuracy": _mean(correct[bins == index]),
        }
        for index in range(BINS)
    ]


def _bins(confidence: Floats) -> Ints:
    """The bin of each; a bin holds its upper edge, the first one its lower edge too."""
    bins: Ints = np.maximum(np.searchsorted(_EDGES, confidence) - 1, 0)
    return bins


def _mean(values: Floats | Ints) -> float | None:
    return float(values.mean()) if len(values) else None

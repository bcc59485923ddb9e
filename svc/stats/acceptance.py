"""Whether a calibrator is worth having, judged on labels that it was not fitted on."""

from __future__ import annotations

import numpy as np

from svc.stats.calibrators import Calibrator, Floats, Ints
from svc.stats.tasks import Task

FOLDS = 5
_GOLDEN = (5**0.5 - 1) / 2  # its multiples spread evenly, whatever rhythm the labels come in
STANDARD_ERRORS = 1.0  # by which a first calibrator has to beat the raw probabilities


def fit(task: Task, p: Floats, truth: Ints, *, again: bool) -> Calibrator | None:
    """The calibrator of all labels, None where held-out folds speak against it.

    A first one has to beat the raw probabilities in log-loss and in Brier score by more than a
    standard error of the difference, and in Brier score also with one more answer that is wrong:
    a few dozen right ones in a row speak for ever sharper probabilities, and vary too little to
    warn. When one was taken up before (`again`), it is enough that its successor is worse in
    neither.
    """
    unseen = _cross_fitted(task, p, truth, FOLDS)
    gains = _gains(task, p, unseen, truth)
    if again:
        good = all(gain.mean() >= 0 for gain in gains)
    else:
        _, miss = _gains(task, p, unseen, task.misses(p))
        good = all(map(_clear, gains)) and gains[1].sum() + miss.mean() > 0
    return task.fit(p, truth) if good else None


def held_out(task: Task, p: Floats, truth: Ints) -> Floats:
    """Probabilities as each half of the labels is calibrated by a fit on the other half."""
    return _cross_fitted(task, p, truth, 2) if len(truth) > 1 else p


def _cross_fitted(task: Task, p: Floats, truth: Ints, folds: int) -> Floats:
    calibrated = np.empty(p.shape)
    fold = _fold(len(truth), folds)
    for number in range(folds):
        inside = fold == number
        if inside.any():
            calibrator = task.fit(p[~inside], truth[~inside])
            calibrated[inside] = task.calibrated(calibrator, p[inside])
    return calibrated


def _fold(n: int, folds: int) -> Ints:
    """The fold of each label, by its place alone."""
    return (np.arange(n) * _GOLDEN % 1 * folds).astype(np.int64)


def _gains(task: Task, p: Floats, calibrated: Floats, truth: Ints) -> tuple[Floats, Floats]:
    """By how much each answer's log-loss and Brier score fall."""
    return (
        task.log_losses(p, truth) - task.log_losses(calibrated, truth),
        task.briers(p, truth) - task.briers(calibrated, truth),
    )


def _clear(gain: Floats) -> bool:
    standard_error = gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > STANDARD_ERRORS * standard_error)

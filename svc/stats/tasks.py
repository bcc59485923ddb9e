"""What labels mean: for one of several classes, for yes or no, for right or wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from svc.stats.calibrators import (
    SMALLEST,
    Calibrator,
    Floats,
    Ints,
    fit_platt,
    fit_temperature,
)
from svc.terms import TaskKind

EVEN = 0.5  # P(yes), as callers see it, from which the answer is yes
SHOWN = 6  # decimals of the probabilities that callers see


class Task(ABC):
    """A kind of labelled answers; every method takes all rows at once and gives (n,) vectors."""

    @abstractmethod
    def fit(self, p: Floats, truth: Ints) -> Calibrator:
        """The calibrator of these labels, however bad it may be."""

    @abstractmethod
    def confidence(self, p: Floats) -> Floats:
        """How sure each answer is."""

    @abstractmethod
    def correct(self, p: Floats, truth: Ints) -> Ints:
        """1 where the answer was right, else 0."""

    @abstractmethod
    def misses(self, p: Floats) -> Ints:
        """The most probable truth with which each answer would have been wrong."""

    def calibrated(self, calibrator: Calibrator, p: Floats) -> Floats:
        """The probabilities as callers see them while the calibrator is in effect."""
        return calibrator.apply(p)

    @abstractmethod
    def true_probabilities(self, p: Floats, truth: Ints) -> Floats:
        """The probability that each answer gave to the truth."""

    @abstractmethod
    def briers(self, p: Floats, truth: Ints) -> Floats:
        """The Brier score of each answer: squared distances of its probabilities to the truth."""

    def log_losses(self, p: Floats, truth: Ints) -> Floats:
        """The negative logarithm of the true probabilities."""
        losses: Floats = -np.log(np.maximum(self.true_probabilities(p, truth), SMALLEST))
        return losses

    def nonconformity(self, p: Floats, truth: Ints) -> Floats:
        """1 - the probability of the truth."""
        return 1 - self.true_probabilities(p, truth)


class Classes(Task):
    """One of k classes: `p` is (n, k), `truth` the true column."""

    def fit(self, p: Floats, truth: Ints) -> Calibrator:
        return fit_temperature(p, truth)

    def confidence(self, p: Floats) -> Floats:
        top: Floats = p.max(axis=1)
        return top

    def correct(self, p: Floats, truth: Ints) -> Ints:
        right: Ints = (p.argmax(axis=1) == truth).astype(np.int64)
        return right

    def misses(self, p: Floats) -> Ints:
        second: Ints = p.argsort(axis=1)[:, -2]
        return second

    def true_probabilities(self, p: Floats, truth: Ints) -> Floats:
        return p[np.arange(len(truth)), truth]

    def briers(self, p: Floats, truth: Ints) -> Floats:
        true = self.true_probabilities(p, truth)
        squares: Floats = (p**2).sum(axis=1) - 2 * true + 1
        return squares


class YesNo(Task):
    """Yes or no: `p` is (n, 1), P(yes); `truth` is 1 for yes."""

    def fit(self, p: Floats, truth: Ints) -> Calibrator:
        return fit_platt(p, truth)

    def confidence(self, p: Floats) -> Floats:
        return np.maximum(p[:, 0], 1 - p[:, 0])

    def correct(self, p: Floats, truth: Ints) -> Ints:
        right: Ints = ((np.round(p[:, 0], SHOWN) >= EVEN) == truth).astype(np.int64)
        return right

    def misses(self, p: Floats) -> Ints:
        other: Ints = (p[:, 0] < EVEN).astype(np.int64)
        return other

    def true_probabilities(self, p: Floats, truth: Ints) -> Floats:
        return np.where(truth == 1, p[:, 0], 1 - p[:, 0])

    def briers(self, p: Floats, truth: Ints) -> Floats:
        squares: Floats = (p[:, 0] - truth) ** 2
        return squares


class Rightness(YesNo):
    """Whether a value is right: `p` is (n, 1), P(right); `truth` is 1 where it was.

    A probability of 0 is that of no value: nothing is fitted on it, and it stays.
    """

    def fit(self, p: Floats, truth: Ints) -> Calibrator:
        given = p[:, 0] > 0
        return fit_platt(p[given], truth[given]) if given.any() else fit_platt(p, truth)

    def calibrated(self, calibrator: Calibrator, p: Floats) -> Floats:
        return np.where(p > 0, calibrator.apply(p), 0.0)

    def misses(self, p: Floats) -> Ints:
        return np.zeros(len(p), dtype=np.int64)

    def confidence(self, p: Floats) -> Floats:
        return p[:, 0]

    def correct(self, p: Floats, truth: Ints) -> Ints:
        return truth


TASKS: dict[TaskKind, Task] = {
    TaskKind.CLASSES: Classes(),
    TaskKind.YES_NO: YesNo(),
    TaskKind.RIGHTNESS: Rightness(),
}

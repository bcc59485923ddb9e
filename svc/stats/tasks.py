"""What labels mean: for one of several classes, for yes or no, for right or wrong."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

from svc.stats.calibrators import SMALLEST, Calibrator, Floats, Ints
from svc.stats.fitting import BIAS_SDS, classes_fit, rightness_fit, yes_no_fit
from svc.terms import TaskKind

# From p, truth and weights, drawn towards a calibrator (None: doing nothing), begun at another.
Fit: TypeAlias = Callable[
    [Floats, Ints, Floats | None, Calibrator | None, Calibrator | None], Calibrator
]

EVEN = 0.5  # P(yes), as callers see it, from which the answer is yes
SHOWN = 6  # decimals of the probabilities that callers see
# Nats, as `benchmarks/simulations` found them: what true probabilities lose by luck is small, and
# most of what can be gained from the first labels on is gained.
FIRST_MARGIN, BIAS_MARGIN = 1.0, 2.0
# Beyond these the 5,000 labels that are read are too few for a bias each, and fits take seconds.
MANY_OPTIONS = 100


@dataclass(frozen=True, slots=True)
class CalibratorRung:
    """A kind of calibrator with its strengths of shrinkage, of which the labels choose one.

    `margin` is by how much it has to beat the rung below on held-out labels: the sum of the gains
    in log-loss, in nats. A likelihood ratio of e to the `margin`, so to speak. With more than
    `most` options it is not tried.
    """

    margin: float
    fits: tuple[Fit, ...]
    most: int = sys.maxsize


class Task(ABC):
    """A kind of labelled answers; every method takes all rows at once and gives (n,) vectors."""

    ladder: ClassVar[tuple[CalibratorRung, ...]]

    def fit(
        self,
        p: Floats,
        truth: Ints,
        weights: Floats | None = None,
        towards: Calibrator | None = None,
    ) -> Calibrator:
        """The simplest calibrator of these labels, however bad it may be."""
        return self.ladder[0].fits[0](p, truth, weights, towards, None)

    @abstractmethod
    def confidence(self, p: Floats) -> Floats:
        """How sure each answer is."""

    def shown(self, p: Floats) -> Floats:
        """The confidence of each answer as callers see it."""
        return np.round(self.confidence(p), SHOWN)

    def answers(self, p: Floats) -> Ints:
        """The position of each answer; of yes or no, 1 for yes."""
        top: Ints = p.argmax(axis=1)
        return top

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


class Classes(Task):
    """One of k classes: `p` is (n, k), `truth` the true column."""

    ladder = (
        CalibratorRung(FIRST_MARGIN, (partial(classes_fit, 0.0),)),
        CalibratorRung(
            BIAS_MARGIN, tuple(partial(classes_fit, sd) for sd in BIAS_SDS), MANY_OPTIONS
        ),
    )

    def confidence(self, p: Floats) -> Floats:
        top: Floats = p.max(axis=1)
        return top

    def shown(self, p: Floats) -> Floats:
        """After the largest remainders are rounded up, as in `svc.questions.kit.lettering.tidy`."""
        exact = p * 10**SHOWN
        units = np.floor(exact)
        largest_first = np.argsort(units - exact, axis=1, kind="stable")
        places = np.empty_like(largest_first)
        np.put_along_axis(places, largest_first, np.arange(p.shape[1])[None, :], axis=1)
        raised = places < 10**SHOWN - units.sum(axis=1, keepdims=True)
        top: Floats = (units + raised).max(axis=1) / 10**SHOWN
        return top

    def correct(self, p: Floats, truth: Ints) -> Ints:
        right: Ints = (self.answers(p) == truth).astype(np.int64)
        return right

    def misses(self, p: Floats) -> Ints:
        others = p.copy()
        others[np.arange(len(p)), self.answers(p)] = -1
        second: Ints = others.argmax(axis=1)
        return second

    def true_probabilities(self, p: Floats, truth: Ints) -> Floats:
        return p[np.arange(len(truth)), truth]

    def briers(self, p: Floats, truth: Ints) -> Floats:
        true = self.true_probabilities(p, truth)
        squares: Floats = (p**2).sum(axis=1) - 2 * true + 1
        return squares


class YesNo(Task):
    """Yes or no: `p` is (n, 1), P(yes); `truth` is 1 for yes."""

    ladder = (CalibratorRung(FIRST_MARGIN, (yes_no_fit,)),)

    def confidence(self, p: Floats) -> Floats:
        return np.maximum(p[:, 0], 1 - p[:, 0])

    def correct(self, p: Floats, truth: Ints) -> Ints:
        right: Ints = (self.answers(p) == truth).astype(np.int64)
        return right

    def misses(self, p: Floats) -> Ints:
        return 1 - self.answers(p)

    def answers(self, p: Floats) -> Ints:
        """Those to probabilities as callers see them."""
        yes: Ints = (np.round(p[:, 0], SHOWN) >= EVEN).astype(np.int64)
        return yes

    def true_probabilities(self, p: Floats, truth: Ints) -> Floats:
        return np.where(truth == 1, p[:, 0], 1 - p[:, 0])

    def briers(self, p: Floats, truth: Ints) -> Floats:
        squares: Floats = (p[:, 0] - truth) ** 2
        return squares


class Rightness(YesNo):
    """Whether a value is right: `p` is (n, 1), P(right); `truth` is 1 where it was.

    A probability of 0 is that of no value: nothing is fitted on it, and it stays.
    """

    ladder = (CalibratorRung(FIRST_MARGIN, (rightness_fit,)),)

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

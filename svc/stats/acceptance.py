"""Whether a calibrator is worth having, judged on labels that it was not fitted on.

The fits of a task are a ladder (`tasks.py`): a temperature or Platt's two parameters, then biases.
A rung is taken where, on held-out folds, it beats the step below it:

- in log-loss, by a margin in nats over all labels together. The sum of the gains is the logarithm
  of a likelihood ratio, which true probabilities lose but rarely: were each label predicted from
  the earlier ones alone, by more than m nats with a probability of at most e^-m, whatever the
  losses are distributed like. A margin in standard errors has to see many wrong answers of an
  overconfident model before it is sure of them; here two will do, that were next to impossible;
- in Brier score it must not be worse by more than noise, a standard error of the difference;
- with one more answer that is wrong, too: a few dozen right ones in a row speak for ever sharper
  probabilities, and vary too little to warn.

Weights tell how much each label counts, by their ratios (`fitting.effective`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from svc.stats.calibrators import Calibrator, Floats, Ints, Temperature
from svc.stats.fitting import effective
from svc.stats.tasks import CalibratorRung, Fit, Task

FOLDS = 5
# Its multiples spread evenly, whatever rhythm the labels come in.
_GOLDEN = (5**0.5 - 1) / 2
# Labels from which on the strength of shrinkage makes no difference, and only the first is tried.
MANY = 1_000
# By which a Brier score may be worse.
STANDARD_ERRORS = 1.0


@dataclass(frozen=True, slots=True)
class Rows:
    """Labelled answers with their weights and the fold that each is held out with."""

    p: Floats
    truth: Ints
    weights: Floats
    fold: Ints

    def part(self, chosen: Ints) -> Rows:
        """Those that a mask or places select."""
        return Rows(self.p[chosen], self.truth[chosen], self.weights[chosen], self.fold[chosen])


@dataclass(frozen=True, slots=True)
class Step:
    """A calibrator, None for none, and what it would have been without each fold.

    `losses` and `briers` are those of each row, held out.
    """

    calibrator: Calibrator | None
    without: Sequence[Calibrator | None]
    losses: Floats
    briers: Floats

    def better(self, other: Step, weights: Floats) -> float:
        """By how many nats its log-loss over all rows is less than the other's."""
        return float(weights @ (other.losses - self.losses))


def fit(
    task: Task, p: Floats, truth: Ints, *, again: bool, weights: Floats | None = None
) -> Calibrator | None:
    """The calibrator of all labels, None where held-out folds speak against any.

    Where one was taken up before (`again`) it is enough that its successor is not worse than the
    raw probabilities; None then, too, means that from now on nothing is in effect.
    """
    rows = folded(p, truth, weights)
    return climbed(task, rows, raw(task, rows), again=again).calibrator


def folded(p: Floats, truth: Ints, weights: Floats | None = None) -> Rows:
    """The rows, each with its fold, by its place alone."""
    return Rows(p, truth, effective(weights, len(truth)), places(len(truth), FOLDS))


def places(n: int, folds: int) -> Ints:
    """The fold of each of `n` labels in a row."""
    return folds_of(np.arange(n), folds)


def folds_of(numbers: Ints, folds: int) -> Ints:
    """The fold of each number; numbers at any regular distance are spread over all folds."""
    return (numbers * _GOLDEN % 1 * folds).astype(np.int64)


def raw(task: Task, rows: Rows) -> Step:
    """The step below all others: no calibrator."""
    losses, briers = task.log_losses(rows.p, rows.truth), task.briers(rows.p, rows.truth)
    return Step(None, [None] * FOLDS, losses, briers)


def climbed(
    task: Task, rows: Rows, below: Step, *, again: bool = False, towards: Step | None = None
) -> Step:
    """The highest step of the ladder that labels justify, beginning at `below`.

    Fits are drawn `towards` another step's, each fold's towards what that was without the fold.
    """
    ground = raw(task, rows)
    for index, rung in enumerate(task.ladder):
        if rows.p.shape[1] > rung.most:
            break
        best = _best(task, rows, rung, below, towards or ground)
        margin = 0.0 if again and index == 0 else rung.margin
        if _beats(task, rows, best, below, margin) and _no_worse(rows, best, ground):
            below = best
    return below


def _best(task: Task, rows: Rows, rung: CalibratorRung, below: Step, towards: Step) -> Step:
    """The rung's step with the least log-loss; others than the first only if that is of any use."""
    first = tried(task, rows, rung.fits[0], towards)
    if len(rows.truth) >= MANY or first.better(below, rows.weights) <= 0:
        return first
    others = [tried(task, rows, fit, towards) for fit in rung.fits[1:]]
    return min([first, *others], key=lambda step: float(rows.weights @ step.losses))


def tried(task: Task, rows: Rows, fit: Fit, towards: Step) -> Step:
    """The step that a fit leads to."""
    whole = fit(rows.p, rows.truth, rows.weights, towards.calibrator, None)
    held_out = np.empty(rows.p.shape)
    without: list[Calibrator | None] = []
    for number, inside in _folds(rows):
        kept = rows.part(~inside)
        found = fit(kept.p, kept.truth, kept.weights, towards.without[number], whole)
        held_out[inside] = task.calibrated(found, rows.p[inside])
        without.append(found)
    losses, briers = task.log_losses(held_out, rows.truth), task.briers(held_out, rows.truth)
    return Step(whole, without, losses, briers)


def held_out(
    task: Task,
    p: Floats,
    truth: Ints,
    weights: Floats | None = None,
    *,
    like: Calibrator | None = None,
) -> Floats:
    """Probabilities as each half of the labels is calibrated by a fit on the other half.

    With biases where the calibrator that it is to be `like` has some.
    """
    if len(truth) < 2:
        return p
    biased = isinstance(like, Temperature) and bool(like.bias)
    fit = task.ladder[-1 if biased else 0].fits[0]
    halves = Rows(p, truth, effective(weights, len(truth)), places(len(truth), 2))
    calibrated = np.empty(p.shape)
    for _, inside in _folds(halves):
        kept = halves.part(~inside)
        found = fit(kept.p, kept.truth, kept.weights, None, None)
        calibrated[inside] = task.calibrated(found, p[inside])
    return calibrated


def _folds(rows: Rows) -> Iterator[tuple[int, Ints]]:
    """Each fold with a mask of its rows."""
    for number in range(int(rows.fold.max()) + 1 if len(rows.fold) else 0):
        yield number, rows.fold == number


def _beats(task: Task, rows: Rows, step: Step, below: Step, margin: float) -> bool:
    """Whether the step is better than the one below, and were with one more wrong answer."""
    gain = step.better(below, rows.weights)
    miss = _gain_of_a_miss(task, rows, step, below)
    return gain + min(miss, 0.0) > margin and _no_worse(rows, step, below)


def _gain_of_a_miss(task: Task, rows: Rows, step: Step, below: Step) -> float:
    """By how much an answer's log-loss falls on average, were it wrong."""
    wrong = task.misses(rows.p)
    losses = [task.log_losses(_served(task, one, rows.p), wrong) for one in (below, step)]
    return float(rows.weights @ (losses[0] - losses[1]) / max(rows.weights.sum(), 1.0))


def _served(task: Task, step: Step, p: Floats) -> Floats:
    return p if step.calibrator is None else task.calibrated(step.calibrator, p)


def _no_worse(rows: Rows, step: Step, below: Step) -> bool:
    """Whether the Brier score is better, or worse by no more than noise."""
    gains, total = below.briers - step.briers, max(float(rows.weights.sum()), 1.0)
    mean = float(rows.weights @ gains) / total
    error = float(np.sqrt((rows.weights**2) @ (gains - mean) ** 2)) / total
    return mean >= -STANDARD_ERRORS * error

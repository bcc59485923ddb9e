"""Labels as statistics take them: merged by today's pools, grouped, and weighted.

A label weighs one over its chance to have been asked for, and less where the answers have changed
since it was given.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from svc.learning import councils
from svc.learning.fits import Fits
from svc.questions import Question
from svc.stats import (
    TASKS,
    Change,
    Floats,
    Given,
    GroupedChangeTest,
    Ints,
    by_number,
    fit_groups,
    held_out,
    numbered,
    recency,
)
from svc.store import TrainingData, Worth
from svc.terms import TaskKind

# No label weighs more than so many times the usual one: a few rare ones would decide everything.
# What is cut off makes figures lean a little to the labels that were likely to be asked for.
HEAVIEST = 20.0


@dataclass(frozen=True, slots=True)
class Labelled:
    """The labels of an exact question, oldest first.

    `groups` are the answering models and modes. `sampling` has one over the chance of each label to
    have been asked for, None where all count alike; `weights` what it counts for how answers are
    now. `changes` has the groups whose answers changed.
    """

    question: Question
    p: Floats
    truth: Ints
    groups: list[str]
    sampling: Floats | None
    weights: Floats | None
    changes: Mapping[str, Change]

    @property
    def current(self) -> Ints:
        """The places of the labels of answers since those of their group changed."""
        counts = np.ones(len(self.truth), dtype=bool)
        for change in self.changes.values():
            counts[change.before] = False
        places: Ints = np.flatnonzero(counts)
        return places

    def sampling_of(self, places: Ints) -> Floats | None:
        """One over the chance of these labels to have been asked for; None where all are alike."""
        return None if self.sampling is None else self.sampling[places]

    def by_group(self) -> dict[str, Ints]:
        """The places of each group's labels."""
        names, numbers = numbered(self.groups)
        return dict(zip(names, by_number(numbers, len(names)), strict=True))

    def changed_at(self, decided_at: Sequence[int]) -> int | None:
        """When the answers changed last, of the times of the labelled decisions."""
        began = [min(decided_at[place] for place in one.since) for one in self.changes.values()]
        return max(began, default=None)

    def calibrated(self, fits: Fits) -> Floats:
        """The probabilities as callers see them while `fits` are in effect."""
        task, p = TASKS[self.question.task], self.p.copy()
        for group, mine in self.by_group().items():
            calibrator = fits.of(group)
            if calibrator is not None:
                p[mine] = task.calibrated(calibrator, self.p[mine])
        return p

    def held_out(self, in_effect: Fits) -> Floats:
        """The same, each half of the labels calibrated by fits on the other half."""
        task, p = TASKS[self.question.task], self.p.copy()
        pooled = in_effect.pooled.calibrator
        if pooled is not None:
            p = held_out(task, self.p, self.truth, self.weights, like=pooled)
        for group, mine in self.by_group().items():
            fitted = in_effect.by_group.get(group)
            if fitted is None:
                continue
            if fitted.own:
                weights = None if self.weights is None else self.weights[mine]
                like = fitted.calibrator
                p[mine] = held_out(task, self.p[mine], self.truth[mine], weights, like=like)
            elif fitted.calibrator is None:
                p[mine] = self.p[mine]
        return p

    def fits(self, again: bool) -> Fits:
        """The calibrators that held-out labels speak for; `again` says that there were some."""
        if not self.question.calibrates:
            return Fits()
        task = TASKS[self.question.task]
        pooled = fit_groups(
            task, self.p, self.truth, self.groups, weights=self.weights, again=again
        )
        return Fits(pooled.pooled, pooled.by_group)


def labelled(data: TrainingData, question: Question, pools: str | None) -> Labelled:
    """The arrays and weights of stored labels."""
    p, truth = np.array(councils.merged(data, pools).p), np.array(data.truth)
    alike = p if pools is None else np.array(councils.merged(data, None).p)
    changes = _changes(data, question, alike)
    sampling = sampling_weights(data.chance, data.relative)
    weights = weighed(len(truth), sampling, changes.values())
    return Labelled(question, p, truth, data.answered_by, sampling, weights, changes)


def _changes(data: TrainingData, question: Question, p: Floats) -> dict[str, Change]:
    """The groups whose answers changed.

    In `p` members of councils count alike, whatever their pools say: a pool that has learned to do
    without a member would hide its change from the next fit, which would take it in again.
    """
    task, truth = TASKS[question.task], np.array(data.truth)
    surprises = recency.surprise(task.confidence(p), task.correct(p, truth))
    given = Given(*map(np.array, (data.decisions, data.decided_at, data.first_at)))
    names, groups = numbered(data.answered_by)
    found = GroupedChangeTest().latest(given, groups, surprises)
    return {names[group]: change for group, change in found.items()}


def weighed(labels: int, sampling: Floats | None, changes: Collection[Change]) -> Floats | None:
    """What each label counts for how answers are now; None where all count alike."""
    if not changes:
        return sampling
    weights = np.ones(labels) if sampling is None else sampling.copy()
    for change in changes:
        weights[change.before] *= recency.weight_of(len(change.before))
    return weights


def worths(kind: TaskKind, p: Sequence[Sequence[float]], truth: Sequence[int]) -> list[Worth]:
    """What each raw reading was worth for such a task."""
    if not truth:
        return []
    task, rows, true = TASKS[kind], np.array(p), np.array(truth)
    p_true = task.true_probabilities(rows, true).tolist()
    confidence = task.confidence(rows).tolist()
    correct = task.correct(rows, true).astype(int).tolist()
    return [Worth(*row) for row in zip(p_true, confidence, correct, strict=True)]


def unlabelled(question: Question) -> Labelled:
    """Where there are no labels yet."""
    return Labelled(question, np.zeros((0, 1)), np.zeros(0, dtype=np.int64), [], None, None, {})


def columns(p: Floats) -> Floats:
    """A column for each option or level; of a yes/no question no and yes."""
    return p if p.shape[1] > 1 else np.hstack([1 - p, p])


def _around_one(inverse: Floats) -> Floats:
    """The weights divided by their mean, of which none is more than `HEAVIEST` after that.

    What is cut off a heavy one counts no longer in the mean: else a single label with a tiny chance
    would leave nothing of all others.
    """
    count, descending = len(inverse), np.sort(inverse)[::-1]
    # With so many of the heaviest cut off, and the sum of the others, the highest weight would be.
    cut = np.arange(math.ceil(count / HEAVIEST))
    others = descending[::-1].cumsum()[::-1][cut]
    highest = HEAVIEST * others / (count - HEAVIEST * cut)
    (enough,) = np.nonzero(descending[cut] <= highest)
    # The last one always is enough, but for the rounding of sums.
    kept = np.minimum(inverse, highest[enough[0] if len(enough) else -1])
    weights: Floats = kept / kept.mean()
    return weights


def sampling_weights(
    chances: Sequence[float | None] | Floats, relative: Sequence[float | None] | Floats
) -> Floats | None:
    """One over each chance, around 1; a label whose chance is not known weighs 1.

    Where the chance `relative` to the mean of all decisions is known, it is that which counts: one
    over it is around 1 already, also while there are few labels.
    """
    given, drawn = (np.array(column, dtype=np.float64) for column in (chances, relative))
    queued = ~np.isnan(drawn)
    known = ~(np.isnan(given) | (given == 0) | queued)
    if not (known.any() or queued.any()):
        return None
    inverse = np.ones(len(given))
    inverse[queued] = 1 / drawn[queued]
    if known.any():
        inverse[known] = _around_one(1 / given[known])
    weights: Floats = np.minimum(inverse, HEAVIEST)
    return weights

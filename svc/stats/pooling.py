"""A calibrator for each group of labels, those of one answering model, that borrows from all.

Partial pooling: the labels of all groups together give the pooled fit, and the fit of a group is
drawn towards it as strongly as a single question's is drawn towards doing nothing (`fitting.py`),
so the fewer labels a group has, the nearer it stays (Gelman and Hill, Data Analysis Using
Regression and Multilevel/Hierarchical Models, 2006, chapter 12). A group's own fit has to beat the
pooled calibrator on the group's held-out labels, as that has to beat the raw probabilities; and
where what a group would be served with is worse than its raw probabilities, it gets these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from svc.stats.acceptance import FOLDS, Rows, Step, climbed, places, raw, tried
from svc.stats.calibrators import Calibrator, Floats, Ints
from svc.stats.fitting import effective
from svc.stats.grouping import by_number, numbered
from svc.stats.tasks import Task

# Labels of a group before it may depart from the pooled calibrator.
FEWEST = 20
# Of more groups those with the most labels have calibrators of their own: each takes up to 0.1 s.
OWN = 32


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibrator, None for raw probabilities, and the labels behind it.

    `own` says that it was fitted for the group alone; otherwise it is the pooled one, or none.
    """

    calibrator: Calibrator | None
    labels: int
    own: bool = False


@dataclass(frozen=True, slots=True)
class Pooled:
    """The calibrator of all labels, for groups without any, and the one of each group."""

    pooled: Fitted
    by_group: Mapping[str, Fitted]


def fit_groups(
    task: Task,
    p: Floats,
    truth: Ints,
    groups: Sequence[str],
    *,
    weights: Floats | None = None,
    again: bool = False,
) -> Pooled:
    """Calibrators of all labels and of each group, as far as held-out labels speak for them.

    `groups` names the group of each row. `again` says that a pooled one was in effect before.
    """
    names, members = numbered(groups)
    rows = Rows(p, truth, effective(weights, len(truth)), _folds(members))
    served = climbed(task, rows, raw(task, rows), again=again)
    pooled = Fitted(served.calibrator, len(truth))
    if len(names) < 2:
        return Pooled(pooled, dict.fromkeys(names, pooled))
    # What groups are drawn towards need not have been taken up: two models that err in opposite
    # ways are no reason to doubt either.
    towards = served if served.calibrator else tried(task, rows, task.ladder[0].fits[0], served)
    by_size = np.argsort(-np.bincount(members), kind="stable")
    largest = frozenset(by_size[:OWN].tolist())
    by_group = {
        name: _of_group(task, rows, mine, served, towards if index in largest else None)
        for index, (name, mine) in enumerate(
            zip(names, by_number(members, len(names)), strict=True)
        )
    }
    return Pooled(pooled, by_group)


def _folds(members: Ints) -> Ints:
    """The fold of each row: those of a group follow each other, and so do those of small groups."""
    fold = np.empty(len(members), dtype=np.int64)
    fold[np.argsort(members, kind="stable")] = places(len(members), FOLDS)
    return fold


def _of_group(task: Task, rows: Rows, mine: Ints, served: Step, towards: Step | None) -> Fitted:
    """What a group is served with; it has no calibrator of its own without `towards`."""
    if len(mine) < FEWEST:
        return Fitted(served.calibrator, len(mine))
    part = rows.part(mine)
    part = replace(part, weights=effective(part.weights, len(mine)))
    below = _restricted(served, mine)
    step = climbed(task, part, below, towards=_restricted(towards, mine)) if towards else below
    # Nothing fitted is better than something that is worse than nothing.
    if step.better(raw(task, part), part.weights) < 0:
        return Fitted(None, len(mine))
    return Fitted(step.calibrator, len(mine), own=step is not below)


def _restricted(step: Step, mine: Ints) -> Step:
    return replace(step, losses=step.losses[mine], briers=step.briers[mine])

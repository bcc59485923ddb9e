"""What labels teach about challengers, which answered some of the labelled decisions too.

A challenger's model has its own calibrator for the day on which it answers callers. What is in
effect for them until then is fitted without any answer of a challenger.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from svc import limits
from svc.learning.fits import Fits
from svc.questions import Question
from svc.store import ChallengerLabel, TrainingData


def joined(
    data: TrainingData, found: Sequence[ChallengerLabel], question: Question
) -> TrainingData:
    """The labels with those of challengers among them, by the time at which they were given."""
    own = zip(
        *(data.p, data.truth, data.members, data.answered_by, data.sampled),
        *(data.chance, data.first_at, data.relative, data.decisions, data.decided_at),
        strict=True,
    )
    theirs = (
        (
            *(_evidence(one, question), _truth(one, question), None, one.answered_by),
            *(one.sampled, one.chance, one.first_at, one.relative, one.decision, one.decided_at),
        )
        for one in found
    )
    rows = sorted([*own, *theirs], key=lambda row: row[6])
    return TrainingData(data.state, *(list(column) for column in zip(*rows, strict=True)))


def with_challengers(
    own: Fits, both: Fits, found: Sequence[ChallengerLabel], data: TrainingData
) -> Fits:
    """The fits `own` to callers' answers, with those of challengers out of the fits to `both`.

    A model that answers callers as well, as a later member of a cascade does, may answer other
    decisions for them: with enough labels of these in `data` its calibrator is theirs alone.
    """
    labels = Counter(data.answered_by)
    groups = {one.answered_by for one in found if labels[one.answered_by] < limits.MIN_LABELS}
    taught = {group: fitted for group, fitted in both.by_group.items() if group in groups}
    return replace(own, by_group={**own.by_group, **taught})


def _evidence(one: ChallengerLabel, question: Question) -> Sequence[float]:
    return question.evidence(json.loads(one.p), json.loads(one.answer))


def _truth(one: ChallengerLabel, question: Question) -> int:
    return question.truth(json.loads(one.label), json.loads(one.answer))

"""The labels of a question as prediction sets need them, kept and brought up to date in steps.

A new label costs the reading of its row alone, however many there are. What a council's members
said is merged by today's pools, so that all is read again when these change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from svc import limits
from svc.learning import councils
from svc.learning.labelled import sampling_weights, weighed, worth
from svc.questions import Question
from svc.stats import ChangeTest, Floats, conformal, recency
from svc.store import CalibrationState, Labels, Place, TrainingData, WeighedLabel, Worth


@dataclass(frozen=True, slots=True)
class Scores:
    """The nonconformity scores of a question's labels, with the weight and the group of each.

    `groups` are places in `names`, which has the answering models and modes.
    """

    scores: Floats
    weights: Floats | None
    groups: Floats
    names: Sequence[str]

    def limit(self, group: str, coverage: float) -> float | None:
        """The score up to which options are in a set; None where nothing can be promised.

        A group with too few labels of its own shares those of all, unless it has none at all: of
        a model that was never labelled nothing is known.
        """
        if len(self.scores) < limits.MIN_LABELS or group not in self.names:
            return None
        own = self.groups == self.names.index(group)
        if not own.any():
            return None
        rows = own if own.sum() >= limits.MIN_LABELS else np.ones(len(own), dtype=bool)
        weights = None if self.weights is None else self.weights[rows]
        return conformal.weighted_quantile(self.scores[rows], coverage, weights)


NO_SCORES = Scores(np.zeros(0), None, np.zeros(0), ())

# What is kept of each label, a line each: its id, the probabilities of the truth and of the answer,
# 1 where the answer was right, the chance to be asked for (NaN where nobody said), the round of the
# review queue and the level of doubt (NaN where it was not handed out), the group.
_NO_LABELS = np.zeros((8, 0))


class ScoredLabels:
    """The labels of one question; one thread at a time uses it."""

    def __init__(self, place: Place, question: Question) -> None:
        self._place = place
        self._question = question
        self._forget()

    def scores(self, labels: Labels, state: CalibrationState) -> Scores:
        """The scores of at least the labels that `state` has. Raises `StorageError`."""
        seen = self._state
        if seen is None or seen.revision < state.revision or seen.pools != state.pools:
            self._read(labels)
        return self._scores

    def _forget(self) -> None:
        self._state: CalibrationState | None = None
        self._kept = _NO_LABELS
        self._relative: Mapping[tuple[int, int], float] = {}
        self._names: list[str] = []
        self._changes: dict[int, ChangeTest] = {}
        self._scores = NO_SCORES

    def _read(self, labels: Labels) -> None:
        last_id = int(self._kept[0, -1]) if self._kept.size else 0
        rounds = self._kept[5][~np.isnan(self._kept[5])]
        first_round = int(rounds.min()) if rounds.size else None
        newer = labels.newer(self._place, limits.LABELS_READ, last_id, self._state, first_round)
        if newer is not None and self._state is not None and newer.state.pools != self._state.pools:
            self._forget()
            newer = labels.newer(self._place, limits.LABELS_READ)
        if newer is None:
            self._forget()
            return
        kept = np.concatenate([self._kept, self._lines(newer.labels, newer.state)], axis=1)
        if newer.left is not None:
            kept = kept[:, np.isin(kept[0], newer.left)]
        self._kept = kept[:, -limits.LABELS_READ :]
        self._state = newer.state
        self._relative = newer.relative
        self._scores = self._scored()

    def _lines(self, labels: Sequence[WeighedLabel], state: CalibrationState) -> Floats:
        new = dict.fromkeys(one.answered_by for one in labels)
        self._names += [name for name in new if name not in self._names]
        groups = {name: place for place, name in enumerate(self._names)}
        found = [
            (
                *(one.id, *astuple(worth), one.chance, one.review_round, one.doubt),
                groups[one.answered_by],
            )
            for one, worth in zip(labels, _worths(labels, self._question, state), strict=True)
        ]
        return np.array(found, dtype=np.float64).reshape(-1, len(_NO_LABELS)).T

    def _scored(self) -> Scores:
        ids, p_true, confidence, correct, chance, rounds, levels, groups = self._kept
        surprises = recency.surprise(confidence, correct.astype(np.int64))
        changed = []
        for group in range(len(self._names)):
            (mine,) = np.nonzero(groups == group)
            test = self._changes.setdefault(group, ChangeTest())
            before = test.latest(ids[mine].astype(np.int64), surprises[mine])
            if before is not None:
                changed.append((mine, before))
        relative = [self._relative.get(drawn) for drawn in zip(rounds, levels, strict=True)]
        weights = weighed(len(ids), sampling_weights(chance, relative), changed)
        return Scores(conformal.log_scores(p_true), weights, groups, tuple(self._names))


def _worths(
    labels: Sequence[WeighedLabel], question: Question, state: CalibrationState
) -> list[Worth]:
    """What each label's reading was worth; found anew where it depends on pools."""
    open_ones = [one for one in labels if one.p is not None]
    p = iter(_merged(open_ones, state))
    return [
        one.worth if one.p is None and one.worth else worth(question, next(p), one.truth)
        for one in labels
    ]


def _merged(labels: Sequence[WeighedLabel], state: CalibrationState) -> list[list[float]]:
    p = [one.p or [] for one in labels]
    truth, members = [one.truth for one in labels], [one.members for one in labels]
    data = TrainingData(state, p, truth, members, [], [], [], [], [])
    return councils.merged(data, state.pools).p

"""The labels of a question as prediction sets need them, kept and brought up to date in steps.

A new label costs the reading of its row alone, however many there are. What a council's members
said is merged by today's pools, so that all is read again when these change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from svc import limits
from svc.learning import councils
from svc.learning.labelled import Labelled, sampling_weights, weighed, worths
from svc.questions import Question
from svc.recent import Recent
from svc.stats import (
    TASKS,
    Floats,
    Given,
    GroupedChangeTest,
    Ints,
    by_number,
    conformal,
    recency,
)
from svc.store import (
    CalibrationState,
    Labels,
    Place,
    RawReading,
    Stratum,
    TrainingData,
    WeighedLabel,
    Worth,
)
from svc.terms import TaskKind

# Of so many labels what was read is in memory at a time.
_AT_ONCE = 50

# How many labels stay in memory, at most 5,000 of a question: 200 bytes each. A question counts as
# so many more.
LABELS_KEPT, QUESTION_LABELS = 400_000, 50

# To read what a council said takes as long as so many other labels, and one for so many bytes more.
_OPEN_COST, _BYTES_OF_COST = 5, 2_500


class Share(NamedTuple):
    """What a question's set may read of its labels: the most recent `labels`.

    Those that are merged anew may take as long to read as `effort` others.
    """

    labels: int
    effort: int


# The share of a question that is alone.
WHOLE = Share(limits.LABELS_READ, limits.SETS_LABELS_READ)


def share_of_each(labels: Sequence[int]) -> Share:
    """The share of each of the questions that have so many labels, where a request asks them all.

    It is halved until all fit, so that few shares differ: what was read for one stays in memory.
    """
    each, effort = limits.LABELS_READ, limits.SETS_LABELS_READ
    while sum(min(own, each) for own in labels) > limits.SETS_LABELS_READ:
        each //= 2
    while effort * len(labels) > limits.SETS_LABELS_READ:
        effort //= 2
    return Share(each, effort)


@dataclass(frozen=True, slots=True)
class Scores:
    """The nonconformity scores of a question's labels, with the truth, weight and group of each.

    `groups` are places in `names`, which has the hash of the name of each answering model and mode:
    callers choose the names, which may be long.
    """

    scores: Floats
    truth: Ints
    weights: Floats | None
    groups: Ints
    names: Sequence[int]

    def limit(self, group: str, coverage: float) -> float | None:
        """The score up to which options are in a set; None where nothing can be promised.

        A group with too few labels of its own shares those of all, unless it has none at all: of
        a model that was never labelled nothing is known.
        """
        rows = self._rows(group)
        if rows is None:
            return None
        return conformal.weighted_quantile(self.scores[rows], coverage, self._weights(rows))

    def option_limits(
        self, group: str, coverage: float, options: int
    ) -> list[conformal.OptionLimit] | None:
        """The same for each option, of the labels that it is the truth of."""
        rows = self._rows(group)
        if rows is None:
            return None
        return conformal.class_limits(
            self.scores[rows], self.truth[rows], options, coverage, self._weights(rows)
        )

    def coverage_by_option(
        self, coverage: float, options: int
    ) -> list[tuple[conformal.OptionCoverage, bool]]:
        """How often sets hold each true option, and whether they could promise it for each.

        Each label is left out of those that its set is made with.
        """
        held = conformal.held_without_itself(self.scores, coverage, self.weights)
        for mine in self._with_limits():
            own = self._weights(mine)
            held[mine] = conformal.held_without_itself(self.scores[mine], coverage, own)
        covered = conformal.coverage_by_option(held, self.truth, options, self.weights)
        return list(zip(covered, self._promised(coverage, options), strict=True))

    def _with_limits(self) -> list[Ints]:
        """The places of the labels of each group that has enough for limits of its own."""
        by_group = by_number(self.groups, len(self.names))
        return [mine for mine in by_group if len(mine) >= limits.MIN_LABELS]

    def _promised(self, coverage: float, options: int) -> list[bool]:
        """For which options the limits that each group has are of enough labels."""
        if len(self.scores) < limits.MIN_LABELS:
            return [False] * options
        limited = self._with_limits()
        if len(limited) < len(self.names):
            # The others share the labels of all.
            limited.append(np.arange(len(self.scores)))
        rows = np.concatenate(limited)
        numbers = np.repeat(np.arange(len(limited)), [len(mine) for mine in limited])
        return conformal.guaranteed(
            self.truth[rows], options, numbers, coverage, self._weights(rows)
        )

    def _rows(self, group: str) -> Ints | None:
        name = hash(group)
        if len(self.scores) < limits.MIN_LABELS or name not in self.names:
            return None
        own = np.flatnonzero(self.groups == self.names.index(name))
        if not len(own):
            return None
        return own if len(own) >= limits.MIN_LABELS else np.arange(len(self.scores))

    def _weights(self, rows: Ints) -> Floats | None:
        return None if self.weights is None else self.weights[rows]


def scores_of(rows: Labelled) -> Scores:
    """The scores of labels that were read as a whole."""
    true = TASKS[rows.question.task].true_probabilities(rows.p, rows.truth)
    names, groups = np.unique(np.array([*map(hash, rows.groups)]), return_inverse=True)
    return Scores(conformal.log_scores(true), rows.truth, rows.weights, groups, names.tolist())


_NOTHING = np.zeros(0, dtype=np.int64)
NO_SCORES = Scores(np.zeros(0), _NOTHING, None, _NOTHING, ())

# What is kept of each label, a line each: its id, the row of its decision, the truth, 1 where the
# answer was right, and the group; when the decision was made, and when it was labelled first; then
# the probabilities of the truth and of the answer, the chance to be asked for (NaN where nobody
# said), the round of the review queue and the level of doubt (NaN where it was not handed out).
_NO_LABELS = np.zeros((12, 0))


class ScoredLabels:
    """The labels of one question; one thread at a time uses it."""

    def __init__(self, place: Place, task: TaskKind, share: Share = WHOLE) -> None:
        """Of the question at this place, whose labels belong to such a task."""
        self._place, self._task = place, task
        self._share = share
        self._forget()

    def scores(self, labels: Labels, state: CalibrationState) -> Scores:
        """The scores of at least the labels that `state` has. Raises `StorageError`."""
        seen = self._state
        if seen is None or seen.revision < state.revision or _basis(seen) != _basis(state):
            self._read(labels)
        return self._scores

    @property
    def weight(self) -> int:
        """How many labels it has read, where a name of a model and a stratum count as one more."""
        return self._kept.shape[1] + len(self._names) + len(self._relative)

    def unread(self, state: CalibrationState) -> int:
        """How many of the labels that `state` has would be read for their scores, about."""
        seen = self._state
        if seen is None or _basis(seen) != _basis(state):
            return min(state.labels, self._share.labels)
        return max(0, state.revision - seen.revision)

    def _forget(self) -> None:
        self._state: CalibrationState | None = None
        self._kept = _NO_LABELS
        self._relative: Mapping[Stratum, float] = {}
        # The hashes of the names of answering models and modes, with their places.
        self._names: dict[int, int] = {}
        self._changes = GroupedChangeTest()
        self._scores = NO_SCORES

    def _read(self, labels: Labels) -> None:
        most = self._share.labels
        if len(self._names) > 2 * most:
            # Most of them have no label any more that is read.
            self._forget()
        last_id = int(self._kept[0, -1]) if self._kept.size else 0
        newer = labels.newer(self._place, most, last_id, self._state, self._strata())
        seen = self._state
        if newer is not None and seen is not None and _basis(newer.state) != _basis(seen):
            self._forget()
            newer = labels.newer(self._place, most)
        if newer is None:
            self._forget()
            return
        affordable = self._affordable(newer.labels)
        if len(affordable) < len(newer.labels):
            # Those that are kept are older than the ones that are left out.
            self._kept = _NO_LABELS
        lines = self._lines(labels, affordable, newer.state)
        kept = np.concatenate([self._kept, *lines], axis=1)
        if newer.left is not None:
            kept = kept[:, np.isin(kept[0], newer.left)]
        # A view would keep all of it.
        self._kept = kept[:, -most:].copy()
        self._state = newer.state
        self._relative = newer.relative
        self._scores = self._scored()

    def _strata(self) -> list[Stratum]:
        """Those that its labels were drawn from."""
        both = self._kept[10:]
        known = both[:, ~np.isnan(both[0])].astype(np.int64)
        return [(number, level) for number, level in np.unique(known, axis=1).T.tolist()]

    def _affordable(self, labels: Sequence[WeighedLabel]) -> Sequence[WeighedLabel]:
        """The most recent of them that the share has the effort for."""
        left = float(self._share.effort)
        for place in range(len(labels) - 1, -1, -1):
            if labels[place].open_bytes:
                left -= _OPEN_COST + labels[place].open_bytes / _BYTES_OF_COST
            if left < 0:
                return labels[place + 1 :]
        return labels

    def _lines(
        self, labels: Labels, new: Sequence[WeighedLabel], state: CalibrationState
    ) -> Iterator[Floats]:
        """The lines of new labels, of a few at a time: what councils said may be 13 KB each."""
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            open_ones = [one.id for one in some if one.open_bytes]
            readings = labels.readings(open_ones) if open_ones else {}
            # One that is gone was replaced by another, which comes with the next look.
            there = [one for one in some if not one.open_bytes or one.id in readings]
            yield self._lines_of(there, readings, state)

    def _lines_of(
        self,
        labels: Sequence[WeighedLabel],
        readings: Mapping[int, RawReading],
        state: CalibrationState,
    ) -> Floats:
        names = [hash(one.answered_by) for one in labels]
        for name in names:
            self._names.setdefault(name, len(self._names))
        merged = _worths(labels, readings, self._task, state, state.pools)
        # Changes are looked for where members count alike (see `labelled`).
        alike = merged
        if state.pools:
            alike = _worths(labels, readings, self._task, state, None)
        found = [
            (
                *(one.id, one.decision, one.truth, plain.correct, self._names[name]),
                *(one.decided_at, one.first_at),
                *(pooled.p_true, plain.confidence),
                *(one.chance, one.review_round, one.doubt),
            )
            for one, name, pooled, plain in zip(labels, names, merged, alike, strict=True)
        ]
        return np.array(found, dtype=np.float64).reshape(-1, len(_NO_LABELS)).T

    def _scored(self) -> Scores:
        lines = [line.astype(np.int64) for line in self._kept[1:7]]
        decisions, truth, correct, groups, *times = lines
        p_true, confidence, chance, rounds, levels = self._kept[7:]
        surprises = recency.surprise(confidence, correct)
        changes = self._changes.latest(Given(decisions, *times), groups, surprises)
        relative = [self._relative.get(drawn) for drawn in zip(rounds, levels, strict=True)]
        weights = weighed(len(truth), sampling_weights(chance, relative), changes.values())
        return Scores(conformal.log_scores(p_true), truth, weights, groups, tuple(self._names))


# The labels of a question, and what a thread holds while it uses them.
_Locked = tuple[ScoredLabels, threading.Lock]


class Asked(NamedTuple):
    """Of which project and by whom questions are asked, and what each may read of its labels."""

    project: str
    caller: str | None
    share: Share


class ScoredQuestions:
    """The labels of the questions of all projects that were asked about last; threads share it.

    A caller whose questions fill more than half of the room gives up its own for further ones.
    """

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        # Of each project by the digest of the exact question and what is read of its labels.
        self._kept: Recent[str, tuple[bytes, Share], _Locked] = Recent(
            LABELS_KEPT, lambda found: QUESTION_LABELS + found[0].weight
        )
        self._lock = threading.Lock()

    def scores(self, asked: Asked, question: Question, state: CalibrationState) -> Scores:
        """The scores of at least the labels that `state` has, as far as the share goes.

        Raises `StorageError`.
        """
        found = scored, lock = self._of(asked, question)
        with lock:
            before = scored.weight
            scores = scored.scores(self._labels, state)
        if scored.weight != before:
            with self._lock:
                self._keep(asked, question, found)
        return scores

    def unread(self, asked: Asked, question: Question, state: CalibrationState) -> int:
        """How many of the labels that `state` has would be read for their scores, about."""
        return self._of(asked, question)[0].unread(state)

    def _of(self, asked: Asked, question: Question) -> _Locked:
        with self._lock:
            found = self._kept.get(asked.project, (question.digest, asked.share))
            if found is None:
                place = (asked.project, question.digest)
                found = (ScoredLabels(place, question.task, asked.share), threading.Lock())
                self._keep(asked, question, found)
        return found

    def _keep(self, asked: Asked, question: Question, found: _Locked) -> None:
        self._kept.put(asked.project, (question.digest, asked.share), found, asked.caller)


def _basis(state: CalibrationState) -> tuple[object, ...]:
    """Where this changes, all labels are read anew; a question that was forgotten has a new row."""
    return state.question_id, state.pools


def _worths(
    labels: Sequence[WeighedLabel],
    readings: Mapping[int, RawReading],
    task: TaskKind,
    state: CalibrationState,
    pools: str | None,
) -> list[Worth]:
    """What each label's reading was worth; found anew where it depends on pools."""
    open_ones = [one for one in labels if one.id in readings]
    truth = [one.truth for one in open_ones]
    found = iter(worths(task, _merged(open_ones, readings, state, pools), truth))
    return [next(found) if one.worth is None or one.id in readings else one.worth for one in labels]


def _merged(
    labels: Sequence[WeighedLabel],
    readings: Mapping[int, RawReading],
    state: CalibrationState,
    pools: str | None,
) -> Sequence[Sequence[float]]:
    raw = [readings[one.id] for one in labels]
    p, members = [one.p for one in raw], [one.members for one in raw]
    truth, decisions = [one.truth for one in labels], [one.decision for one in labels]
    data = TrainingData(state, p, truth, members, [], [], [], [], [], decisions, [])
    return councils.merged(data, pools).p

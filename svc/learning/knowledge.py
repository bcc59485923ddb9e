"""What a project's labels tell about the questions of a request: calibrators, prediction sets."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from svc import limits
from svc.learning import councils
from svc.questions import DECIMALS, Opinions, Question, Reading, to_digits
from svc.stats import TASKS, Calibrator, conformal, from_parameters
from svc.store import CalibrationState, Labels, Place, TrainingData

# For how many questions the sorted scores stay in memory, each at most 5,000 doubles.
SCORES_KEPT = 256

# What a question's scores were made of: the labels, and the pools that merged them.
_Version = tuple[int, str | None]

Scores = Callable[[Question, CalibrationState], Sequence[float]]


def _no_scores(question: Question, state: CalibrationState) -> Sequence[float]:
    return ()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known about the questions of one request; by default nothing.

    `states` are by digest of the question. `scores` gives the scores of a question's labels, in
    ascending order.
    """

    states: Mapping[bytes, CalibrationState] = field(default_factory=dict)
    scores: Scores = _no_scores

    def calibrator(self, question: Question) -> Calibrator | None:
        """The calibrator that is in effect for this exact question."""
        state = self.states.get(question.digest)
        if state is None or state.calibrator is None:
            return None
        return _parsed(state.calibrator)

    def pool(self, question: Question, models: tuple[str, ...]) -> Opinions | None:
        """What labels taught of these models' say on this exact question, as one council."""
        state = self.states.get(question.digest)
        return None if state is None else councils.in_effect(state.pools, models)

    def calibrated(self, question: Question, reading: Reading) -> Reading:
        """The reading as the calibrator changes it, if there is one."""
        calibrator = self.calibrator(question)
        if calibrator is None or not reading.answered:
            return reading
        # A calibrator knows options by the order of the definition, a reading by the request's.
        p = reading.probabilities
        order = [int(place) for place in question.in_definition_order(range(len(p)))]
        found = dict(zip(order, calibrator.one([p[place] for place in order]), strict=True))
        return replace(reading, probabilities=tuple([found[place] for place in range(len(p))]))

    def confidence(self, question: Question, reading: Reading) -> float:
        """How sure the calibrated reading is of its top answer, rounded as callers see it."""
        return round(question.confidence(self.calibrated(question, reading)), DECIMALS)

    def coverage(self, question: Question, reading: Reading) -> Mapping[str, Any]:
        """The answer fields for the requested coverage, with the set that holds the true answer."""
        if question.coverage is None:
            return {}
        state = self.states.get(question.digest)
        # Rounded as they are stored, so that a probability equals the score that was made of it.
        rounded = replace(reading, probabilities=to_digits(reading.probabilities))
        candidates = question.candidates(rounded)
        if state is None or state.labels < limits.MIN_LABELS or not candidates:
            return question.unguaranteed
        scores = self.scores(question, state)
        chosen = conformal.prediction_set(
            [p for _, p in candidates], conformal.quantile(scores, question.coverage)
        )
        members = [candidates[index][0] for index in chosen]
        return {"coverage": question.coverage, "guaranteed": True, "set": members}


NOTHING_KNOWN = Knowledge()


def nothing_known(project: str, questions: Iterable[Question]) -> Knowledge:
    """Stands in for `Library.knowledge` where there are no labels."""
    return NOTHING_KNOWN


class Library:
    """Looks up what is known; the database is always asked whether remembered scores still hold."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._scores: OrderedDict[Place, tuple[_Version, Sequence[float]]] = OrderedDict()
        self._lock = threading.Lock()

    def knowledge(self, project: str, questions: Iterable[Question]) -> Knowledge:
        """What the project's labels tell about `questions`; it takes one indexed read.

        Raises `StorageError`.
        """
        states = self._labels.states(project, {question.digest for question in questions})
        if not states:
            return NOTHING_KNOWN

        def scores(question: Question, state: CalibrationState) -> Sequence[float]:
            return self._sorted_scores(project, question, state)

        return Knowledge(states, scores)

    def _sorted_scores(
        self, project: str, question: Question, state: CalibrationState
    ) -> Sequence[float]:
        project_question = (project, question.digest)
        with self._lock:
            version, scores = self._scores.get(project_question, ((0, None), ()))
        if version == (state.revision, state.pools):
            return scores
        data = self._labels.training_data(project_question, limits.LABELS_READ)
        scores = [] if data is None else _scores_of(question, councils.merged(data, state.pools))
        with self._lock:
            self._scores[project_question] = ((state.revision, state.pools), scores)
            self._scores.move_to_end(project_question)
            if len(self._scores) > SCORES_KEPT:
                self._scores.popitem(last=False)
        return scores


@lru_cache(maxsize=4_096)
def _parsed(calibrator: str) -> Calibrator:
    return from_parameters(json.loads(calibrator))


def _scores_of(question: Question, data: TrainingData) -> list[float]:
    p, truth = np.array(data.p), np.array(data.truth)
    return sorted(TASKS[question.task].nonconformity(p, truth).tolist())

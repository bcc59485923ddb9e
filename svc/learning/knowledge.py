"""What a project's labels say about the questions of a request: calibrators, prediction sets."""

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
from svc.questions import Opinions, Question, Reading, to_digits
from svc.questions.labels import DECIMALS
from svc.stats import conformal
from svc.stats.calibrators import Calibrator, from_parameters
from svc.stats.tasks import TASKS
from svc.store.labels import CalibrationState, Labels, Place, TrainingData

SCORES_KEPT = 256  # questions whose sorted scores stay in memory, at most 5,000 doubles each

# What a question's scores were made of: the labels, and the pools that merged them.
_Version = tuple[int, str | None]

Scores = Callable[[Question, CalibrationState], Sequence[float]]


def _no_scores(question: Question, learned: CalibrationState) -> Sequence[float]:
    return ()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known about the questions of one request; nothing, unless told otherwise."""

    learned: Mapping[bytes, CalibrationState] = field(
        default_factory=dict
    )  # by the question's digest
    scores: Scores = _no_scores  # of the labels, in ascending order

    def calibrator(self, question: Question) -> Calibrator | None:
        """The calibrator that is in effect for this exact question."""
        learned = self.learned.get(question.digest)
        if learned is None or learned.calibrator is None:
            return None
        return _parsed(learned.calibrator)

    def pool(self, question: Question, models: tuple[str, ...]) -> Opinions | None:
        """What labels taught of these models' say on this exact question, as one council."""
        learned = self.learned.get(question.digest)
        return None if learned is None else councils.in_effect(learned.pools, models)

    def calibrated(self, question: Question, reading: Reading) -> Reading:
        """The reading as the project's feedback has shaped it."""
        calibrator = self.calibrator(question)
        if calibrator is None or not reading.answered:
            return reading
        return replace(reading, probabilities=calibrator.one(reading.probabilities))

    def confidence(self, question: Question, reading: Reading) -> float:
        """How sure the calibrated reading is of its top answer, rounded as callers see it."""
        return round(question.confidence(self.calibrated(question, reading)), DECIMALS)

    def coverage(self, question: Question, reading: Reading) -> Mapping[str, Any]:
        """The coverage asked for, and the set that holds the true answer that often."""
        if question.coverage is None:
            return {}
        learned = self.learned.get(question.digest)
        # As they are stored: so a probability and the score it once gave are the same number.
        rounded = replace(reading, probabilities=to_digits(reading.probabilities))
        candidates = question.candidates(rounded)
        if learned is None or learned.labels < limits.MIN_LABELS or not candidates:
            return question.unguaranteed
        scores = self.scores(question, learned)
        chosen = conformal.prediction_set(
            [p for _, p in candidates], conformal.quantile(scores, question.coverage)
        )
        held = [candidates[index][0] for index in chosen]
        return {"coverage": question.coverage, "guaranteed": True, "set": held}


NOTHING_KNOWN = Knowledge()


def nothing_known(project: str, questions: Iterable[Question]) -> Knowledge:
    """For where there are no labels."""
    return NOTHING_KNOWN


class Library:
    """Looks up what is known; nothing that it remembers is used without asking the database."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._scores: OrderedDict[Place, tuple[_Version, Sequence[float]]] = OrderedDict()
        self._lock = threading.Lock()

    def knowledge(self, project: str, questions: Iterable[Question]) -> Knowledge:
        """What the project's labels say about `questions`; one indexed read.

        Raises `StorageError`.
        """
        learned = self._labels.learned(project, {question.digest for question in questions})
        if not learned:
            return NOTHING_KNOWN

        def scores(question: Question, known: CalibrationState) -> Sequence[float]:
            return self._sorted_scores(project, question, known)

        return Knowledge(learned, scores)

    def _sorted_scores(
        self, project: str, question: Question, learned: CalibrationState
    ) -> Sequence[float]:
        place = (project, question.digest)
        with self._lock:
            version, scores = self._scores.get(place, ((0, None), ()))
        if version == (learned.revision, learned.pools):
            return scores
        lesson = self._labels.lesson(place, limits.LABELS_READ)
        merged = None if lesson is None else councils.merged(lesson, learned.pools)
        scores = [] if merged is None else _scores_of(question, merged)
        with self._lock:
            self._scores[place] = ((learned.revision, learned.pools), scores)
            self._scores.move_to_end(place)
            if len(self._scores) > SCORES_KEPT:
                self._scores.popitem(last=False)
        return scores


@lru_cache(maxsize=4_096)
def _parsed(calibrator: str) -> Calibrator:
    return from_parameters(json.loads(calibrator))


def _scores_of(question: Question, lesson: TrainingData) -> list[float]:
    p, truth = np.array(lesson.p), np.array(lesson.truth)
    return sorted(TASKS[question.task].nonconformity(p, truth).tolist())

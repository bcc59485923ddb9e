"""Reports on one question of a project: its calibration, and its drift."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from svc import limits
from svc.errors import NotFound
from svc.jsontext import JsonObject
from svc.learning import councils
from svc.phrases import quoted
from svc.questions import Question, from_definition
from svc.stats import drift, scores, thresholds
from svc.stats.acceptance import held_out
from svc.stats.calibrators import Floats, Ints, from_parameters
from svc.stats.tasks import TASKS
from svc.store.labels import CalibrationState, Labels, TrainingData
from svc.store.question_versions import QuestionVersion, QuestionVersions
from svc.store.weeks import Weeks


class Reporter:
    """Makes reports on the most recent wording of a question."""

    def __init__(
        self,
        versions: QuestionVersions,
        labels: Labels,
        weeks: Weeks,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives seconds since the epoch."""
        self._versions, self._labels, self._weeks = versions, labels, weeks
        self._clock = clock

    def calibration(self, project: str, key: str) -> JsonObject:
        """The calibration report. Raises `NotFound` and `StorageError`."""
        version, question = self._latest(project, key)
        lesson = self._labels.lesson((project, version.digest), limits.LABELS_READ)
        learned = None if lesson is None else lesson.learned
        if lesson is not None:
            lesson = councils.merged(lesson, lesson.learned.pools)
        return {
            "project": project,
            "question": key,
            "type": question.type,
            "labels": 0 if learned is None else learned.labels,
            "min_labels": limits.MIN_LABELS,
            "calibrator": _calibrator(learned),
            "pool": None if learned is None else councils.shown(learned.pools),
            **_figures(question, learned, *_arrays(lesson)),
        }

    def drift(self, project: str, key: str, weeks: int) -> JsonObject:
        """The drift report over `weeks` weeks. Raises `NotFound` and `StorageError`."""
        version, question = self._latest(project, key)
        now_ms = int(self._clock() * 1000)
        found = self._weeks.read(project, version.question_id, weeks, now_ms)
        rows = [drift.Week(week.name, week.counts, week.confidence) for week in found]
        return {
            "project": project,
            "question": key,
            "weeks": drift.report(rows, mixed=question.tallies),
        }

    def _latest(self, project: str, key: str) -> tuple[QuestionVersion, Question]:
        version = self._versions.latest(project, key)
        if version is None:
            raise NotFound(f"project {quoted(project)} was never asked a question {quoted(key)}")
        return version, from_definition(version.definition)


def _calibrator(learned: CalibrationState | None) -> Any:
    if learned is None or learned.calibrator is None:
        return None
    return json.loads(learned.calibrator)


def _arrays(lesson: TrainingData | None) -> tuple[Floats, Ints]:
    if lesson is None:
        return np.zeros((0, 1)), np.zeros(0, dtype=np.int64)
    return np.array(lesson.p), np.array(lesson.truth)


def _figures(
    question: Question, learned: CalibrationState | None, p: Floats, truth: Ints
) -> JsonObject:
    """Scores before and after calibration, and what may be automated as things are now.

    The thresholds are on the scale of the calibrator in effect: a caller compares them with its
    confidences, and half-fits, which `after` is made of, would give others.
    """
    task, parameters = TASKS[question.task], _calibrator(learned)
    after = held_out(task, p, truth) if question.calibrates else p
    now = p if parameters is None else task.calibrated(from_parameters(parameters), p)
    return {
        "before": scores.summary(task, p, truth),
        "after": scores.summary(task, after, truth),
        "thresholds": thresholds.report(task.confidence(now), task.correct(now, truth)),
    }

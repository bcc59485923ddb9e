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
from svc.stats import TASKS, Floats, Ints, drift, from_parameters, held_out, scores, thresholds
from svc.store import (
    CalibrationState,
    Labels,
    QuestionVersion,
    QuestionVersions,
    TrainingData,
    Weeks,
)


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
        data = self._labels.training_data((project, version.digest), limits.LABELS_READ)
        state = None if data is None else data.state
        if data is not None:
            data = councils.merged(data, data.state.pools)
        return {
            "project": project,
            "question": key,
            "type": question.type,
            "labels": 0 if state is None else state.labels,
            "min_labels": limits.MIN_LABELS,
            "calibrator": _calibrator(state),
            "pool": None if state is None else councils.shown(state.pools),
            **_figures(question, state, *_arrays(data)),
        }

    def drift(self, project: str, key: str, weeks: int) -> JsonObject:
        """The drift report over `weeks` weeks. Raises `NotFound` and `StorageError`."""
        version, question = self._latest(project, key)
        now_ms = int(self._clock() * 1000)
        stored = self._weeks.read(project, version.question_id, weeks, now_ms)
        rows = [drift.WeekTally(week.name, week.counts, week.confidence) for week in stored]
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


def _calibrator(state: CalibrationState | None) -> Any:
    if state is None or state.calibrator is None:
        return None
    return json.loads(state.calibrator)


def _arrays(data: TrainingData | None) -> tuple[Floats, Ints]:
    if data is None:
        return np.zeros((0, 1)), np.zeros(0, dtype=np.int64)
    return np.array(data.p), np.array(data.truth)


def _figures(
    question: Question, state: CalibrationState | None, p: Floats, truth: Ints
) -> JsonObject:
    """Scores before and after calibration, and what may be automated as things are now.

    The thresholds are on the scale of the calibrator in effect, as callers compare them with its
    confidences. `after` comes from calibrators that were fitted to half of the labels each, whose
    confidences are others.
    """
    task, parameters = TASKS[question.task], _calibrator(state)
    after = held_out(task, p, truth) if question.calibrates else p
    now = p if parameters is None else task.calibrated(from_parameters(parameters), p)
    return {
        "before": scores.summary(task, p, truth),
        "after": scores.summary(task, after, truth),
        "thresholds": thresholds.report(task.confidence(now), task.correct(now, truth)),
    }

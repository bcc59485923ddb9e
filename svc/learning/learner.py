"""Learning from the truth: a label is stored, and in its time a calibrator is fitted."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from svc import limits
from svc.errors import InvalidRequest, NotFound
from svc.jsontext import JsonObject
from svc.learning import councils
from svc.learning.scheduler import Scheduler
from svc.phrases import quoted
from svc.questions import Question, from_definition
from svc.records import Source
from svc.schemas.feedback import Feedback
from svc.stats import acceptance
from svc.stats.tasks import TASKS
from svc.store.decisions import Decisions, StoredDecision
from svc.store.labels import CalibrationState, Labels, NewLabel, Place, TrainingData
from svc.store.question_versions import QuestionVersion, QuestionVersions
from svc.terms import Privacy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a label came to."""

    labels: int  # for this exact question in the project
    calibrated: bool  # whether a calibrator is in effect


class Learner:
    """Takes labels in, and fits calibrators: at once while there is none, later in its turn."""

    def __init__(
        self,
        decisions: Decisions,
        versions: QuestionVersions,
        labels: Labels,
        clock: Callable[[], float] = time.time,
        refit_s: float = limits.REFIT_S,
        at_once: int = limits.FITTED_AT_ONCE,
    ) -> None:
        """`clock` gives seconds since the epoch; fits of one calibrator are `refit_s` apart.

        Up to `at_once` labels a first fit is made before the label counts as taken.
        """
        self._decisions, self._versions, self._labels = decisions, versions, labels
        self._clock, self._refit_s, self._at_once = clock, refit_s, at_once
        self._refits = Scheduler[Place](self._refit, refit_s)
        for place in labels.stale():  # a server stopped before their turn came
            self._refits.schedule(place, refit_s)

    def label(self, feedback: Feedback, project: str | None = None) -> Counted:
        """Store a true answer; with `project`, other projects' decisions do not exist.

        Raises `NotFound`, `InvalidRequest` and `StorageError`.
        """
        decision = self._decisions.get(feedback.decision_id)
        if decision is None or project not in (None, decision.facts.project):
            raise NotFound("there is no such decision")
        label = self._checked(decision, feedback)
        learned, new = self._labels.add(label)
        place = (label.project, label.digest)
        if learned.calibrator is not None:
            self._refits.schedule(place, self._until_refit(learned))
            return Counted(learned.labels, True)
        fitted = False
        if new and _is_try(learned):
            if learned.labels <= self._at_once:
                fitted = self.fit(place)
            else:
                self._refits.schedule(place, self._until_refit(learned))
        return Counted(learned.labels, fitted)

    def close(self) -> None:
        """Stop fitting; what is left is done by the next start."""
        self._refits.close()

    def _checked(self, decision: StoredDecision, feedback: Feedback) -> NewLabel:
        key = feedback.question
        stored, answer = decision.readings.get(key), decision.answers.get(key)
        if stored is None or answer is None:
            raise NotFound(f"the decision has no question {quoted(key)}")
        if stored.reading is None:
            skipped = answer.source is Source.SKIPPED
            why = "was skipped" if skipped else "was answered by a rule"
            raise InvalidRequest(
                f"question {quoted(key)} {why}; a label would teach nothing about a model"
            )
        version = self._versions.get(stored.question_id)
        assert version is not None  # a foreign key holds it
        question = from_definition(version.definition)
        if decision.facts.privacy == Privacy.STRICT and question.extracts:
            raise InvalidRequest(
                f"question {quoted(key)}: the value was not kept under privacy: strict, "
                "so no label can be compared with it"
            )
        return _label(decision, key, version, stored.reading, feedback.label)

    def _until_refit(self, learned: CalibrationState) -> float:
        """Seconds until the next fit may be; at most the whole interval, should clocks jump."""
        left = (learned.fitted_at or 0) / 1000 + self._refit_s - self._clock()
        return min(max(0.0, left), self._refit_s)

    def _refit(self, place: Place) -> None:
        interval_ms = int(self._refit_s * 1000)
        if self._labels.claim(place, self._now_ms(), interval_ms):
            self.fit(place)
            return
        learned = self._labels.learned(place[0], [place[1]]).get(place[1])
        if learned is not None and learned.tried < learned.revision:  # another process was first
            self._refits.schedule(place, max(0.05, self._until_refit(learned)))

    def fit(self, place: Place) -> bool:
        """Fit on the most recent labels; whether a calibrator is in effect now."""
        lesson = self._labels.lesson(place, limits.LABELS_READ)
        if lesson is None:
            return False
        known, version = lesson.learned, self._versions.get(lesson.learned.question_id)
        assert version is not None  # a foreign key holds it
        question = from_definition(version.definition)
        pools = councils.fitted(lesson, question)
        calibrator = _fitted(councils.merged(lesson, pools), question)
        text = None if calibrator is None else json.dumps(calibrator)
        self._labels.keep(place, known.revision, self._now_ms(), text, pools)
        stays = known.calibrator is not None and known.pools == pools
        return text is not None or stays

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _is_try(learned: CalibrationState) -> bool:
    """Whether a first calibrator is to be tried now; also where the first try came to nothing."""
    due = learned.labels % limits.TRY_EVERY == 0 or not learned.tried
    return due and learned.labels >= limits.MIN_LABELS


def _label(
    decision: StoredDecision, key: str, version: QuestionVersion, reading: JsonObject, given: Any
) -> NewLabel:
    question = from_definition(version.definition)
    try:
        label = question.check_label(given)
    except ValueError as error:
        raise InvalidRequest(f"question {quoted(key)}: the label {error}") from None
    return NewLabel(
        decision_seq=decision.seq,
        key=key,
        project=decision.facts.project,
        digest=version.digest,
        question_id=version.question_id,
        label=label,
        truth=question.truth(label, decision.answers[key].fields),
        p=question.evidence(reading["p"]),
        members=reading.get("members"),
    )


def _fitted(lesson: TrainingData, question: Question) -> Mapping[str, Any] | None:
    """The parameters of a calibrator that clearly beats none."""
    if not question.calibrates:
        return None
    again = lesson.learned.calibrator is not None
    p, truth = np.array(lesson.p), np.array(lesson.truth)
    calibrator = acceptance.fit(TASKS[question.task], p, truth, again=again)
    return None if calibrator is None else calibrator.parameters

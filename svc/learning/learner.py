"""Learning from labels: each is stored, and from time to time a calibrator is fitted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from svc import limits
from svc.errors import InvalidRequest, NotFound
from svc.jsontext import JsonObject
from svc.learning import councils, fits
from svc.learning.labelled import labelled, sampling_weights, worth
from svc.learning.scheduler import Scheduler
from svc.phrases import quoted
from svc.questions import from_definition
from svc.records import Source
from svc.schemas import Feedback
from svc.store import (
    CalibrationState,
    Labels,
    NewLabel,
    Place,
    QuestionVersion,
    QuestionVersions,
)
from svc.store.decisions import Decisions, StoredDecision
from svc.terms import Privacy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many labels this exact question has in the project, and whether it is calibrated now."""

    labels: int
    calibrated: bool


class Learner:
    """Stores labels and fits calibrators: the first one at once, later ones in the background."""

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

        With up to `at_once` labels, a first fit is made before `label` returns.
        """
        self._decisions, self._versions, self._labels = decisions, versions, labels
        self._clock, self._refit_s, self._at_once = clock, refit_s, at_once
        self._refits = Scheduler[Place](self._refit, refit_s)
        # A server may have stopped before these were fitted.
        for project_question in labels.stale():
            self._refits.schedule(project_question, refit_s)

    def label(self, feedback: Feedback, project: str | None = None) -> Counted:
        """Store a true answer; with `project`, other projects' decisions do not exist.

        Raises `NotFound`, `InvalidRequest` and `StorageError`.
        """
        decision = self._decisions.get(feedback.decision_id)
        if decision is None or project not in (None, decision.facts.project):
            raise NotFound("there is no such decision")
        label = self._checked(decision, feedback)
        state, new = self._labels.add(label)
        project_question = (label.project, label.digest)
        if state.teaches:
            self._refits.schedule(project_question, self._until_refit_s(state))
            return Counted(state.labels, state.calibrator is not None)
        fitted = False
        if new and _is_first_fit_due(state):
            if state.labels <= self._at_once:
                fitted = self.fit(project_question)
            else:
                self._refits.schedule(project_question, self._until_refit_s(state))
        return Counted(state.labels, fitted)

    def close(self) -> None:
        """Stop fitting; the next start does what is left."""
        self._refits.close()

    def _checked(self, decision: StoredDecision, feedback: Feedback) -> NewLabel:
        key = feedback.question
        stored, answer = decision.readings.get(key), decision.answers.get(key)
        if stored is None or answer is None:
            raise NotFound(f"the decision has no question {quoted(key)}")
        if stored.reading is None:
            skipped = answer.source is Source.SKIPPED
            reason = "was skipped" if skipped else "was answered by a rule"
            raise InvalidRequest(
                f"question {quoted(key)} {reason}; a label would teach nothing about a model"
            )
        version = self._versions.get(stored.question_id)
        # A foreign key makes sure that it is there.
        assert version is not None
        question = from_definition(version.definition)
        if decision.facts.privacy == Privacy.STRICT and question.extracts:
            raise InvalidRequest(
                f"question {quoted(key)}: the value was not kept under privacy: strict, "
                "so no label can be compared with it"
            )
        return _label(decision, version, stored.reading, feedback, self._now_ms())

    def _until_refit_s(self, state: CalibrationState) -> float:
        """Seconds until the next fit is allowed; at most the interval, even if clocks jump."""
        left_s = (state.fitted_at or 0) / 1000 + self._refit_s - self._clock()
        return min(max(0.0, left_s), self._refit_s)

    def _refit(self, project_question: Place) -> None:
        interval_ms = int(self._refit_s * 1000)
        if self._labels.claim(project_question, self._now_ms(), interval_ms):
            self.fit(project_question)
            return
        project, digest = project_question
        state = self._labels.states(project, [digest]).get(digest)
        # Another process fitted first, and there are newer labels.
        if state is not None and state.tried < state.revision:
            self._refits.schedule(project_question, max(0.05, self._until_refit_s(state)))

    def fit(self, project_question: Place) -> bool:
        """Fit on the most recent labels; whether a calibrator is in effect now."""
        data = self._labels.training_data(project_question, limits.LABELS_READ)
        if data is None:
            return False
        state, version = data.state, self._versions.get(data.state.question_id)
        # A foreign key holds it.
        assert version is not None
        question = from_definition(version.definition)
        weights = sampling_weights(data.chance, data.relative)
        pools = councils.fitted(data, question, weights)
        rows = labelled(data, question, pools)
        calibrator = rows.fits(again=fits.parsed(state.calibrator).pooled.calibrator is not None)
        changed_at = rows.changed_at(data.created_at)
        self._labels.keep(
            project_question,
            state.revision,
            self._now_ms(),
            calibrator.dumps(),
            pools,
            changed_at,
        )
        return calibrator.any

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _is_first_fit_due(state: CalibrationState) -> bool:
    """Whether to try and fit a first calibrator now, also after tries that gave none."""
    due = state.labels % limits.TRY_EVERY == 0 or not state.tried
    return due and state.labels >= limits.MIN_LABELS


def _label(
    decision: StoredDecision,
    version: QuestionVersion,
    reading: JsonObject,
    feedback: Feedback,
    now_ms: int,
) -> NewLabel:
    key, question = feedback.question, from_definition(version.definition)
    try:
        label = question.check_label(feedback.label)
    except ValueError as error:
        raise InvalidRequest(f"question {quoted(key)}: the label {error}") from None
    truth = question.truth(label, decision.answers[key].fields)
    p = question.evidence(reading["p"])
    return NewLabel(
        decision_seq=decision.seq,
        key=key,
        project=decision.facts.project,
        digest=version.digest,
        question_id=version.question_id,
        label=label,
        truth=truth,
        p=p,
        worth=worth(question, p, truth),
        answered_by=reading.get("by", f"{decision.facts.model} {decision.facts.mode}"),
        created_at=now_ms,
        sampled=feedback.sampled,
        chance=feedback.chance,
        members=reading.get("members"),
        reviewer=feedback.reviewer,
    )

"""Learning from labels: each is stored, and from time to time a calibrator is fitted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from svc import limits
from svc.errors import NotFound, Timeout
from svc.learning import bulk, refit
from svc.learning.checking import Checks
from svc.learning.scheduler import Scheduler
from svc.schemas import BulkFeedback, Feedback, LineError
from svc.store import (
    CalibrationState,
    Labels,
    NewLabel,
    Place,
    QuestionVersions,
    UnknownDecision,
)
from svc.store.decisions import Decisions

# Makes a block in which no other costly work of the same caller is done.
Turn = Callable[[], AbstractContextManager[None]]

log = logging.getLogger(__name__)

_NO_DECISION = "there is no such decision"


@dataclass(frozen=True, slots=True)
class Counted:
    """How many labels this exact question has in the project, and whether it is calibrated now."""

    labels: int
    calibrated: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """How many of many labels were taken, and what was wrong with others.

    A label goes with its decision, also where that is deleted while it is stored.
    """

    labels: int
    errors: list[LineError]


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
        numbers: int = limits.FITTED_NUMBERS,
    ) -> None:
        """`clock` gives seconds since the epoch; fits of one calibrator are `refit_s` apart.

        With up to `at_once` labels, and `numbers` of probabilities in all, a first fit is made
        before `label` returns.
        """
        self._decisions, self._versions, self._labels = decisions, versions, labels
        self._clock, self._refit_s = clock, refit_s
        self._at_once, self._numbers = at_once, numbers
        # A server may have stopped before some were made, so that it begins with a look for them.
        self._refits = Scheduler[Place](self._refit, refit_s, owner=_project, left_out=labels.stale)

    def label(
        self, feedback: Feedback, project: str | None = None, turn: Turn = nullcontext
    ) -> Counted:
        """Store a true answer; with `project`, other projects' decisions do not exist.

        A decision is read inside of a `turn`, as it may be long, and a calibrator is fitted inside
        of one. Raises `NotFound`, `InvalidRequest`, `StorageError` and what a turn raises.
        """
        with turn():
            label = self._checked(feedback, project)
        try:
            state = self._labels.add(label)
        except UnknownDecision:
            raise NotFound(_NO_DECISION) from None
        project_question = (label.project, label.digest)
        if state.teaches:
            self._refits.schedule(project_question, self._until_refit_s(state))
            return Counted(state.labels, state.calibrator is not None)
        fitted = False
        if _is_first_fit_due(state, 1):
            numbers = state.labels * len(label.p) * (1 + len(label.members or ()))
            if state.labels <= self._at_once and numbers <= self._numbers:
                fitted = self._first_fit(project_question, state, turn)
            else:
                self._refits.schedule(project_question, self._until_refit_s(state))
        return Counted(state.labels, fitted)

    def _checked(self, feedback: Feedback, project: str | None) -> NewLabel:
        decision = self._decisions.get(feedback.decision_id)
        if decision is None or project not in (None, decision.facts.project):
            raise NotFound(_NO_DECISION)
        checks = Checks(self._versions, self._now_ms())
        (label,) = checks.labels([checks.check(decision, feedback)])
        return label

    def _first_fit(self, place: Place, state: CalibrationState, turn: Turn) -> bool:
        """Whether a calibrator is in effect now; the background fits where no turn comes in time.

        The label is stored, so that its request has not failed.
        """
        try:
            with turn():
                return self.fit(place)
        except Timeout:
            self._refits.schedule(place, self._until_refit_s(state))
            return False

    def label_all(self, given: BulkFeedback, project: str, only: str | None = None) -> Taken:
        """Store many true answers; refs are those of `project`.

        Where all or none are wanted it takes one transaction, and else several, of which the first
        may be done where an error is raised. With `only`, decisions of other projects do not exist.
        Calibrators are fitted in the background. Raises `InvalidRequest` for more than one
        transaction takes, and `StorageError`.
        """
        checks = Checks(self._versions, self._now_ms())
        labels, errors = bulk.checked(given, self._decisions, checks, project, only)
        if not labels or (given.atomic and errors):
            return Taken(0, errors)
        new = checks.labels(labels)
        if given.atomic:
            bulk.check_size(new)
        at_once = None if given.atomic else limits.BULK_STORED_AT_ONCE
        stored = self._labels.add_all(new, at_once)
        for project_question, (state, count) in stored.items():
            if state.teaches or _is_first_fit_due(state, count):
                self._refits.schedule(project_question, self._until_refit_s(state))
        return Taken(len(labels), errors)

    def close(self) -> None:
        """Stop fitting; the next start does what is left."""
        self._refits.close()

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
        if len(data.truth) < limits.MIN_LABELS:
            # Labels were deleted: what more of them have taught stays until there are enough again.
            learned = (state.calibrator, state.pools)
            self._labels.keep(project_question, state.revision, self._now_ms(), *learned)
            return state.calibrator is not None
        # A foreign key holds it.
        assert version is not None
        wanted = (project_question[0], state.question_id, limits.LABELS_READ)
        of_challengers = self._labels.of_challengers(*wanted)
        new = refit.learned(data, version.definition, of_challengers)
        found = (new.fits.dumps(), new.pools)
        self._labels.keep(project_question, state.revision, self._now_ms(), *found)
        return new.fits.any

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _is_first_fit_due(state: CalibrationState, count: int) -> bool:
    """Whether to try and fit a first calibrator with `count` more labels, also after vain tries."""
    due = state.revision % limits.TRY_EVERY < count or not state.tried
    return due and state.labels >= limits.MIN_LABELS


def _project(place: Place) -> str:
    """Whose fit it is."""
    return place[0]

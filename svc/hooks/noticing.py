"""Finds out from the database what happened that hooks are to be told of.

Nothing is noted where it happens: whoever looks later finds the same, so that a process may be
killed at any time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from svc.errors import NotFound
from svc.hooks import events
from svc.jsontext import JsonObject
from svc.learning import Reporter
from svc.store import (
    NANO,
    PROMISE_KEPT,
    AlarmPlace,
    Budgets,
    Database,
    HookAlarms,
    HookEvents,
    HookKind,
    Hooks,
    LabelledQuestion,
    Labels,
    QuestionVersions,
    ReachedBudget,
    ReviewDue,
    StorageError,
    Weeks,
)

# How many questions of a project are checked for drift (those asked last) and for promises (those
# with the most labels), and how many keys an event about the review queue names.
DRIFTING = 500
PROMISED = 200
NAMED = 20

# Of how many questions of a project a close look computes promises, in a tenth of a second each.
# Events of other projects wait for that, and every label may ask for it.
COMPUTED_AT_ONCE = 10

# A look at a few rows finds jobs that ended within so many days, and so many of them. A close one
# goes back through all others, so many at a time: a key may end hundreds of thousands a day.
ENDED_DAYS, ENDED_LATELY = 1 / 24, 4_000
ENDED_AT_ONCE = 10_000

# Only a question that was asked within so many days may drift.
ASKED_DAYS = 14
DAY_MS = 86_400_000

# A question with fewer labels has no promise.
LEAST_LABELS = 30

# Promises are noted anew after so long even where nothing has changed, since an alarm that ends and
# comes back within an hour is not told again, and later is.
LOOK_AGAIN_MS = 3_600_000

_Found = Mapping[AlarmPlace, JsonObject]

_NO_PROMISES: JsonObject = {"thresholds": []}

_Report = TypeVar("_Report")

# What is promised with the labels and the fit of a question, by its key; None where its report
# failed.
_Promised = dict[str, tuple[LabelledQuestion, list[JsonObject] | None]]


log = logging.getLogger(__name__)


class Noticing:
    """Looks at the projects that have hooks, and stores events for these."""

    def __init__(
        self,
        hooks: Hooks,
        stored: HookEvents,
        alarms: HookAlarms,
        budgets: Budgets,
        due: ReviewDue,
        versions: QuestionVersions,
        reporter: Reporter,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives seconds since the epoch."""
        self._hooks, self._events, self._alarms = hooks, stored, alarms
        self._budgets, self._due = budgets, due
        self._versions, self._reporter = versions, reporter
        self._clock = clock
        # Of each project: promises, those computed last at the end, and a hash of what was noted.
        self._promised: dict[str, _Promised] = {}
        self._noted: dict[str, int] = {}
        # When the jobs ended that are looked at next, None for those that ended last.
        self._ended_before: int | None = None

    @classmethod
    def of(cls, database: Database, hooks: Hooks, stored: HookEvents) -> Noticing:
        """One that looks at a database with the clock of this machine."""
        versions = QuestionVersions(database)
        reporter = Reporter(versions, Labels(database), Weeks(database))
        alarms, due = HookAlarms(database, events.of_alarm), ReviewDue(database)
        return cls(hooks, stored, alarms, Budgets(database), due, versions, reporter)

    def look(self) -> None:
        """Look at jobs, budgets and the review queue, a few rows each. Raises `StorageError`."""
        ended = self._events.ended_jobs(ENDED_LATELY, ENDED_DAYS)
        self._events.add(map(events.of_job, ended.jobs))
        reached = self._budgets.reached()
        for project, kinds in self._hooks.wanted().items():
            found: dict[str, _Found] = {}
            if HookKind.BUDGET_WARNING in kinds:
                found[HookKind.BUDGET_WARNING] = _warnings(project, reached)
            if HookKind.REVIEW_DUE in kinds:
                found[HookKind.REVIEW_DUE] = self._review(project)
            self._alarms.note(project, found)

    def look_closely(self) -> bool:
        """Look at older jobs, and at reports: of promises, and once a day of drift.

        False where promises are left to compute, or jobs to tell of. Raises `StorageError`.
        """
        ended = self._events.ended_jobs(ENDED_AT_ONCE, before=self._ended_before)
        self._events.add(map(events.of_job, ended.jobs))
        self._ended_before = ended.before
        are_done = not ended.are_more
        for project, kinds in self._hooks.wanted().items():
            if HookKind.PROMISE_BROKEN in kinds:
                are_done &= self._look_for_promises(project)
            if HookKind.DRIFT in kinds:
                self._look_for_drift(project)
        return are_done

    def tell(self) -> None:
        """Tell hooks that were added meanwhile of what lasts, once all looks that are due are over.

        Raises `StorageError`.
        """
        self._alarms.tell()

    def _review(self, project: str) -> _Found:
        keys = self._due.questions(project, NAMED)
        return {AlarmPlace("review", "queue"): {"questions": keys}} if keys else {}

    def _look_for_promises(self, project: str) -> bool:
        """Note promises, once those of all questions are known; False where some are left."""
        labelled = self._versions.labelled(project, LEAST_LABELS, PROMISED)
        before = self._promised.get(project, {})
        promised = {key: one for key, one in before.items() if key in labelled}
        self._promised[project] = promised
        left = [key for key in labelled if key not in promised]
        left += [
            key
            for key, (question, rows) in promised.items()
            if rows is None or question != labelled[key]
        ]
        for key in left[:COMPUTED_AT_ONCE]:
            promised.pop(key, None)
            promised[key] = labelled[key], self._thresholds(project, key)
        if len(promised) == len(labelled):
            self._note_promises(project, promised)
        return len(left) <= COMPUTED_AT_ONCE

    def _note_promises(self, project: str, promised: _Promised) -> None:
        """Note them, unless labels, fits and what was told are those of the last time."""
        known = self._alarms.known(project, PROMISE_KEPT)
        known |= self._alarms.known(project, HookKind.PROMISE_BROKEN)
        unknown = frozenset(_subject(key) for key, (_, rows) in promised.items() if rows is None)
        questions = frozenset((key, question) for key, (question, _) in promised.items())
        inputs = hash((self._now_ms() // LOOK_AGAIN_MS, frozenset(known), questions, unknown))
        if self._noted.get(project) != inputs:
            self._alarms.note(project, _promises(promised, known), unknown=unknown)
            self._noted[project] = inputs

    def _thresholds(self, project: str, key: str) -> list[JsonObject] | None:
        report = _read(self._reporter.promises, project, key, _NO_PROMISES)
        if report is None:
            return None
        return [{**row, "labels": report["labels"]} for row in report["thresholds"]]

    def _look_for_drift(self, project: str) -> None:
        """Once a day, since more looks would make more false alarms than the report promises."""
        now_ms = self._now_ms()
        today = datetime.fromtimestamp(now_ms / 1000, UTC).date().isoformat()
        if self._alarms.looked(project, today):
            return
        recent = self._versions.recent(project, now_ms - ASKED_DAYS * DAY_MS, DRIFTING)
        found: dict[AlarmPlace, JsonObject] = {}
        unknown = set()
        for key, question_id in recent.items():
            tests = _read(self._reporter.week_tests, project, key, list[JsonObject]())
            if tests is None:
                unknown.add(_subject(key))
            elif alarms := [one for one in tests if one["alarm"]]:
                place = AlarmPlace(_subject(key), f"drift {question_id}")
                found[place] = {"question": key, "test": alarms[-1]}
        self._alarms.note(project, {HookKind.DRIFT: found}, today, unknown)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _read(
    report: Callable[[str, str], _Report], project: str, key: str, nothing: _Report
) -> _Report | None:
    """What is reported of a question, `nothing` where there is none of it. Raises `StorageError`.

    It is None where the report fails, which is logged: else events of all projects would wait.
    """
    try:
        return report(project, key)
    except NotFound:
        return nothing
    except StorageError:
        raise
    except Exception:
        log.exception("a report on a question failed, of which hooks may have been told")
        return None


def _promises(promised: _Promised, known: set[AlarmPlace]) -> dict[str, _Found]:
    kept: dict[AlarmPlace, JsonObject] = {}
    broken: dict[AlarmPlace, JsonObject] = {}
    for key, (question, rows) in promised.items():
        for row in rows or ():
            name = f"promise {question.question_id} {row['target']}"
            place = AlarmPlace(_subject(key), name)
            if _is_broken(row, place in known):
                broken[place] = {"question": key, **_figures(row)}
            elif row["min_confidence"] is not None:
                kept[place] = {}
    return {PROMISE_KEPT: kept, HookKind.PROMISE_BROKEN: broken}


def _subject(key: str) -> str:
    return f"question {key}"


def _is_broken(row: JsonObject, was_made: bool) -> bool:
    """Whether a promise was made before that is not kept any more.

    The report leaves out labels from before a fall of accuracy, or makes no promise any more.
    """
    return bool(row["since"] > 0 or (row["min_confidence"] is None and was_made))


def _figures(row: JsonObject) -> JsonObject:
    shown = ("target", "min_confidence", "labels", "labels_needed")
    return {name: row[name] for name in shown}


def _warnings(project: str, reached: list[ReachedBudget]) -> _Found:
    """The budgets of a project that are past a level, by what tells levels and periods apart."""
    found: dict[AlarmPlace, JsonObject] = {}
    for one in reached:
        if one.project == project:
            budget = one.state.budget
            subject = f"budget {budget.scope} {budget.subject} {budget.per}"
            of = f"{one.period} {budget.limit}"
            found[AlarmPlace(subject, f"1 warning {of}")] = _spent(one, "warning")
            if one.exhausted:
                found[AlarmPlace(subject, f"2 exhausted {of}")] = _spent(one, "exhausted")
    return found


def _spent(one: ReachedBudget, level: str) -> JsonObject:
    budget = one.state.budget
    return {
        "level": level,
        "scope": budget.scope,
        "subject": budget.subject,
        "per": budget.per,
        "period": one.period,
        "limit_usd": budget.limit / NANO,
        "spent_usd": one.state.spent / NANO,
        "reserved_usd": one.state.reserved / NANO,
        "hard": budget.hard,
        "warn_at": budget.warn_at,
    }

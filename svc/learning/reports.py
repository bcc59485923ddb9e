"""Reports on one question of a project: its calibration, and its drift."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from svc import limits
from svc.jsontext import JsonObject, leading
from svc.learning import councils, fits, options, sampling
from svc.learning.labelled import Labelled, labelled, unlabelled
from svc.learning.wordings import latest
from svc.recent import Recent
from svc.stats import TASKS, Fitted, drift, scores, thresholds
from svc.store import CalibrationState, Labels, QuestionVersions, TrainingData, Week, Weeks

# Whether a question has a mix of answers; and its weeks, as they are stored and as statistics take
# them.
_Year = tuple[bool, list[Week], list[drift.WeekTally]]

# The most bytes of each of the two lists of a calibration report that can become long.
LIST_BYTES = limits.PAGE_BYTES // 2

# The questions whose promises a process remembers, a few kilobytes each.
PROMISED = 256


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
        # With the state of the labels that they are made of.
        self._promised: Recent[str, bytes, tuple[CalibrationState, JsonObject]] = Recent(PROMISED)
        self._lock = threading.Lock()

    def calibration(self, project: str, key: str) -> JsonObject:
        """The calibration report. Raises `NotFound` and `StorageError`."""
        data, rows, in_effect = self._read(project, key)
        state = None if data is None else data.state
        return {
            "project": project,
            "question": key,
            "type": rows.question.type,
            "labels": 0 if state is None else state.labels,
            "min_labels": limits.MIN_LABELS,
            "calibrator": _shown(in_effect.pooled),
            "models": leading(_by_model(in_effect, rows), LIST_BYTES),
            "pool": councils.shown(None if state is None else state.pools),
            "changed_at": None if data is None else rows.changed_at(data.decided_at),
            **_figures(rows, in_effect),
            "sampling": sampling.tested(data, rows.question, self._weeks, project, self._now_ms()),
        }

    def promises(self, project: str, key: str) -> JsonObject:
        """How many labels there are, and what may be automated with them.

        By the chances of being handed out as they were at the last label or fit.
        Raises `NotFound` and `StorageError`.
        """
        version, _ = latest(self._versions, project, key)
        state = self._labels.states(project, [version.digest]).get(version.digest)
        with self._lock:
            known = self._promised.get(project, version.digest)
        if known is not None and known[0] == state:
            return known[1]
        data, rows, in_effect = self._read(project, key)
        promised = {
            "labels": 0 if data is None else data.state.labels,
            "min_labels": limits.MIN_LABELS,
            "thresholds": _promises(rows, in_effect),
        }
        if data is not None:
            with self._lock:
                self._promised.put(project, version.digest, (data.state, promised))
        return promised

    def _read(self, project: str, key: str) -> tuple[TrainingData | None, Labelled, fits.Fits]:
        """The labels as they are stored and as statistics take them, and what is in effect."""
        version, question = latest(self._versions, project, key)
        data = self._labels.training_data((project, version.digest), limits.LABELS_READ)
        if data is None:
            return None, unlabelled(question), fits.NOTHING_FITTED
        if not data.truth:
            # All labels were deleted, and what they taught stays.
            return data, unlabelled(question), fits.parsed(data.state.calibrator)
        rows = labelled(data, question, data.state.pools)
        return data, rows, fits.parsed(data.state.calibrator)

    def drift(self, project: str, key: str, weeks: int) -> JsonObject:
        """The drift report over `weeks` weeks. Raises `NotFound` and `StorageError`."""
        mixed, stored, year = self._year(project, key)
        now_ms = self._now_ms()
        shown = [
            tally for week, tally in zip(stored, year, strict=True) if week.is_within(weeks, now_ms)
        ]
        # The latest week with decisions is over, unless it is this one.
        finished = not (stored and stored[-1].is_within(1, now_ms))
        weeks_shown = drift.report(shown, mixed=mixed)
        return {
            "project": project,
            "question": key,
            "weeks": leading(weeks_shown[::-1], limits.PAGE_BYTES)[::-1],
            "test": drift.latest_significance(year, mixed=mixed, finished=finished)
            if year
            else None,
        }

    def week_tests(self, project: str, key: str) -> list[JsonObject]:
        """The test of last week, which is over, if it has decisions.

        One that is not over is unlike whole ones where weekends are unlike other days. Raises
        `NotFound` and `StorageError`.
        """
        mixed, stored, year = self._year(project, key)
        now_ms = self._now_ms()
        return [
            drift.latest_significance(year[: place + 1], mixed=mixed, finished=True)
            for place, week in enumerate(stored)
            if week.is_within(2, now_ms) and not week.is_within(1, now_ms)
        ]

    def _year(self, project: str, key: str) -> _Year:
        version, question = latest(self._versions, project, key)
        now_ms = self._now_ms()
        stored = self._weeks.read(project, version.question_id, limits.DRIFT_WEEKS[1], now_ms)
        year = [
            drift.WeekTally(
                week.name, week.counts, week.confidence, week.squares, week.grouped, week.unnamed
            )
            for week in stored
        ]
        return question.tallies, stored, year

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _shown(fitted: Fitted) -> JsonObject | None:
    """A calibrator and the number of labels it was fitted on."""
    if fitted.calibrator is None:
        return None
    return {**fitted.calibrator.parameters, "labels": fitted.labels}


def _by_model(in_effect: fits.Fits, rows: Labelled) -> list[JsonObject]:
    """An entry for each of those who answered, the one with the most labels first."""
    groups = Counter(rows.groups).most_common()
    entries = []
    for group, labels in groups:
        model, _, mode = group.rpartition(" ")
        fitted = in_effect.by_group.get(group, in_effect.pooled)
        entry = {"model": model, "mode": mode, "labels": labels, "own": fitted.own}
        entries.append({**entry, "calibrator": _shown(fitted)})
    return entries


def _figures(rows: Labelled, in_effect: fits.Fits) -> JsonObject:
    """Scores before and after calibration, and what may be automated as things are now.

    `after` comes from calibrators that were fitted to half of the labels each; where none is in
    effect, it is `before`. Both are of the labels since the answers changed.
    """
    task, now, after = TASKS[rows.question.task], rows.current, rows.held_out(in_effect)
    truth, sampling = rows.truth[now], rows.sampling_of(now)
    p = {"before": rows.p[now], "after": after[now]}
    return {
        "labels_since_change": len(now) if rows.changes else None,
        **{name: scores.summary(task, one, truth, sampling) for name, one in p.items()},
        "thresholds": _promises(rows, in_effect),
        "uncertainty": {
            name: scores.uncertainty(task, one, truth, sampling) or None for name, one in p.items()
        },
        **options.by_option(rows, after, LIST_BYTES),
    }


def _promises(rows: Labelled, in_effect: fits.Fits) -> list[JsonObject]:
    """From which confidence on answers may be automated, by target.

    On the scale of the calibrators in effect, as callers compare thresholds with their confidences,
    and of the labels since the answers changed.
    """
    task, now, current = TASKS[rows.question.task], rows.calibrated(in_effect), rows.current
    correct = task.correct(now, rows.truth)
    confidence = task.shown(now)[current]
    return thresholds.report(confidence, correct[current], rows.sampling_of(current))

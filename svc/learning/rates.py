"""The report on rates: how common each answer truly is, by all decisions and the labels."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from svc import limits
from svc.jsontext import JsonObject
from svc.learning import sampling
from svc.learning.labelled import columns, sampling_weights
from svc.learning.wordings import latest_with_options
from svc.questions import Question
from svc.stats import TASKS, Ints, rates
from svc.store import Labels, Period, Periods, QuestionVersions, TrainingData


class RateReporter:
    """Makes reports on the most recent wording of a question."""

    def __init__(
        self,
        versions: QuestionVersions,
        labels: Labels,
        periods: Periods,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives seconds since the epoch."""
        self._versions, self._labels, self._periods = versions, labels, periods
        self._clock = clock

    def report(self, project: str, key: str, weeks: int) -> JsonObject:
        """The rates of the last `weeks` weeks.

        The labels are those of the decisions that were read. Raises `NotFound`, `InvalidRequest`
        for a question without options, and `StorageError`.
        """
        version, question = latest_with_options(self._versions, project, key)
        now_ms = int(self._clock() * 1000)
        period = self._periods.read(project, version.question_id, weeks, now_ms)
        place = (project, version.digest)
        data = self._labels.training_data(place, limits.LABELS_READ, period.first)
        sums = _sums(period, question)
        return {
            "project": project,
            "question": key,
            "type": question.type,
            "since": period.since,
            "decisions": sums.count,
            "cut": period.cut,
            "labels": 0 if data is None else len(data.truth),
            "rates": _by_option(question.option_names, sums, data),
            "sampling": sampling.report(data),
        }


def _sums(period: Period, question: Question) -> rates.DecisionSums:
    options = len(question.option_names)
    if not period.p:
        return rates.DecisionSums(0, np.zeros(options), np.zeros(options, dtype=np.int64))
    p = np.array(period.p)
    answers: Ints = np.bincount(TASKS[question.task].answers(p), minlength=options)
    return rates.DecisionSums(len(p), columns(p).sum(axis=0), answers)


def _by_option(
    names: list[str], sums: rates.DecisionSums, data: TrainingData | None
) -> list[JsonObject]:
    """An entry for each option or level; without labels only what models answered is known."""
    if data is None or not data.truth:
        return [
            {"option": name, **_unknown(int(count), sums.count)}
            for name, count in zip(names, sums.answers, strict=True)
        ]
    # As they were stored: no pool of today's has changed the other decisions either.
    p, truth = columns(np.array(data.p)), np.array(data.truth)
    found = rates.rates(sums, p, truth, sampling_weights(data.chance, data.relative))
    return [{"option": name, **rate.as_json} for name, rate in zip(names, found, strict=True)]


def _unknown(answers: int, decisions: int) -> JsonObject:
    naive = round(answers / decisions, 6) if decisions else None
    nothing = dict.fromkeys(("estimate", "low", "high", "labels_alone", "power", "worth"))
    return {**nothing, "naive": naive}

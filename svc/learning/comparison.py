"""How a challenger does beside the answers that callers got, on the same decisions.

Both are judged by their raw readings: the calibrators in effect were learned for the one side. A
decision that the challenger did not answer counts as a wrong answer of it, as callers would have
had none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from svc.jsontext import JsonObject
from svc.questions import Question
from svc.stats import TASKS, Floats, Interval, expected_calibration_error, paired
from svc.store import AskedPair

# Losses beyond these many nats count as so many: a difference without bounds has no interval.
LOSS_CAP = 5.0
# The Brier score of a wrong answer that was certain.
WORST_BRIER = 2.0


@dataclass(frozen=True, slots=True)
class Side:
    """What one side showed; figures of labels are None without any, those of calls without calls.

    `cost_usd` is the mean of a decision, `latency_ms` the median, and `latency_ms_95` what 95% of
    decisions stay below.
    """

    accuracy: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    ece: float | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    latency_ms_95: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides on the `asked` decisions, `failed` of which the challenger did not answer.

    The intervals are by how much the challenger's figures are larger, over the `labelled` ones;
    with 95% certainty each holds the truth at all looks together.
    """

    asked: int
    failed: int
    labelled: int
    present: Side
    challenger: Side
    accuracy: Interval
    log_loss: Interval
    brier: Interval

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or `open` while labels have not told the accuracies apart."""
        if self.accuracy.low > 0:
            return "better"
        return "worse" if self.accuracy.high < 0 else "open"

    @property
    def as_json(self) -> JsonObject:
        sides = {name: asdict(getattr(self, name)) for name in ("present", "challenger")}
        names = ("accuracy", "log_loss", "brier")
        intervals = {name: getattr(self, name).as_json for name in names}
        counts = {"asked": self.asked, "failed": self.failed, "labelled": self.labelled}
        return {"verdict": self.verdict, **counts, **sides, "differences": intervals}


@dataclass(frozen=True, slots=True)
class _Judged:
    """What each labelled decision was worth to one side; `confidence` leaves out failures."""

    correct: Floats
    losses: Floats
    briers: Floats
    confidence: Floats
    sure_and_right: Floats

    def side(self) -> Side:
        if not len(self.correct):
            return Side()
        answered = len(self.confidence) > 0
        right = self.sure_and_right.astype(np.int64)
        return Side(
            accuracy=float(self.correct.mean()),
            log_loss=float(self.losses.mean()),
            brier=float(self.briers.mean()),
            ece=expected_calibration_error(self.confidence, right) if answered else None,
        )


def compared(pairs: Sequence[AskedPair], question: Question, challenged: Question) -> Comparison:
    """Both sides; `challenged` is the question in the challenger's wording."""
    labelled = [pair for pair in pairs if pair.label is not None]
    answered = [pair for pair in pairs if pair.error is None]
    present = _judged(question, [_present(pair) for pair in labelled])
    other = _judged(challenged, [_challenger(challenged, pair) for pair in labelled])
    own_calls = [(pair.own_cost_usd, pair.own_latency_ms) for pair in answered]
    its_calls = [(pair.cost_usd, pair.latency_ms) for pair in answered]
    return Comparison(
        asked=len(pairs),
        failed=len(pairs) - len(answered),
        labelled=len(labelled),
        present=_with_calls(present.side(), own_calls),
        challenger=_with_calls(other.side(), its_calls),
        accuracy=paired.difference(other.correct, present.correct, 1.0),
        log_loss=paired.difference(other.losses, present.losses, LOSS_CAP),
        brier=paired.difference(other.briers, present.briers, WORST_BRIER),
    )


# A raw reading with the truth as the task has it; None where there is no answer.
_Row = tuple[Sequence[float], int] | None


def _present(pair: AskedPair) -> _Row:
    return json.loads(pair.own_p or "[]"), int(pair.truth or 0)


def _challenger(question: Question, pair: AskedPair) -> _Row:
    if pair.p is None or pair.answer is None:
        return None
    truth = question.truth(json.loads(pair.label or "null"), json.loads(pair.answer))
    return question.evidence(json.loads(pair.p)), truth


def _judged(question: Question, rows: Sequence[_Row]) -> _Judged:
    there = np.array([row is not None for row in rows], dtype=bool)
    given = [row for row in rows if row is not None]
    correct, losses = np.zeros(len(rows)), np.full(len(rows), LOSS_CAP)
    briers = np.full(len(rows), WORST_BRIER)
    if not given:
        return _Judged(correct, losses, briers, np.zeros(0), np.zeros(0))
    task, p = TASKS[question.task], np.array([row[0] for row in given])
    truth = np.array([row[1] for row in given])
    correct[there] = task.correct(p, truth)
    losses[there] = np.minimum(task.log_losses(p, truth), LOSS_CAP)
    briers[there] = task.briers(p, truth)
    return _Judged(correct, losses, briers, task.confidence(p), correct[there])


def _with_calls(side: Side, calls: Sequence[tuple[float, float]]) -> Side:
    if not calls:
        return side
    costs, times = np.array(calls).T
    return replace(
        side,
        cost_usd=float(costs.mean()),
        latency_ms=float(np.median(times)),
        latency_ms_95=float(np.quantile(times, 0.95)),
    )

"""How a challenger does beside the answers that callers got, on the same decisions.

Both are judged by their raw readings: the calibrators in effect were learned for the one side. A
decision that the challenger did not answer counts as a wrong answer of it, as callers would have
had none. Labels of decisions that the review queue handed out count by one over the chance to be
handed out.
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
# Of one decision no more dollars and milliseconds count than one of these, from a thousandth of a
# cent and from 10 ms on; `paired.capped` says which. No request takes longer than the last.
COST_CAPS = tuple(0.000_01 * 2**power for power in range(21))
LATENCY_CAPS_MS = tuple(10.0 * 2**power for power in range(15))


@dataclass(frozen=True, slots=True)
class Side:
    """What one side showed; figures of labels are None without any, those of calls without calls.

    `cost_usd` and `mean_latency_ms` are means of a decision, `latency_ms` is the median, and
    `latency_ms_95` what 95% of decisions stay below.
    """

    accuracy: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    ece: float | None = None
    cost_usd: float | None = None
    mean_latency_ms: float | None = None
    latency_ms: float | None = None
    latency_ms_95: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides on the `asked` decisions, `failed` of which the challenger did not answer.

    The intervals are by how much the challenger's figures are larger, over the `labelled` ones, and
    those of cost and time over the ones that it answered, of each of which no more than the cap
    counts; with 95% certainty each holds the truth at all looks together. `queued` labels came out
    of the review queue.
    """

    asked: int
    failed: int
    labelled: int
    queued: int
    present: Side
    challenger: Side
    accuracy: Interval
    log_loss: Interval
    brier: Interval
    cost_usd: Interval
    cost_cap_usd: float
    latency_ms: Interval
    latency_cap_ms: float

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
        # A decision may cost less than what rounded figures tell.
        calls = {
            "cost_usd": {**asdict(self.cost_usd), "cap": self.cost_cap_usd},
            "mean_latency_ms": {**asdict(self.latency_ms), "cap": self.latency_cap_ms},
        }
        counts = {name: getattr(self, name) for name in ("asked", "failed", "labelled", "queued")}
        return {"verdict": self.verdict, **counts, **sides, "differences": {**intervals, **calls}}


@dataclass(frozen=True, slots=True)
class _Judged:
    """What each labelled decision was worth to one side; `confidence` is NaN of failures."""

    correct: Floats
    losses: Floats
    briers: Floats
    confidence: Floats

    def side(self, weights: Floats) -> Side:
        if not len(weights):
            return Side()
        answered = ~np.isnan(self.confidence)
        right = self.correct[answered].astype(np.int64)
        calibration = (self.confidence[answered], right, weights[answered])
        return Side(
            accuracy=float(np.average(self.correct, weights=weights)),
            log_loss=float(np.average(self.losses, weights=weights)),
            brier=float(np.average(self.briers, weights=weights)),
            ece=expected_calibration_error(*calibration) if answered.any() else None,
        )


def compared(pairs: Sequence[AskedPair], question: Question, challenged: Question) -> Comparison:
    """Both sides; `challenged` is the question in the challenger's wording."""
    labelled = [pair for pair in pairs if pair.label is not None]
    answered = [pair for pair in pairs if pair.error is None]
    present = _judged(question, [_present(pair) for pair in labelled])
    other = _judged(challenged, [_challenger(challenged, pair) for pair in labelled])
    chances = np.array([pair.relative for pair in labelled], dtype=np.float64)
    weights = paired.weights_of(chances)
    own_costs, own_times, costs, times = _calls(answered)
    cost, cost_cap = paired.capped(costs, own_costs, COST_CAPS)
    latency, latency_cap = paired.capped(times, own_times, LATENCY_CAPS_MS)
    return Comparison(
        asked=len(pairs),
        failed=len(pairs) - len(answered),
        labelled=len(labelled),
        queued=int((~np.isnan(chances)).sum()),
        present=_with_calls(present.side(weights), own_costs, own_times),
        challenger=_with_calls(other.side(weights), costs, times),
        accuracy=paired.difference(other.correct, present.correct, 1.0, chances),
        log_loss=paired.difference(other.losses, present.losses, LOSS_CAP, chances),
        brier=paired.difference(other.briers, present.briers, WORST_BRIER, chances),
        cost_usd=cost,
        cost_cap_usd=cost_cap,
        latency_ms=latency,
        latency_cap_ms=latency_cap,
    )


# A raw reading with the truth as the task has it; None where there is no answer.
_Row = tuple[Sequence[float], int] | None


def _present(pair: AskedPair) -> _Row:
    return pair.own_p or [], int(pair.truth or 0)


def _challenger(question: Question, pair: AskedPair) -> _Row:
    if pair.p is None or pair.answer is None:
        return None
    answer = json.loads(pair.answer)
    truth = question.truth(json.loads(pair.label or "null"), answer)
    return question.evidence(json.loads(pair.p), answer), truth


def _judged(question: Question, rows: Sequence[_Row]) -> _Judged:
    there = np.array([row is not None for row in rows], dtype=bool)
    given = [row for row in rows if row is not None]
    correct, losses = np.zeros(len(rows)), np.full(len(rows), LOSS_CAP)
    briers, confidence = np.full(len(rows), WORST_BRIER), np.full(len(rows), np.nan)
    if given:
        task, p = TASKS[question.task], np.array([row[0] for row in given])
        truth = np.array([row[1] for row in given])
        correct[there] = task.correct(p, truth)
        losses[there] = np.minimum(task.log_losses(p, truth), LOSS_CAP)
        briers[there] = task.briers(p, truth)
        confidence[there] = task.confidence(p)
    return _Judged(correct, losses, briers, confidence)


def _calls(answered: Sequence[AskedPair]) -> Floats:
    """The dollars and milliseconds of callers' decisions and of the challenger, a row each."""
    found = [
        (pair.own_cost_usd, pair.own_latency_ms, pair.cost_usd, pair.latency_ms)
        for pair in answered
    ]
    return np.array(found, dtype=np.float64).reshape(-1, 4).T


def _with_calls(side: Side, costs: Floats, times: Floats) -> Side:
    if not len(costs):
        return side
    return replace(
        side,
        cost_usd=float(costs.mean()),
        mean_latency_ms=float(times.mean()),
        latency_ms=float(np.median(times)),
        latency_ms_95=float(np.quantile(times, 0.95)),
    )

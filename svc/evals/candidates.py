"""What `svc tune` tries: plans, modes, option orders and examples, and how they are ranked."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from svc import limits
from svc.engine import planned_calls
from svc.engine.plans import BELOW, CascadePlan, CouncilPlan
from svc.evals.figures import Figures
from svc.evals.sets import EvalRow, EvalSet, shuffled
from svc.jsontext import JsonObject
from svc.questions import TYPES
from svc.schemas import DecisionRequest
from svc.terms import Mode

ESCALATE_BELOW = (0.7, 0.8, 0.9)
MODES = (Mode.AUTO, Mode.VERBAL)

# How many examples a question has that has any.
FEW_SHOT = 4

# One row in so many is for examples.
_POOL_SHARE = 5

# How many option orders a debiased question is asked in.
_ORDERS = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to ask the question of a set.

    `model` is a plan and `question` a question, both as `POST /v1/decide` takes them. `request` is
    about no state yet.
    """

    model: Any
    mode: Mode
    debias: bool
    examples: int
    request: DecisionRequest
    question: JsonObject

    @property
    def most_calls(self) -> int:
        """Model calls that one row takes at most; retries of the same call are not counted."""
        members = len(self.request.plan.models) if self.request.plan else 1
        calls = planned_calls.of_stages(self.request, members, _ORDERS if self.debias else 1)
        (question,) = self.request.questions.values()
        falls_back = self.mode is Mode.AUTO and not question.think and not question.verbal_reason
        return min(limits.MODEL_CALLS, calls * 2 if falls_back else calls)

    def fields(self, name: str) -> JsonObject:
        """The fields of `POST /v1/decide` for this candidate; `name` is the question's key."""
        fields = {"model": self.model, "mode": self.mode, "debias": self.debias}
        return {**fields, "questions": {name: self.question}}


def split(rows: Sequence[EvalRow]) -> tuple[list[EvalRow], list[EvalRow]]:
    """The rows that examples are taken from, and those that candidates are tested on.

    A fifth is for examples, at least 4 and at most half.
    """
    mixed = shuffled(rows)
    size = min(max(FEW_SHOT, len(mixed) // _POOL_SHARE), len(mixed) // 2)
    return mixed[:size], mixed[size:]


def examples(pool: Sequence[EvalRow]) -> list[JsonObject]:
    """Rows of the pool as examples of a question, with as many different labels as possible."""
    counts: dict[str, int] = {}
    ranked = []
    for index, row in enumerate(pool):
        label = repr(row.truth)
        ranked.append((counts.get(label, 0), index, row))
        counts[label] = counts.get(label, 0) + 1
    chosen = [row for _, _, row in sorted(ranked, key=lambda one: one[:2])[:FEW_SHOT]]
    return [{"state": row.state, "label": row.label} for row in chosen]


def plans(models: Sequence[str]) -> list[Any]:
    """Each model alone; of several also a council and cascades in the order given."""
    alone: list[Any] = list(models)
    if len(alone) < 2:
        return alone
    cascades = [{CascadePlan.name: list(models), BELOW: below} for below in ESCALATE_BELOW]
    return [*alone, {CouncilPlan.name: list(models)}, *cascades]


def candidates_for(
    eval_set: EvalSet, models: Sequence[str], shown: Sequence[JsonObject]
) -> list[Candidate]:
    """All candidates: with the question as it is, and with the `shown` examples if it takes any.

    Raises `ApiError` for models or examples that no request can have.
    """
    few_shot = [{}, {"examples": list(shown)}] if _takes_examples(eval_set) else [{}]
    ways = itertools.product(plans(models), MODES, (True, False), few_shot)
    return [_candidate(eval_set, *way) for way in ways]


def ranked(tried: Iterable[tuple[Candidate, Figures]]) -> list[tuple[Candidate, Figures]]:
    """The best first: by accuracy, calibration error and cost. Failed rows count as wrong."""
    return sorted(tried, key=lambda one: _order(one[1]))


def accuracy(result: Figures) -> float:
    """The share of right answers among all rows, failed ones included."""
    return result.right / max(1, result.rows + result.failed)


def _order(result: Figures) -> tuple[float, float, float]:
    ece = 1.0 if result.ece is None else result.ece
    return -accuracy(result), ece, result.cost_usd


def _takes_examples(eval_set: EvalSet) -> bool:
    (question,) = eval_set.request({}).questions.values()
    return "examples" in TYPES[question.type].fields


def _candidate(
    eval_set: EvalSet, model: Any, mode: Mode, debias: bool, shown: JsonObject
) -> Candidate:
    question = {**eval_set.question, **shown}
    fields = {"model": model, "mode": mode, "debias": debias}
    count = len(question.get("examples", ()))
    request = eval_set.request(fields, **shown)
    return Candidate(model, mode, debias, count, request, question)

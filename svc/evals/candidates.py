"""What `svc tune` tries: plans, modes, option orders and examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any

from svc.engine.plans import BELOW, CascadePlan, CouncilPlan
from svc.evals.budget import most_calls
from svc.evals.sets import EvalRow, EvalSet, by_state, shuffled
from svc.jsontext import JsonObject
from svc.questions import TYPES
from svc.schemas import DecisionRequest
from svc.terms import Mode

ESCALATE_BELOW = (0.7, 0.8, 0.9)
MODES = (Mode.AUTO, Mode.VERBAL)

# How many examples a question has that has any.
FEW_SHOT = 4

# One state in so many is for examples.
_POOL_SHARE = 5


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
        return most_calls(self.request)

    def fields(self, name: str) -> JsonObject:
        """The fields of `POST /v1/decide` for this candidate; `name` is the question's key."""
        fields = {"model": self.model, "mode": self.mode, "debias": self.debias}
        return {**fields, "questions": {name: self.question}}


def split(rows: Sequence[EvalRow]) -> tuple[list[EvalRow], list[EvalRow]]:
    """The rows that examples are taken from, and those that candidates are tested on.

    A fifth of the states is for examples, at least 4 and at most half, with all of their rows: a
    model that was shown a state knows its answer.
    """
    states = by_state(shuffled(rows))
    size = min(max(FEW_SHOT, len(states) // _POOL_SHARE), len(states) // 2)
    shown, tested = (list(chain(*some)) for some in (states[:size], states[size:]))
    return shown, tested


def examples(pool: Sequence[EvalRow]) -> list[JsonObject]:
    """States of the pool as examples of a question, with as many different labels as possible."""
    counts: dict[str, int] = {}
    ranked = []
    for index, (row, *_) in enumerate(by_state(pool)):
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
    ways = product(plans(models), MODES, (True, False), few_shot)
    return [_candidate(eval_set, *way) for way in ways]


def reworded(eval_set: EvalSet, one: Candidate, instructions: str) -> Candidate:
    """The same way to ask with other instructions. Raises `ApiError`."""
    other = {"instructions": instructions}
    fields = {"model": one.model, "mode": one.mode, "debias": one.debias}
    question = {**one.question, **other}
    return replace(one, request=eval_set.request(fields, **question), question=question)


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

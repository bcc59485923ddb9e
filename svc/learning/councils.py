"""What labels teach about the members of a council: pools, and labels as today's pools merge them.

A pool is in effect for an exact question of a project and a set of models. All pools of a question
are kept as one JSON array, each with its models in alphabetical order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from svc import limits
from svc.jsontext import JsonObject
from svc.memo import Memo
from svc.questions import Question
from svc.stats import FOLDS, Floats, Ints, OpinionPool, folds_of, opinions
from svc.store import Members, TrainingData
from svc.terms import TaskKind

# By which two merged probabilities may differ that were rounded on different ways.
_ROUNDING = 1e-6
# The most probabilities that a pool is fitted to, those of the last labels. A pool has a weight for
# each member alone, and to fit five of them to 5,000 labels of 255 options takes 10 s and 300 MB.
_NUMBERS = 1_000_000
# Of more councils those with the most labels have pools: every decision looks among them.
_POOLS = 32
# Rows that are merged with equal weights are in memory so many at a time.
_EQUAL_AT_ONCE = 1_000
_POWERS_OF_TEN = np.array([float(10**power) for power in range(309)])

Council = tuple[str, ...]


def in_effect(pools: str | None, models: Council) -> OpinionPool | None:
    """The pool of these models, with weights in the order in which they are given here."""
    found = _kept(pools).get(tuple(sorted(models)))
    return None if found is None else _pool(found, found["weights"], models)


def _held_out(found: JsonObject, models: Council, fold: int) -> OpinionPool:
    """The kept pool of these models, fitted without the labels of this fold."""
    # Pools that an earlier version stored have the weights of all labels alone.
    weights = found["held_out"][fold] if "held_out" in found else found["weights"]
    return _pool(found, weights, models)


def _pool(found: JsonObject, weights: Sequence[float], models: Council) -> OpinionPool:
    by_model = dict(zip(found["models"], weights, strict=True))
    return OpinionPool(found["kind"], tuple(by_model[model] for model in models))


def _folds(data: TrainingData, rows: Sequence[int]) -> Ints:
    """The fold of each row, which is always that of its decision."""
    return folds_of(np.array(data.decisions)[list(rows)], FOLDS)


def fitted(data: TrainingData, question: Question, weights: Floats | None = None) -> str | None:
    """The pools that are worth having, as JSON; None where there is none.

    `weights` has what each label counts for how answers are now, None where all count alike.
    """
    if not question.calibrates:
        return None
    known = _kept(data.state.pools)
    largest = sorted(_seated(data), key=lambda seated: -len(seated[1]))[:_POOLS]
    judged = [_judged(data, council, rows, question, known, weights) for council, rows in largest]
    pools = [one for one in judged if one is not None]
    return json.dumps(pools) if pools else None


def merged(data: TrainingData, pools: str | None) -> TrainingData:
    """The labels as these pools merge what the members said; equal weights, where there is none.

    Each is merged by a pool that did not learn from it, so that it tells of answers to come: sets
    and figures made of labels that taught the pool would promise too much. What was read of a
    single model stays, and so does what differs by no more than rounding.
    """
    p = list(data.p)
    for pool, rows in _pooled(data, _kept(pools)):
        merged_rows = pool.apply(_array(data, rows))
        apart = np.abs(merged_rows - np.array([p[row] for row in rows])).max(axis=1)
        places = np.flatnonzero(apart > _ROUNDING)
        for place, found in zip(places, to_digits(merged_rows[places]), strict=True):
            p[rows[place]] = found
    return replace(data, p=p)


def _pooled(
    data: TrainingData, known: Mapping[Council, JsonObject]
) -> Iterator[tuple[OpinionPool, list[int]]]:
    """Pools, each with rows that it did not learn from, a limited number at a time.

    Councils of one size without a pool have the same equal weights: there may be one for each row.
    """
    equal: dict[int, list[int]] = {}
    for council, rows in _seated(data):
        if council not in known:
            equal.setdefault(len(council), []).extend(rows)
            continue
        folds = _folds(data, rows)
        for fold in range(FOLDS):
            mine = [row for row, one in zip(rows, folds, strict=True) if one == fold]
            if mine:
                yield _held_out(known[council], council, fold), mine
    for size, rows in equal.items():
        for begin in range(0, len(rows), _EQUAL_AT_ONCE):
            yield opinions.equal(size), rows[begin : begin + _EQUAL_AT_ONCE]


def to_digits(p: Floats) -> Floats:
    """`svc.questions.to_digits` for an array of any shape, which takes a tenth of the time.

    Ten to the power of up to 22 is a double of its own, so that one division rounds right (Clinger,
    How to Read Floating Point Numbers Accurately, 1990); of tiny ones the last bit may differ.
    """
    magnitude = np.floor(np.log10(np.where(p > 0, p, 1))).astype(np.int64)
    scale = _POWERS_OF_TEN[np.minimum(6 - magnitude, len(_POWERS_OF_TEN) - 1)]
    rounded: Floats = np.rint(p * scale) / scale
    return rounded


def shown(pools: str | None) -> JsonObject | None:
    """The pool of the council that has the most labels, as the calibration report has it."""
    kept = max(_kept(pools).values(), key=lambda one: int(one["labels"]), default=None)
    if kept is None:
        return None
    weights = dict(zip(kept["models"], kept["weights"], strict=True))
    return {
        "kind": kept["kind"],
        "weights": weights,
        "labels": kept["labels"],
        "log_loss": kept["log_loss"],
    }


def _judged(
    data: TrainingData,
    council: Council,
    rows: Sequence[int],
    question: Question,
    known: Mapping[Council, JsonObject],
    weights: Floats | None,
) -> JsonObject | None:
    if len(rows) < limits.MIN_LABELS:
        return None
    rows = rows[-max(limits.MIN_LABELS, _NUMBERS // (len(council) * len(data.p[rows[0]]))) :]
    # A member that gave another value says 0 of this one, and a product with 0 is 0.
    kinds = opinions.KINDS[:1] if question.task is TaskKind.RIGHTNESS else opinions.KINDS
    truth = np.array(data.truth)[list(rows)]
    weights = None if weights is None else weights[list(rows)]
    found = opinions.fit(
        *(_array(data, rows), truth, weights),
        again=council in known,
        kinds=kinds,
        folds=_folds(data, rows),
    )
    if found.pool is None:
        return None
    return {
        "models": list(council),
        **found.pool.parameters,
        "held_out": [pool.weights for pool in found.held_out],
        "labels": found.labels,
        "log_loss": {"equal": found.equal, "pool": found.pooled},
    }


def _seated(data: TrainingData) -> list[tuple[Council, list[int]]]:
    """The councils that labels are there for, each with its rows."""
    councils: dict[Council, list[int]] = {}
    for row, members in enumerate(data.members):
        if members:
            councils.setdefault(tuple(sorted(members)), []).append(row)
    return sorted(councils.items())


def _array(data: TrainingData, rows: Sequence[int]) -> Floats:
    """(rows, members, options) by the names of the models, NaN where a member's call failed."""
    options = len(data.p[rows[0]])
    missing = [float("nan")] * options
    said = [_said(data.members[row]) for row in rows]
    return np.array([[one[model] or missing for model in sorted(one)] for one in said])


def _said(members: Members | None) -> Members:
    return members or {}


def _kept(pools: str | None) -> Mapping[Council, JsonObject]:
    """The pools by their models. Very many are parsed anew each time: keep what this gives."""
    return _read(pools) if pools else {}


@Memo
def _read(pools: str) -> Mapping[Council, JsonObject]:
    return {tuple(one["models"]): one for one in json.loads(pools)}

"""Pools of a question's councils, as they are kept, and labels as they merge them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from svc.learning import councils
from svc.questions import TYPES, Question
from svc.store.label_records import CalibrationState, Members, TrainingData

CHOICE = TYPES["choice"].load(
    {"type": "choice", "instructions": "?", "options": {"a": "", "b": ""}, "escape": False}
)
TEXT = TYPES["text"].load({"type": "text", "instructions": "?"})
MULTI = TYPES["multi"].load({"type": "multi", "instructions": "?", "options": {"a": "", "b": ""}})
POOLS = json.dumps(
    [
        {"models": ["a", "b"], "kind": "arithmetic", "weights": [0.9, 0.1], "labels": 40},
        {"models": ["a", "b", "c"], "kind": "geometric", "weights": [1, 2, 3], "labels": 60},
    ]
)


def lesson(
    p: list[list[float]],
    members: list[Members | None],
    truth: list[int] | None = None,
    pools: str | None = None,
) -> TrainingData:
    learned = CalibrationState(len(p), len(p), 0, None, None, 1, pools)
    n = len(p)
    return TrainingData(
        learned,
        p,
        truth or [0] * n,
        members,
        ["@p/m logprobs"] * n,
        [None] * n,
        [None] * n,
        [None] * n,
        [None] * n,
        list(range(n)),
    )


def council(n: int, question: Question = CHOICE) -> TrainingData:
    """`good` is right 9 times of 10, `bad` as often as not, both sure of it."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, n)
    good = np.where(random.random(n) < 0.9, truth, 1 - truth)
    bad = random.integers(0, 2, n)
    said = [{"good": _sure(one), "bad": _sure(other)} for one, other in zip(good, bad, strict=True)]
    return lesson([[0.5, 0.5]] * n, list(said), truth.tolist())


def _sure(option: int) -> list[float]:
    return [0.95, 0.05] if option == 0 else [0.05, 0.95]


def test_a_pool_is_found_in_whichever_order_its_models_are_asked() -> None:
    pool = councils.in_effect(POOLS, ("c", "a", "b"))
    assert pool is not None and pool.weights == (3, 1, 2)
    assert councils.in_effect(POOLS, ("a", "c")) is None
    assert councils.in_effect(None, ("a", "b")) is None


def test_a_pool_takes_labels_enough_of_that_very_council() -> None:
    few, many = council(29), council(120)
    assert councils.fitted(few, CHOICE) is None
    both = lesson(
        few.p + many.p,
        [{**one, "third": None} for one in few.members if one] + many.members,
        few.truth + many.truth,
    )
    (pool,) = json.loads(councils.fitted(both, CHOICE) or "[]")
    assert pool["models"] == ["bad", "good"] and pool["labels"] == 120
    assert pool["weights"][1] > 3 * pool["weights"][0]


def test_no_pool_is_fitted_for_questions_that_labels_do_not_calibrate() -> None:
    assert councils.fitted(council(120), MULTI) is None


def test_of_extracted_values_only_the_arithmetic_mean_is_weighted() -> None:
    rows: list[Members | None] = [
        {"good": [0.9], "bad": [0.0 if n % 3 else 0.9]} for n in range(90)
    ]
    found = councils.fitted(lesson([[0.5]] * 90, rows, [1] * 90), TEXT)
    (pool,) = json.loads(found or "[]")
    assert pool["kind"] == "arithmetic" and pool["weights"][1] > 0.7


def test_labels_are_merged_as_the_pool_in_effect_would_have_merged_them() -> None:
    rows: list[Members | None] = [
        {"b": [0.2, 0.8], "a": [0.6, 0.4]},
        None,
        {"a": None, "b": [0.3, 0.7]},
    ]
    given = lesson([[0.4, 0.6], [0.1, 0.9], [0.3, 0.7]], rows)
    assert councils.merged(given, None).p == given.p
    pooled = councils.merged(given, POOLS).p
    assert pooled[0] == pytest.approx([0.56, 0.44])
    assert pooled[1:] == given.p[1:]


def test_labels_of_a_pool_that_is_gone_are_merged_by_the_mean() -> None:
    given = lesson([[0.56, 0.44]], [{"a": [0.6, 0.4], "b": [0.2, 0.8]}], pools=POOLS)
    assert councils.merged(given, None).p == [pytest.approx([0.4, 0.6])]


def test_rounding_alone_moves_no_label() -> None:
    given = lesson(
        [[0.3333333, 0.6666667]], [{"a": [0.3333333, 0.6666667], "b": [0.3333334, 0.6666666]}]
    )
    assert councils.merged(given, None).p == given.p


def test_the_council_with_the_most_labels_is_shown() -> None:
    kept = [{**one, "log_loss": {"equal": 0.4, "pool": 0.2}} for one in json.loads(POOLS)]
    assert councils.shown(json.dumps(kept)) == {
        "kind": "geometric",
        "weights": {"a": 1, "b": 2, "c": 3},
        "labels": 60,
        "log_loss": {"equal": 0.4, "pool": 0.2},
    }
    assert councils.shown(None) is None

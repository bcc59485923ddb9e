"""Pools of a question's councils, as they are kept, and labels as they merge them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from svc.learning import councils, refit
from svc.questions import TYPES, Question, to_digits
from svc.stats import FOLDS, Ints, conformal, folds_of, opinions
from svc.stats.recency import DAY_MS
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
        [0] * n,
        [None] * n,
        list(range(n)),
        [0] * n,
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


def test_probabilities_are_rounded_as_they_are_stored() -> None:
    p = 10 ** np.random.default_rng(0).uniform(-16, 0, 10_000)
    assert councils.to_digits(p).tolist() == list(to_digits(p.tolist()))


def test_tiny_probabilities_are_rounded_to_seven_digits_too() -> None:
    tiny = [0.0, 1e-300, 1.23456789e-24]
    assert councils.to_digits(np.array(tiny)).tolist() == pytest.approx(to_digits(tiny), rel=1e-15)


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


def test_of_many_councils_those_with_the_most_labels_have_pools() -> None:
    """All of them are looked through for each decision."""
    p, members, truth = [], [], []
    for number in range(40):
        one = council(60 + number)
        p, truth = p + one.p, truth + one.truth
        members += [{f"{name}{number:02}": row[name] for name in row} for row in one.members if row]
    pools = json.loads(councils.fitted(lesson(p, members, truth), CHOICE) or "[]")
    assert {pool["models"][0] for pool in pools} == {f"bad{number:02}" for number in range(8, 40)}


def test_a_pool_is_fitted_to_no_more_than_a_million_probabilities() -> None:
    options = {f"o{number}": "" for number in range(255)}
    wide = {"type": "choice", "instructions": "?", "options": options, "escape": False}
    n, labels = 1_000, 1_000_000 // (5 * 255)
    random = np.random.default_rng(0)
    truth = random.integers(0, 255, n)

    def sure_of(answers: Ints) -> list[list[float]]:
        p = np.full((n, 255), 0.1 / 254)
        p[np.arange(n), answers] = 0.9
        return p.tolist()

    columns = [truth, *(random.integers(0, 255, n) for _ in range(4))]
    by_member = zip(*map(sure_of, columns), strict=True)
    said: list[Members | None] = [dict(zip("abcde", row, strict=True)) for row in by_member]
    data = lesson([[1 / 255] * 255] * n, said, truth.tolist())
    (pool,) = json.loads(councils.fitted(data, TYPES["choice"].load(wide)) or "[]")
    assert labels < n and pool["labels"] == labels


def test_a_member_that_has_changed_loses_its_weight_for_good() -> None:
    before, after = council(900), council(100)
    wrong: list[Members | None] = [
        {**one, "good": _sure(1 - truth)}
        for one, truth in zip(after.members, after.truth, strict=True)
        if one
    ]
    data = lesson(before.p + after.p, before.members + wrong, before.truth + after.truth)
    days = [DAY_MS * number for number in range(1_000)]
    data = replace(data, first_at=days, decided_at=days)
    pools = councils.fitted(before, CHOICE)
    for _ in range(3):
        # As the pool of before merges them, then as the one that knows of the change does.
        data = replace(data, state=replace(data.state, pools=pools))
        pools = refit.learned(data, CHOICE.definition_json, []).pools
        (pool,) = json.loads(pools or "[]")
        assert dict(zip(pool["models"], pool["weights"], strict=True))["good"] < 0.2


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


def test_a_label_is_merged_by_a_pool_that_did_not_learn_from_it() -> None:
    known = council(120)
    (pool,) = json.loads(councils.fitted(known, CHOICE) or "[]")
    # As if the pool without the labels of a fold would follow one member alone.
    pool["held_out"] = [[0, 1], [1, 0], [0, 1], [0, 1], [0, 1]]
    merged = councils.merged(known, json.dumps([{**pool, "kind": "arithmetic"}])).p
    folds = folds_of(np.array(known.decisions), FOLDS)
    for row, said in enumerate(known.members):
        assert said is not None
        assert merged[row] == pytest.approx(said["bad" if folds[row] == 1 else "good"])


def test_a_later_label_leaves_all_others_in_their_folds() -> None:
    decisions = np.arange(7, 5_000, 7)
    folds = folds_of(decisions, FOLDS)
    assert (folds_of(decisions[100:], FOLDS) == folds[100:]).all()
    assert np.bincount(folds, minlength=FOLDS).min() > 0.15 * len(folds)


def test_sets_of_labels_that_taught_the_pool_hold_the_truth_as_often_as_promised() -> None:
    held, learned = [], 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        known, new = (_some_know(random, n) for n in (30, 300))
        pools = councils.fitted(known, CHOICE)
        learned += pools is not None
        scores = [-np.log(p[true]) for p, true in zip(*_merged(known, pools), strict=True)]
        limit = conformal.weighted_quantile(np.array(scores), 0.9)
        pool = councils.in_effect(pools, FIVE) or opinions.equal(len(FIVE))
        said = np.array([[(one or {})[name] for name in FIVE] for one in new.members])
        found = pool.apply(said)[np.arange(300), new.truth]
        held.append(np.mean(-np.log(found) <= limit + 1e-9))
    assert learned > 70
    # By pools that learned from the labels it is 0.87.
    assert np.mean(held) >= 0.89


FIVE = ("a", "b", "c", "d", "e")


def _merged(known: TrainingData, pools: str | None) -> tuple[list[list[float]], list[int]]:
    return councils.merged(known, pools).p, known.truth


def _some_know(random: np.random.Generator, n: int) -> TrainingData:
    """Five members that are far too sure, of which three know something."""
    truth = random.integers(0, 2, n)
    knows = 1.5 * (np.arange(5) < 3) * (2 * truth - 1)[:, None]
    z = 4 * (2**0.5 * random.normal(size=(n, 5)) + knows)
    p = np.clip(1 / (1 + np.exp(-z)), 1e-6, 1 - 1e-6)
    said = [{name: [1 - x, x] for name, x in zip(FIVE, row.tolist(), strict=True)} for row in p]
    return lesson([[0.5, 0.5]] * n, list(said), truth.tolist())


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

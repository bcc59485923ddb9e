from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from svc.learning import fits as kept
from svc.learning import sampling
from svc.learning.labelled import HEAVIEST, labelled, sampling_weights
from svc.questions import from_definition
from svc.stats.recency import DAY_MS
from svc.store import CalibrationState, TrainingData

NOUL = from_definition(json.dumps({"type": "noul", "instructions": "Is it so?"}))


def data_of(
    p: list[float],
    truth: list[int],
    models: list[str] | None = None,
    sampled: list[str | None] | None = None,
    chance: list[float | None] | None = None,
    relative: list[float | None] | None = None,
) -> TrainingData:
    n = len(p)
    return TrainingData(
        CalibrationState(n, n, 0, None, None, 1),
        [[one] for one in p],
        truth,
        [None] * n,
        answered_by=models or ["@p/m logprobs"] * n,
        sampled=sampled or [None] * n,
        chance=chance or [None] * n,
        first_at=[DAY_MS * place for place in range(n)],
        relative=relative or [None] * n,
        decisions=list(range(n)),
        decided_at=[DAY_MS * place for place in range(n)],
    )


def answers(n: int, right: float, seed: int) -> tuple[list[float], list[int]]:
    """Answers that are 90% sure, and right as often as told."""
    random = np.random.default_rng(seed)
    yes = random.random(n) < 0.5
    correct = random.random(n) < right
    return np.where(yes, 0.9, 0.1).tolist(), np.where(correct, yes, ~yes).astype(int).tolist()


def test_two_models_that_err_in_opposite_ways_are_calibrated_each_by_itself() -> None:
    sure, shy = answers(300, 0.7, 1), answers(300, 0.98, 2)
    models = ["@p/sure logprobs"] * 300 + ["@p/shy logprobs"] * 300
    rows = labelled(data_of(sure[0] + shy[0], sure[1] + shy[1], models), NOUL, None)
    fits = rows.fits(again=False)
    shown = {
        name: calibrator.one((0.9,))[0]
        for name in ("sure", "shy")
        if (calibrator := fits.of(f"@p/{name} logprobs")) is not None
    }
    assert shown["sure"] == pytest.approx(0.7, abs=0.07)
    assert shown["shy"] == pytest.approx(0.98, abs=0.03)
    calibrated = rows.calibrated(fits)
    assert calibrated[:300].max() < calibrated[300:].max()


def test_what_was_fitted_is_read_back_as_it_was() -> None:
    rows = labelled(data_of(*answers(200, 0.6, 3)), NOUL, None)
    found = rows.fits(again=False)
    assert found.any
    read = kept.parsed(found.dumps())
    assert read.of("@p/m logprobs") == found.of("@p/m logprobs")
    assert read.of("@p/unknown verbal") == found.pooled.calibrator
    assert kept.Fits().dumps() is None and not kept.parsed(None).any


def test_a_changed_model_is_noticed_and_its_old_labels_count_little() -> None:
    before, after = answers(600, 0.9, 4), answers(200, 0.55, 5)
    rows = labelled(data_of(before[0] + after[0], before[1] + after[1]), NOUL, None)
    found = rows.changes["@p/m logprobs"]
    change = len(found.before)
    assert 560 <= change <= 700
    assert [*found.before, *found.since] == list(range(800))
    weights = rows.weights
    assert weights is not None and weights[:change].sum() == pytest.approx(10)
    assert rows.current.tolist() == list(range(change, 800))
    assert rows.changed_at(list(range(1_000, 1_800))) == 1_000 + change
    calibrator = rows.fits(again=True).of("@p/m logprobs")
    assert calibrator is not None and calibrator.one((0.9,))[0] < 0.7


def at(days: list[int]) -> list[int]:
    return [DAY_MS * day for day in days]


def wrong_ones_last(p: list[float], truth: list[int]) -> list[int]:
    """For each answer, which one it would be if those that are wrong came last."""
    right = [(one > 0.5) == bool(true) for one, true in zip(p, truth, strict=True)]
    order = sorted(range(len(p)), key=lambda place: not right[place])
    return np.argsort(order).tolist()


def test_a_change_has_to_show_in_the_order_of_the_answers_and_in_that_of_the_labels() -> None:
    p, truth = answers(600, 0.9, 4)
    data, last = data_of(p, truth), at(wrong_ones_last(p, truth))
    assert labelled(replace(data, first_at=last, decided_at=last), NOUL, None).changes
    assert not labelled(replace(data, first_at=last), NOUL, None).changes
    assert not labelled(replace(data, decided_at=last), NOUL, None).changes


def test_the_order_of_a_file_is_none() -> None:
    """Whether it was asked about within half a day, or its labels came in one request."""
    p, truth = answers(600, 0.9, 4)
    last = wrong_ones_last(p, truth)
    file = replace(data_of(p, truth), decisions=last, decided_at=[5] * 600)
    assert not labelled(replace(file, first_at=at(last)), NOUL, None).changes
    assert not labelled(replace(file, first_at=[9] * 600), NOUL, None).changes
    for start in (DAY_MS - 5, DAY_MS // 2 - DAY_MS // 4, DAY_MS // 3):
        half_a_day = [start + one * (DAY_MS // 2) // 600 for one in last]
        slow = replace(file, decided_at=half_a_day, first_at=half_a_day)
        assert not labelled(slow, NOUL, None).changes


def test_a_change_is_found_in_labels_that_come_all_at_once() -> None:
    before, after = answers(600, 0.9, 4), answers(200, 0.55, 5)
    order = np.random.default_rng(7).permutation(800).tolist()
    p, truth = before[0] + after[0], before[1] + after[1]
    data = data_of([p[place] for place in order], [truth[place] for place in order])
    data = replace(data, first_at=[9] * 800, decisions=order, decided_at=at(order))
    rows = labelled(data, NOUL, None)
    found = rows.changes["@p/m logprobs"]
    assert [order[place] for place in (*found.before, *found.since)] == list(range(800))
    assert 560 <= len(found.before) <= 700
    assert {order[place] for place in rows.current} == set(range(len(found.before), 800))
    assert rows.changed_at(data.decided_at) == DAY_MS * len(found.before)


def test_nothing_is_made_of_labels_that_stay_as_they_were() -> None:
    rows = labelled(data_of(*answers(800, 0.9, 6)), NOUL, None)
    assert (rows.changes, rows.weights) == ({}, None)


def test_another_model_that_answers_from_now_on_is_no_change_of_the_first() -> None:
    first, second = answers(300, 0.9, 8), answers(300, 0.5, 9)
    models = ["@p/first logprobs"] * 300 + ["@p/second logprobs"] * 300
    rows = labelled(data_of(first[0] + second[0], first[1] + second[1], models), NOUL, None)
    assert not rows.changes


def test_a_label_weighs_one_over_its_chance_and_never_too_much() -> None:
    assert sampling_weights([None] * 2, [None] * 2) is None
    weights = sampling_weights([0.5, 0.25, None], [None] * 3)
    assert weights is not None
    assert weights[1] == pytest.approx(2 * weights[0])
    assert weights[2] == pytest.approx(1)
    queued = sampling_weights([0.9, 0.01, 0.01, None], [None, 2.0, 0.5, None])
    assert queued is not None
    assert queued.tolist() == [1, 0.5, 2, 1]
    rare = sampling_weights([1.0] * 999 + [1e-6], [None] * 1_000)
    assert rare is not None and rare.max() == pytest.approx(HEAVIEST)


def test_a_label_that_lies_about_its_chance_leaves_all_others_their_weight() -> None:
    weights = sampling_weights([1e-6, 1e-6] + [0.1] * 498, [None] * 500)
    assert weights is not None
    assert weights[:2] == pytest.approx(HEAVIEST)
    assert weights[2:].sum() == pytest.approx(460)
    # Where one in twenty or more are as rare, that is how it was drawn.
    many = sampling_weights([1e-6] * 30 + [0.1] * 470, [None] * 500)
    assert many is not None
    assert many[0] / many[-1] == pytest.approx(1e5)


def test_figures_of_labels_that_were_drawn_by_doubt_are_those_of_all() -> None:
    """Unsure answers are handed out ten times as often, and are wrong more often."""
    random = np.random.default_rng(7)
    sure = random.random(20_000) < 0.8
    p = np.where(sure, 0.97, 0.6)
    truth = (random.random(20_000) < p).astype(int)
    chance = np.where(sure, 0.02, 0.2)
    drawn = random.random(20_000) < chance
    rows = labelled(
        data_of(p[drawn].tolist(), truth[drawn].tolist(), chance=chance[drawn].tolist()),
        NOUL,
        None,
    )
    right = rows.truth == 1
    assert right.mean() < 0.8
    assert np.average(right, weights=rows.sampling) == pytest.approx(truth.mean(), abs=0.03)


@pytest.mark.parametrize(
    ("sampled", "meaning"),
    [
        ([], None),
        (["random", "queue"], sampling.ALL_DRAWN),
        (["random", None], sampling.NOBODY_SAID),
        ([None, "other"], sampling.SOME_PICKED),
    ],
)
def test_the_report_says_what_cannot_be_promised(
    sampled: list[str | None], meaning: str | None
) -> None:
    n = len(sampled)
    chance = [None if way is None else 0.5 for way in sampled]
    data = data_of([0.9] * n, [1] * n, sampled=sampled, chance=chance) if n else None
    report = sampling.report(data)
    assert report["meaning"] == meaning
    assert sum(report["labels"].values()) == n


def test_of_a_queue_whose_chances_nobody_told_nothing_is_known() -> None:
    told = sampling.report(data_of([0.9], [1], sampled=["queue"], chance=[0.4]))
    assert (told["labels"]["queue"], told["meaning"]) == (1, sampling.ALL_DRAWN)
    untold = sampling.report(data_of([0.9], [1], sampled=["queue"]))
    assert (untold["labels"]["unknown"], untold["meaning"]) == (1, sampling.NOBODY_SAID)

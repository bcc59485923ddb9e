"""Calibrators of several models behind one question."""

from __future__ import annotations

import numpy as np
import pytest

from svc.stats import acceptance
from svc.stats.calibrators import Floats, Ints, Temperature
from svc.stats.pooling import FEWEST, OWN, fit_groups
from svc.stats.scores import expected_calibration_error
from svc.stats.tasks import TASKS
from tests.stats import problems

CLASSES, YES_NO = TASKS["classes"], TASKS["yes_no"]


def model(sharper: float, n: int, seed: int) -> tuple[Floats, Ints]:
    """Four classes; log-odds are `sharper` times the true ones."""
    random = np.random.default_rng([seed, int(sharper * 10)])
    logits = random.normal(scale=1.5, size=(n, 4))
    truth = problems.drawn(random, problems.softmax(logits))
    return problems.softmax(logits * sharper), truth


def mixed(one: tuple[Floats, Ints], other: tuple[Floats, Ints]) -> tuple[Floats, Ints, list[str]]:
    """The labels of both in turns, and the groups."""
    n = len(one[1]) + len(other[1])
    order = np.random.default_rng(n).permutation(n)
    p, truth = np.vstack([one[0], other[0]])[order], np.concatenate([one[1], other[1]])[order]
    return p, truth, np.array(["one"] * len(one[1]) + ["other"] * len(other[1]))[order].tolist()


def test_two_unlike_models_are_both_made_true() -> None:
    worst = []
    for seed in range(15):
        one, other = model(3.0, 4_500, seed), model(1.0, 4_500, seed)
        known = [(p[:500], truth[:500]) for p, truth in (one, other)]
        found = fit_groups(CLASSES, *mixed(*known))
        errors = []
        for name, (p, truth) in (("one", one), ("other", other)):
            calibrator = found.by_group[name].calibrator
            after = p[500:] if calibrator is None else calibrator.apply(p[500:])
            confidence, correct = CLASSES.confidence(after), CLASSES.correct(after, truth[500:])
            errors.append(expected_calibration_error(confidence, correct))
        worst.append(max(errors))
    assert np.mean(worst) <= 0.03


def test_a_group_with_few_labels_has_the_pooled_calibrator() -> None:
    found = fit_groups(CLASSES, *mixed(model(3.0, 300, 1), model(1.0, FEWEST - 1, 1)))
    assert found.pooled.calibrator is not None
    assert found.pooled.labels == 300 + FEWEST - 1
    assert found.by_group["other"].calibrator == found.pooled.calibrator
    assert found.by_group["other"].labels == FEWEST - 1
    assert not found.by_group["other"].own


def test_of_very_many_groups_those_with_the_most_labels_have_their_own() -> None:
    parts = [(model(6.0, FEWEST + 5 * (number % 2), number)) for number in range(2 * OWN)]
    steady = model(1.0, 3_000, 1)
    p, truth = (np.concatenate(columns) for columns in zip(steady, *parts, strict=True))
    groups = ["steady"] * 3_000
    for number, (_, its) in enumerate(parts):
        groups += [f"m{number}"] * len(its)
    by_group = fit_groups(CLASSES, p, truth, groups).by_group
    own = {name for name, found in by_group.items() if found.own}
    assert len(own) > OWN // 2
    assert own <= {"steady", *(f"m{number}" for number in range(1, 2 * OWN, 2))}


def test_models_that_err_alike_share_a_calibrator_mostly() -> None:
    own = 0
    for seed in range(20):
        one, other = model(3.0, 150, seed), model(3.0, 150, seed + 1_000)
        found = fit_groups(CLASSES, *mixed(one, other))
        assert found.pooled.calibrator is not None
        own += sum(group.own for group in found.by_group.values())
    assert own <= 6


def test_a_fit_of_a_group_lies_between_its_own_and_the_pooled_one() -> None:
    one, other = model(3.0, 1_000, 3), model(1.0, 40, 3)
    towards = CLASSES.fit(*one)
    alone, drawn = CLASSES.fit(*other), CLASSES.fit(*other, None, towards)
    assert isinstance(towards, Temperature)
    assert isinstance(alone, Temperature) and isinstance(drawn, Temperature)
    assert alone.t < drawn.t < towards.t


def test_a_group_that_the_pooled_calibrator_spoils_gets_raw_probabilities_or_its_own() -> None:
    """The smaller group is underconfident, the larger one much too sure."""
    one, other = model(4.0, 900, 5), model(1.0, 100, 5)
    found = fit_groups(CLASSES, *mixed(one, other))
    assert isinstance(found.pooled.calibrator, Temperature)
    mine = found.by_group["other"]
    assert mine.calibrator is None or mine.own


def test_one_group_is_the_question_alone() -> None:
    p, truth = model(3.0, 200, 1)
    found = fit_groups(CLASSES, p, truth, ["one"] * 200)
    assert found.by_group == {"one": found.pooled}
    assert found.pooled.calibrator == acceptance.fit(CLASSES, p, truth, again=False)


def test_shifts_of_opposite_signs_are_found_where_nothing_is_to_be_pooled() -> None:
    random = np.random.default_rng(1)
    true = random.normal(scale=1.5, size=800)
    truth = (random.random(800) < problems.sigmoid(true)).astype(np.int64)
    up = np.arange(800) % 2 == 0
    p = problems.sigmoid(true + np.where(up, 1.5, -1.5))[:, None]
    found = fit_groups(YES_NO, p, truth, np.where(up, "up", "down").tolist())
    assert found.by_group["up"].own and found.by_group["down"].own
    up_b, down_b = (found.by_group[name].calibrator.parameters["b"] for name in ("up", "down"))
    assert (up_b, down_b) == (pytest.approx(-1.5, abs=0.5), pytest.approx(1.5, abs=0.5))


def test_no_labels_are_no_groups() -> None:
    found = fit_groups(CLASSES, np.zeros((0, 3)), np.zeros(0, dtype=np.int64), [])
    assert found.pooled.calibrator is None
    assert found.by_group == {}


def test_weights_reach_the_groups() -> None:
    p, truth, groups = mixed(model(3.0, 300, 1), model(1.0, 300, 1))
    spoilt = np.where(np.arange(600) % 2, (truth + 1) % 4, truth)
    weights = np.where(np.arange(600) % 2, 1e-9, 1.0)
    kept = np.flatnonzero(np.arange(600) % 2 == 0)
    whole = fit_groups(CLASSES, p, spoilt, groups, weights=weights)
    part = fit_groups(CLASSES, p[kept], truth[kept], [groups[place] for place in kept])
    ours, theirs = (found.by_group["one"].calibrator for found in (whole, part))
    assert isinstance(ours, Temperature) and isinstance(theirs, Temperature)
    assert ours.t == pytest.approx(theirs.t, rel=0.02)

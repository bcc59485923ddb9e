from __future__ import annotations

import numpy as np
import pytest

from svc.stats import acceptance
from svc.stats.calibrators import Floats, Ints, Platt, Temperature
from svc.stats.scores import expected_calibration_error
from svc.stats.tasks import TASKS
from tests.stats import problems

CLASSES, YES_NO = TASKS["classes"], TASKS["yes_no"]


def overconfident(n: int, seed: int = 1) -> tuple[Floats, Ints]:
    """Three classes; the probabilities are those of a temperature of a third."""
    random = np.random.default_rng(seed)
    logits = random.normal(scale=1.5, size=(n, 3))
    truth = problems.drawn(random, problems.softmax(logits))
    return problems.softmax(logits * 3), truth


def test_a_clear_gain_is_taken_up() -> None:
    found = acceptance.fit(CLASSES, *overconfident(300), again=False)
    assert isinstance(found, Temperature)
    assert found.t == pytest.approx(3, abs=0.5)


def test_true_probabilities_are_hardly_ever_changed() -> None:
    taken = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        p = random.dirichlet(np.ones(4), 100)
        truth = problems.drawn(random, p)
        taken += acceptance.fit(CLASSES, p, truth, again=False) is not None
    assert taken < 12


@pytest.mark.parametrize("sure", [0.9, 0.95, 0.97, 0.99])
def test_a_run_of_right_answers_does_not_make_sure_ones_surer(sure: float) -> None:
    taken = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        top = sure + random.uniform(-0.01, 0.009, 30)
        p = np.stack([top, (1 - top) * 0.6, (1 - top) * 0.4], 1)
        truth = problems.drawn(random, p)
        taken += acceptance.fit(CLASSES, p, truth, again=False) is not None
    assert taken <= 4


def test_unsure_answers_that_are_always_right_are_made_surer() -> None:
    p = np.tile([0.6, 0.3, 0.1], (30, 1))
    found = acceptance.fit(CLASSES, p, np.zeros(30, dtype=np.int64), again=False)
    assert isinstance(found, Temperature) and found.t < 0.5


def test_no_value_is_nothing_to_learn_from() -> None:
    """An extraction without a value has the probability 0, and keeps it."""
    task = TASKS["rightness"]
    p, truth = np.full((80, 1), 0.9), np.zeros(80, dtype=np.int64)
    p[40:], truth[:24] = 0.0, 1
    truth[40:] = 1  # there was nothing to extract, which the caller calls right
    alone, both = (task.fit(p[:n], truth[:n]) for n in (40, 80))
    assert alone.parameters == both.parameters
    assert task.calibrated(both, p)[40:].max() == 0
    assert task.calibrated(both, p)[:40].min() == pytest.approx(0.6, abs=0.05)


def test_a_successor_need_not_be_clearly_better_but_not_worse() -> None:
    agains, firsts = 0, 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        p = random.random((60, 1))
        truth = (random.random(60) < p[:, 0]).astype(np.int64)
        agains += acceptance.fit(YES_NO, p, truth, again=True) is not None
        firsts += acceptance.fit(YES_NO, p, truth, again=False) is not None
    assert firsts < agains < 60


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("name", "p", "truth"), [*problems.edges_of_classes(), *problems.edges_of_binary()]
)
def test_the_edges_are_judged_without_a_complaint(
    name: str, p: Floats, truth: Ints, again: bool
) -> None:
    task = CLASSES if p.shape[1] > 1 else YES_NO
    found = acceptance.fit(task, p, truth, again=again)
    assert found is None or isinstance(found, Temperature | Platt)


def test_a_calibrator_in_effect_falls_to_labels_that_speak_against_it() -> None:
    """As after a change of model: the last labels are those of one that is right about itself."""
    p, truth = overconfident(100)
    random = np.random.default_rng(2)
    newer = problems.softmax(random.normal(scale=3, size=(2_000, 3)))
    answers = problems.drawn(random, newer)
    assert acceptance.fit(CLASSES, p, truth, again=True) is not None
    weights = np.concatenate([np.full(100, 1e-6), np.ones(2_000)])
    both = np.vstack([p, newer]), np.concatenate([truth, answers])
    assert acceptance.fit(CLASSES, *both, again=False, weights=weights) is None


def test_biases_are_fitted_where_classes_are_more_frequent_than_the_model_thinks() -> None:
    random = np.random.default_rng(4)
    gained = []
    for _ in range(10):
        true = random.normal(scale=1.5, size=(2_100, 5)) + np.array([1.5, 0.5, 0, -0.5, -1.5])
        truth = problems.drawn(random, problems.softmax(true))
        p = problems.softmax(true - np.array([1.5, 0.5, 0, -0.5, -1.5]))
        found = acceptance.fit(CLASSES, p[:100], truth[:100], again=False)
        after = p[100:] if found is None else found.apply(p[100:])
        right = [CLASSES.correct(q, truth[100:]).mean() for q in (p[100:], after)]
        gained.append(right[1] - right[0])
    assert found is not None and "bias" in found.parameters
    assert np.mean(gained) > 0.04


def test_biases_are_hardly_ever_fitted_where_there_are_none() -> None:
    biased = 0
    for seed in range(60):
        found = acceptance.fit(CLASSES, *overconfident(100, seed), again=False)
        assert found is not None
        biased += "bias" in found.parameters
    assert biased <= 8


def test_what_is_taken_up_is_truly_better_in_log_loss_and_brier_score() -> None:
    better = taken = 0
    for seed in range(60):
        p, truth = overconfident(2_030, seed)
        found = acceptance.fit(CLASSES, p[:30], truth[:30], again=False)
        if found is not None:
            after, fresh, answers = found.apply(p[30:]), p[30:], truth[30:]
            losses, briers = (
                score(after, answers).mean() < score(fresh, answers).mean()
                for score in (CLASSES.log_losses, CLASSES.briers)
            )
            taken, better = taken + 1, better + (losses and briers)
    assert taken >= 50
    assert better >= 0.95 * taken


def test_what_a_model_promises_is_true_after_a_few_dozen_labels() -> None:
    errors = []
    for seed in range(20):
        p, truth = overconfident(4_100, seed)
        found = acceptance.fit(CLASSES, p[:100], truth[:100], again=False)
        assert found is not None
        after = found.apply(p[100:])
        confidence, correct = CLASSES.confidence(after), CLASSES.correct(after, truth[100:])
        errors.append(expected_calibration_error(confidence, correct))
    assert np.mean(errors) < 0.05


def test_labels_that_weigh_nothing_are_as_good_as_absent() -> None:
    p, truth = overconfident(300)
    other = np.where(np.arange(300) < 100, (truth + 1) % 3, truth)
    weights = np.where(np.arange(300) < 100, 1e-9, 1.0)
    whole = acceptance.fit(CLASSES, p, other, again=False, weights=weights)
    part = acceptance.fit(CLASSES, p[100:], truth[100:], again=False)
    assert isinstance(whole, Temperature) and isinstance(part, Temperature)
    assert whole.t == pytest.approx(part.t, rel=1e-4)


def test_a_choice_of_very_many_has_no_biases() -> None:
    random = np.random.default_rng(0)
    p = problems.softmax(random.normal(scale=3, size=(60, 120)) * 3)
    truth = np.zeros(60, dtype=np.int64)
    found = acceptance.fit(CLASSES, p, truth, again=False)
    assert found is not None and "bias" not in found.parameters


def test_held_out_halves_are_calibrated_by_each_other() -> None:
    p, truth = overconfident(400)
    keep = (p > 1e-3).all(axis=1) & (np.abs(p[:, 0] - p[:, 1]) > 0.01)
    p, truth = p[keep], truth[keep]
    found = acceptance.held_out(CLASSES, p, truth)
    # A row's temperature shows in its log-odds; each half has that of the other half's fit.
    odds = np.log(p[:, 0] / p[:, 1]) / np.log(found[:, 0] / found[:, 1])
    one, other = odds.min(), odds.max()
    halves = [np.isclose(odds, one, atol=1e-5), np.isclose(odds, other, atol=1e-5)]
    assert [half.sum() for half in halves] == [pytest.approx(len(p) / 2, abs=1)] * 2
    for half, t in zip(halves, (one, other), strict=True):
        assert CLASSES.fit(p[~half], truth[~half]).parameters["t"] == pytest.approx(t, abs=1e-5)


@pytest.mark.parametrize("period", [3, 5, 10, 7])
def test_labels_that_come_in_a_rhythm_are_judged_as_any(period: int) -> None:
    n = 300
    wrong = np.arange(n) % period == 0
    p = np.tile([0.99, 0.01], (n, 1))
    found = acceptance.fit(CLASSES, p, wrong.astype(np.int64), again=False)
    assert found is not None
    assert found.apply(p)[0, 0] == pytest.approx(1 - wrong.mean(), abs=0.02)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_a_few_labels_are_held_out_too(n: int) -> None:
    p, truth = overconfident(10)
    assert acceptance.held_out(CLASSES, p[:n], truth[:n]).shape == (n, 3)

from __future__ import annotations

import numpy as np
import pytest

from svc.stats import acceptance
from svc.stats.calibrators import Floats, Ints, Platt, Temperature
from svc.stats.tasks import TASKS
from tests.stats import problems

CLASSES, YES_NO = TASKS["classes"], TASKS["yes_no"]


def overconfident(n: int, seed: int = 1) -> tuple[Floats, Ints]:
    """Three classes; the probabilities are those of a temperature of a third."""
    random = np.random.default_rng(seed)
    logits = random.normal(scale=1.5, size=(n, 3))
    truth = np.array([random.choice(3, p=row) for row in problems.softmax(logits)])
    return problems.softmax(logits * 3), truth


def test_a_clear_gain_is_taken_up() -> None:
    found = acceptance.fit(CLASSES, *overconfident(300), again=False)
    assert isinstance(found, Temperature)
    assert found.t == pytest.approx(3, abs=0.5)


def test_true_probabilities_are_hardly_ever_changed() -> None:
    taken = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        p = random.dirichlet(np.ones(4), 100)
        truth = np.array([random.choice(4, p=row) for row in p])
        taken += acceptance.fit(CLASSES, p, truth, again=False) is not None
    assert taken < 20


@pytest.mark.parametrize("sure", [0.9, 0.95, 0.97, 0.99])
def test_a_run_of_right_answers_does_not_make_sure_ones_surer(sure: float) -> None:
    taken = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        top = sure + random.uniform(-0.01, 0.009, 30)
        p = np.stack([top, (1 - top) * 0.6, (1 - top) * 0.4], 1)
        truth = np.array([random.choice(3, p=row / row.sum()) for row in p])
        taken += acceptance.fit(CLASSES, p, truth, again=False) is not None
    assert taken <= 5


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
    assert task.calibrated(both, p)[:40].min() == pytest.approx(0.6, abs=0.02)


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
    assert found.apply(p)[0, 0] == pytest.approx(1 - wrong.mean(), abs=0.01)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_a_few_labels_are_held_out_too(n: int) -> None:
    p, truth = overconfident(10)
    assert acceptance.held_out(CLASSES, p[:n], truth[:n]).shape == (n, 3)

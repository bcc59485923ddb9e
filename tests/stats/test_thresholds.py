from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from svc.stats import thresholds
from svc.stats.calibrators import Floats, Ints
from svc.stats.tasks import SHOWN, TASKS


def clopper_pearson(count: int, right: int) -> float:
    """The one-sided 95% lower bound of a share."""
    return 0.0 if right == 0 else float(beta.ppf(0.05, right, count - right + 1))


def drawn(random: np.random.Generator, n: int) -> tuple[Floats, Ints]:
    """Confidences that promise more than they hold: the accuracy is their square."""
    confidence = random.uniform(0.5, 1.0, n)
    return confidence, (random.random(n) < confidence**2).astype(np.int64)


@pytest.mark.parametrize("target", thresholds.TARGETS)
@pytest.mark.parametrize("seed", range(20))
def test_a_threshold_passes_exactly_where_clopper_and_pearsons_bound_does(
    seed: int, target: float
) -> None:
    random = np.random.default_rng(seed)
    confidence = np.round(random.random(600), 2)
    correct = (random.random(600) < np.minimum(1, confidence + 0.35)).astype(np.int64)
    expected = None
    for step in range(100, -1, -1):
        reached = confidence >= step / 100
        if reached.sum() < max(thresholds.fewest(target), 60):
            continue
        if clopper_pearson(int(reached.sum()), int(correct[reached].sum())) < target:
            break
        expected = step / 100
    assert thresholds.lowest(target, confidence, correct) == expected


@pytest.mark.parametrize(("target", "fewest"), [(0.9, 29), (0.95, 59), (0.99, 299)])
def test_so_many_right_answers_are_just_enough(target: float, fewest: int) -> None:
    assert thresholds.fewest(target) == fewest
    right = np.ones(fewest, dtype=np.int64)
    assert thresholds.lowest(target, np.full(fewest, 0.8), right) == 0.0
    assert thresholds.lowest(target, np.full(fewest - 1, 0.8), right[:-1]) is None


def test_a_promise_is_broken_at_most_as_often_as_it_says() -> None:
    """A thousand draws: 5% may be broken, and 2.2 standard deviations of that by chance."""
    random = np.random.default_rng(5)
    fresh, right = drawn(random, 400_000)
    broken = promised = 0
    for _ in range(1_000):
        found = thresholds.lowest(0.9, *drawn(random, 800))
        if found is not None:
            promised += 1
            broken += right[fresh >= found].mean() < 0.9
    assert promised > 300
    assert broken <= 65


def test_a_promise_holds_for_the_calibrator_in_effect() -> None:
    """As a report makes it: confidences under the calibrator that was fitted on the same labels.

    Clustered confidences, as models put them into words, are where other fits would mislead.
    """
    task, sure = TASKS["classes"], np.array([0.99, 0.9])
    accuracy, share, draws = np.array([0.97, 0.78]), np.array([0.6, 0.4]), 200
    random, broken, promised = np.random.default_rng(7), 0, 0
    for _ in range(draws):
        kind = random.choice(2, 600, p=share)
        p = np.stack([sure[kind], 1 - sure[kind]], 1)
        truth = (random.random(600) >= accuracy[kind]).astype(np.int64)
        fitted = task.fit(p, truth)
        found = thresholds.lowest(
            0.9, np.round(task.confidence(fitted.apply(p)), SHOWN), task.correct(p, truth)
        )
        live = np.round(fitted.apply(np.stack([sure, 1 - sure], 1)).max(axis=1), SHOWN)
        if found is not None and (passed := live >= found).any():
            promised += 1
            broken += (accuracy * share)[passed].sum() / share[passed].sum() < 0.9
    assert promised > draws / 2
    assert broken <= draws * thresholds.ERROR + 2.6 * (draws * thresholds.ERROR) ** 0.5


def test_one_wrong_answer_among_the_surest_does_not_end_the_walk() -> None:
    confidence = np.linspace(0.99, 0.6, 1_000)
    correct = np.ones(1_000, dtype=np.int64)
    correct[5::40] = 0  # 97.5% are right, the sixth surest is not
    assert thresholds.lowest(0.9, confidence, correct) == 0.0


def test_labels_that_do_not_suffice_are_said_to() -> None:
    rows = thresholds.report(np.full(40, 0.9), np.ones(40, dtype=np.int64))
    assert rows[0] == {"target": 0.9, "min_confidence": 0.0, "automated": 1.0, "reason": None}
    assert rows[1]["min_confidence"] is None
    assert rows[1]["reason"] == "needs at least 59 labels, there are 40"
    wrong = thresholds.report(np.full(40, 0.9), np.arange(40) % 2)
    assert wrong[0]["reason"] == "the surest answers are not right often enough"


def test_confidences_are_compared_as_callers_see_them() -> None:
    confidence = np.full(40, 0.7999999)
    assert thresholds.lowest(0.9, np.round(confidence, 6), np.ones(40, dtype=np.int64)) == 0.0
    rows = thresholds.report(
        np.append(confidence, np.full(40, 0.3)), np.append(np.ones(40), np.zeros(40)).astype(int)
    )
    assert rows[0]["min_confidence"] == 0.31
    assert rows[0]["automated"] == 0.5

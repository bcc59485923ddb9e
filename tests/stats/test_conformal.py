"""Prediction sets against MAPIE's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin

from svc.stats.calibrators import Floats
from svc.stats.conformal import prediction_set, quantile
from svc.stats.tasks import TASKS
from tests.stats import problems


class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose input is its probabilities."""

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.classes_ = np.arange(classes)
        self.is_fitted_ = True

    def fit(self, x: Floats, y: object) -> Given:
        return self

    def predict_proba(self, x: Floats) -> Floats:
        return x

    def predict(self, x: Floats) -> object:
        return x.argmax(axis=1)


@pytest.mark.filterwarnings("ignore:WARNING. your conformalization dataset has less labels")
@pytest.mark.parametrize("seed", problems.SEEDS)
def test_the_sets_are_mapies_but_never_empty(seed: int) -> None:
    p, truth = problems.classes(seed)
    half = len(truth) // 2
    coverage = float(np.random.default_rng(seed).choice([0.5, 0.7, 0.8, 0.9]))
    judge = SplitConformalClassifier(Given(p.shape[1]), coverage, "lac", prefit=True)
    judge.conformalize(p[:half], truth[:half])
    _, expected = judge.predict_set(p[half:])
    scores = sorted(TASKS["classes"].nonconformity(p[:half], truth[:half]))
    limit = quantile(scores, coverage)
    for row, members in zip(p[half:], expected[:, :, 0], strict=True):
        wanted = np.flatnonzero(members).tolist() or [int(row.argmax())]
        assert prediction_set(row.tolist(), limit) == wanted


@pytest.mark.parametrize(
    ("n", "coverage", "rank"),
    [(30, 0.9, 28), (29, 0.9, 27), (9, 0.9, 9), (8, 0.9, None), (99, 0.07, 7), (30, 0.5, 16)],
)
def test_the_quantile_is_the_rank_that_keeps_the_promise(
    n: int, coverage: float, rank: int | None
) -> None:
    found = quantile([float(score) for score in range(1, n + 1)], coverage)
    assert found == (math.inf if rank is None else rank)


def test_a_set_is_never_empty_and_without_a_limit_it_is_everything() -> None:
    assert prediction_set([0.2, 0.5, 0.3], 0.1) == [1]
    assert prediction_set([0.2, 0.5, 0.3], math.inf) == [0, 1, 2]
    assert prediction_set([0.2, 0.5, 0.3], 0.7) == [1, 2]


def test_sets_cover_the_truth_as_often_as_they_promise() -> None:
    covered = total = 0
    for seed in range(60):
        p, truth = problems.classes(seed)
        half = len(truth) // 2
        limit = quantile(sorted(TASKS["classes"].nonconformity(p[:half], truth[:half])), 0.9)
        sets = [prediction_set(row.tolist(), limit) for row in p[half:]]
        covered += sum(label in held for label, held in zip(truth[half:], sets, strict=True))
        total += len(sets)
    assert covered / total > 0.89


def test_a_coverage_of_next_to_nothing_takes_the_smallest_score() -> None:
    assert quantile([0.1, 0.2, 0.3], 1e-12) == 0.1

"""Prediction sets against MAPIE's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin

from svc.stats.calibrators import Floats, Ints
from svc.stats.conformal import (
    OptionCoverage,
    class_limits,
    coverage_by_option,
    held_without_itself,
    log_scores,
    options_within,
    weighted_quantile,
)
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


@pytest.mark.parametrize(
    ("n", "coverage", "rank"),
    [(30, 0.9, 28), (29, 0.9, 27), (9, 0.9, 9), (8, 0.9, None), (99, 0.07, 7), (30, 0.5, 16)],
)
def test_the_quantile_is_the_rank_that_keeps_the_promise(
    n: int, coverage: float, rank: int | None
) -> None:
    found = weighted_quantile(np.arange(1.0, n + 1), coverage)
    assert found == (math.inf if rank is None else rank)


def test_a_set_is_never_empty_and_without_a_limit_it_is_everything() -> None:
    assert options_within([0.2, 0.5, 0.3], [0.1] * 3) == [1]
    assert options_within([0.2, 0.5, 0.3], [math.inf] * 3) == [0, 1, 2]
    assert options_within([0.2, 0.5, 0.3], [-math.log(0.3)] * 3) == [1, 2]


def test_sets_cover_the_truth_as_often_as_they_promise() -> None:
    covered = total = 0
    for seed in range(60):
        p, truth = problems.classes(seed)
        half = len(truth) // 2
        limit = weighted_quantile(scores_of(p[:half], truth[:half]), 0.9)
        sets = [options_within(row.tolist(), [limit] * p.shape[1]) for row in p[half:]]
        covered += sum(label in held for label, held in zip(truth[half:], sets, strict=True))
        total += len(sets)
    assert covered / total > 0.89


def test_a_coverage_of_next_to_nothing_takes_the_smallest_score() -> None:
    assert weighted_quantile(np.array([0.1, 0.2, 0.3]), 1e-12) == 0.1


def softened(p: Floats) -> Floats:
    """Without probabilities so small that 1 - p has no digits for them."""
    soft: Floats = (p + 1e-9) / (1 + 1e-9 * p.shape[1])
    return soft


@pytest.mark.filterwarnings("ignore:WARNING. your conformalization dataset has less labels")
@pytest.mark.parametrize("seed", problems.SEEDS)
def test_the_sets_of_scores_in_logs_are_mapies_but_never_empty(seed: int) -> None:
    p, truth = problems.classes(seed)
    p, half = softened(p), len(truth) // 2
    coverage = float(np.random.default_rng(seed).choice([0.5, 0.7, 0.8, 0.9]))
    judge = SplitConformalClassifier(Given(p.shape[1]), coverage, "lac", prefit=True)
    judge.conformalize(p[:half], truth[:half])
    _, expected = judge.predict_set(p[half:])
    limit = weighted_quantile(scores_of(p[:half], truth[:half]), coverage)
    for row, members in zip(p[half:], expected[:, :, 0], strict=True):
        wanted = np.flatnonzero(members).tolist() or [int(row.argmax())]
        assert options_within(row.tolist(), [limit] * p.shape[1]) == wanted


def scores_of(p: Floats, truth: Ints) -> Floats:
    return log_scores(TASKS["classes"].true_probabilities(p, truth))


def test_an_overconfident_model_has_small_sets_by_logs() -> None:
    """Where a tenth of the truths lie below the last digit of 1 - p, all options tie there."""
    random = np.random.default_rng(8)
    logits = random.normal(size=(1_200, 10)) * 1.5
    truth = np.array([random.choice(10, p=row) for row in problems.softmax(logits)])
    p = problems.softmax(logits * 30)
    true = TASKS["classes"].true_probabilities(p, truth)
    old = weighted_quantile(1 - true[:600], 0.9)
    new = weighted_quantile(log_scores(true[:600]), 0.9)
    before = [np.flatnonzero(1 - row <= old) for row in p[600:]]
    after = [options_within(row.tolist(), [new] * 10) for row in p[600:]]
    assert np.mean([len(held) for held in before]) > 9
    assert np.mean([len(held) for held in after]) < 7
    covered = np.mean([label in held for label, held in zip(truth[600:], after, strict=True)])
    assert 0.86 <= covered <= 0.94


@pytest.mark.parametrize("seed", range(20))
def test_equal_weights_are_the_rank(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores, coverage = random.normal(size=int(random.integers(5, 60))), random.uniform(0.1, 0.99)
    rank = max(1, math.ceil((len(scores) + 1) * coverage - 1e-9))
    expected = sorted(scores)[rank - 1] if rank <= len(scores) else math.inf
    for weights in (None, np.full(len(scores), 0.3)):
        assert weighted_quantile(scores, coverage, weights) == expected


def test_weights_keep_the_coverage_of_labels_that_were_picked() -> None:
    """The doubtful answers were labelled eight times as often."""
    covered: dict[bool, list[bool]] = {True: [], False: []}
    for seed in range(200):
        random = np.random.default_rng(seed)
        scores = random.exponential(size=1_001)
        chance = np.where(scores > 1.2, 0.4, 0.05)
        chosen = random.random(1_000) < chance[:1_000]
        for weighted in (True, False):
            weights = 1 / chance[:1_000][chosen] if weighted else None
            limit = weighted_quantile(scores[:1_000][chosen], 0.8, weights, 1 / chance[-1])
            covered[weighted].append(bool(scores[-1] <= limit))
    assert 0.74 <= np.mean(covered[True]) <= 0.9
    assert np.mean(covered[False]) > 0.92


def hard_option(random: np.random.Generator, n: int) -> tuple[Floats, Ints]:
    """Three options, of which the last, a fifth of all, is mostly taken for the first."""
    truth = random.choice(3, n, p=[0.5, 0.3, 0.2])
    logits = random.normal(size=(n, 3)) + 3 * np.eye(3)[np.where(truth == 2, 0, truth)]
    return problems.softmax(logits), truth


def test_limits_by_option_cover_each_option() -> None:
    held: dict[str, list[bool]] = {"shared": [], "own": []}
    for seed in range(40):
        p, truth = hard_option(np.random.default_rng(seed), 900)
        scores = scores_of(p[:600], truth[:600])
        own = [one.limit for one in class_limits(scores, truth[:600], 3, 0.9)]
        shared = [weighted_quantile(scores, 0.9)] * 3
        rare = [row.tolist() for row, true in zip(p[600:], truth[600:], strict=True) if true == 2]
        held["own"] += [2 in options_within(row, own) for row in rare]
        held["shared"] += [2 in options_within(row, shared) for row in rare]
    assert 0.885 <= np.mean(held["own"]) <= 0.925
    assert np.mean(held["shared"]) < 0.75


def test_an_option_with_few_labels_has_the_limit_of_all() -> None:
    random = np.random.default_rng(1)
    scores = random.exponential(size=100)
    truth = np.repeat([0, 1, 2], [60, 32, 8])
    limits = class_limits(scores, truth, 4, 0.9)
    assert [one.guaranteed for one in limits] == [True, True, False, False]
    assert [one.labels for one in limits] == [60, 32, 8, 0]
    shared = weighted_quantile(scores, 0.9)
    assert [one.limit for one in limits[2:]] == [shared, shared]
    assert class_limits(scores, np.repeat([0, 1], [91, 9]), 2, 0.9)[1].guaranteed


@pytest.mark.parametrize("weighted", [False, True])
def test_coverage_by_option_leaves_each_label_out(weighted: bool) -> None:
    random = np.random.default_rng(2)
    scores, truth = np.round(random.exponential(size=120), 1), random.integers(0, 3, 120)
    weights = random.uniform(1, 5, 120) if weighted else np.ones(120)
    held = np.array(
        [
            scores[one]
            <= weighted_quantile(
                np.delete(scores, one), 0.8, np.delete(weights, one), float(weights[one])
            )
            for one in range(120)
        ]
    )
    found = coverage_by_option(held_without_itself(scores, 0.8, weights), truth, 4, weights)
    for option in range(3):
        own = truth == option
        expected = np.average(held[own], weights=weights[own])
        assert found[option].covered is not None
        assert found[option].covered.estimate == pytest.approx(expected)
        assert found[option].labels == own.sum()
    assert found[3] == OptionCoverage(0, None)


def test_the_truth_given_nothing_lets_every_option_in() -> None:
    scores = log_scores(np.array([0.5, 0.0, 0.2]))
    assert scores[1] == math.inf
    assert options_within([1.0, 0.0], [math.inf, math.inf]) == [0, 1]
    assert options_within([1.0, 0.0], [3.0, 3.0]) == [0]
    assert options_within([0.5, 0.5], [0.1, 0.1]) == [0]

"""Opinion pools: their fits against another optimiser, and what they make of planted councils."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import minimize

from svc.stats import opinions
from svc.stats.calibrators import Floats, Ints
from svc.stats.opinions import ARITHMETIC, GEOMETRIC, OpinionPool, equal, fit
from tests.stats.problems import sigmoid

SEEDS = range(12)
NAN = float("nan")


def softmax(z: Floats) -> Floats:
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def council(seed: int, n: int, strengths: list[float], k: int = 4) -> tuple[Floats, Ints]:
    """Members who know as much as their strength says, each independent of the others."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, k, n)
    power = np.array(strengths)[:, None]
    noise = random.normal(size=(n, len(strengths), k))
    return softmax(power**2 * np.eye(k)[truth][:, None] + power * noise), truth


def strong_and_weak(seed: int, n: int) -> tuple[Floats, Ints]:
    """A strong member, and two weak ones that are far too sure."""
    p, truth = council(seed, n, [2.0, 0.4, 0.4])
    p[:, 1:] = softmax(12 * np.log(p[:, 1:]))
    return p, truth


def loss(p: Floats, truth: Ints) -> float:
    if p.shape[1] == 1:
        p = np.concatenate([1 - p, p], axis=1)
    return float(-np.log(np.maximum(p[np.arange(len(truth)), truth], 1e-6)).mean())


def served(judged: opinions.Judged, p: Floats) -> Floats:
    return (judged.pool or equal(p.shape[1])).apply(p)


@pytest.mark.parametrize("seed", SEEDS)
def test_geometric_weights_are_the_optimum_that_another_optimiser_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    strengths = list(random.uniform(0, 2, int(random.integers(2, 6))))
    p, truth = council(seed, int(random.integers(30, 400)), strengths, int(random.integers(2, 12)))
    counts = random.uniform(0.2, 2, len(truth))
    found = np.array(opinions.fit_geometric(p, truth, counts).weights)
    logs, members = np.log(np.maximum(p, 1e-6)), len(strengths)

    def penalised(w: Floats) -> float:
        z = np.einsum("m,nmk->nk", w, logs)
        nats = counts @ -np.log(softmax(z)[np.arange(len(truth)), truth])
        spread = ((w - w.mean()) ** 2).sum() / opinions.SPREAD_SD**2
        return float(nats + spread / 2 + (w.sum() - 1) ** 2 / opinions.SUM_SD**2 / 2)

    start = np.full(members, 1 / members)
    judge = minimize(penalised, start, bounds=[(0, None)] * members, options={"ftol": 1e-13})
    assert penalised(found) <= judge.fun + 1e-6
    assert found == pytest.approx(judge.x, abs=2e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_arithmetic_weights_are_the_optimum_that_another_optimiser_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    members = int(random.integers(2, 6))
    p, truth = council(seed, 200, list(random.uniform(0, 2, members)))
    found = np.array(opinions.fit_arithmetic(p, truth, np.ones(200)).weights)
    true = p[np.arange(200), :, truth]

    def penalised(w: Floats) -> float:
        prior = opinions.PSEUDO_LABELS / members * np.log(w).sum()
        return float(-np.log(true @ w).sum() - prior)

    judge = minimize(
        penalised,
        np.full(members, 1 / members),
        bounds=[(1e-9, 1)] * members,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-13},
    )
    assert found.sum() == pytest.approx(1)
    assert penalised(found) <= judge.fun + 1e-3
    assert found == pytest.approx(judge.x, abs=5e-3)


@pytest.mark.parametrize("kind", [ARITHMETIC, GEOMETRIC])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_row_is_pooled_alike_alone_and_among_many(kind: str, k: int) -> None:
    random = np.random.default_rng(k)
    p = random.dirichlet(np.ones(k), (50, 3)) if k > 1 else random.random((50, 3, 1))
    p[::3, 0] = NAN
    p[::7, 1:] = NAN
    p[::21, 0] = random.dirichlet(np.ones(k), len(p[::21])) if k > 1 else 0.3
    pool = OpinionPool(kind, (0.0, 0.7, 0.9))
    together = pool.apply(p)
    for row, expected in zip(p, together, strict=True):
        said = [None if np.isnan(one[0]) else list(one) for one in row]
        assert pool.one(said) == pytest.approx(expected)
        assert k == 1 or sum(expected) == pytest.approx(1)


def test_equal_arithmetic_weights_are_the_mean() -> None:
    rows = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    assert equal(2).one(rows) == pytest.approx((0.3, 0.2, 0.5))
    assert equal(2).one([[0.9], [0.2]]) == pytest.approx((0.55,))
    assert equal(3).one([[0.9], None, [0.2]]) == pytest.approx((0.55,))


def test_a_geometric_pool_of_yes_is_a_weighted_sum_of_log_odds() -> None:
    odds = np.array([1.5, -0.4])
    members = [[float(p)] for p in sigmoid(odds)]
    expected = sigmoid(np.array([0.8 * 1.5 + 0.6 * -0.4]))
    assert OpinionPool(GEOMETRIC, (0.8, 0.6)).one(members) == pytest.approx(tuple(expected))


def test_who_is_missing_leaves_its_weight_to_the_others() -> None:
    pool = OpinionPool(ARITHMETIC, (0.5, 0.3, 0.2))
    assert pool.shares([True, True, False]) == pytest.approx((0.625, 0.375, 0.0))
    assert OpinionPool(ARITHMETIC, (1.0, 0.0, 0.0)).shares([False, True, True]) == (0.0, 0.5, 0.5)
    sharp = OpinionPool(GEOMETRIC, (1.5, 1.5))
    assert sharp.one([[0.7], None]) == pytest.approx(sharp.one([[0.7], [0.7]]))


def test_certain_and_impossible_answers_stay_finite() -> None:
    pool = OpinionPool(GEOMETRIC, (1.0, 1.0))
    assert pool.one([[1.0, 0.0], [0.0, 1.0]]) == pytest.approx((0.5, 0.5))
    p = np.array([[[1.0, 0.0], [1.0, 0.0]]] * 60)
    truth = np.arange(60) % 2
    judged = fit(p, truth)
    assert np.isfinite([judged.equal, judged.pooled]).all()


def test_parameters_survive_json() -> None:
    pool = OpinionPool(GEOMETRIC, (0.1, 1.7))
    assert opinions.from_parameters(json.loads(json.dumps(pool.parameters))) == pool


def test_one_strong_member_is_followed() -> None:
    p, truth = strong_and_weak(1, 2_100)
    judged = fit(p[:100], truth[:100])
    assert judged.pool is not None and max(judged.pool.weights) == judged.pool.weights[0]
    fresh, true = p[100:], truth[100:]
    alone = (fresh[:, 0].argmax(axis=1) == true).mean()
    mean = (equal(3).apply(fresh).argmax(axis=1) == true).mean()
    pooled = (judged.pool.apply(fresh).argmax(axis=1) == true).mean()
    assert pooled > alone - 0.01
    assert mean < alone - 0.05


def test_independent_members_are_surer_together_than_each() -> None:
    p, truth = council(2, 2_600, [1.2] * 5)
    judged = fit(p[:600], truth[:600])
    assert judged.pool is not None and judged.pool.kind == GEOMETRIC
    assert sum(judged.pool.weights) > 2
    assert loss(judged.pool.apply(p[600:]), truth[600:]) < loss(
        equal(5).apply(p[600:]), truth[600:]
    )


def test_copies_of_one_member_are_left_as_they_are() -> None:
    for seed in range(10):
        p, truth = council(seed, 200, [1.5])
        assert fit(np.repeat(p, 4, axis=1), truth).pool is None


def test_what_is_taken_up_is_hardly_ever_worse_than_equal_weights() -> None:
    costs = []
    for seed in range(40):
        p, truth = council(seed, 1_060, [0.8] * 4, k=2)
        judged = fit(p[:60], truth[:60])
        costs.append(
            loss(served(judged, p[60:]), truth[60:]) - loss(equal(4).apply(p[60:]), truth[60:])
        )
    assert np.mean(costs) < 0.005
    assert np.mean(np.array(costs) > 0.05) <= 0.05


def test_one_of_two_yes_no_members_who_says_the_contrary_counts_nothing() -> None:
    random = np.random.default_rng(3)
    logits = random.normal(scale=2, size=400)
    truth = (random.random(400) < sigmoid(logits)).astype(np.int64)
    p = np.stack([sigmoid(logits), sigmoid(-logits)], axis=1)[:, :, None]
    judged = fit(p, truth)
    assert judged.pool is not None
    assert judged.pool.shares([True, True])[0] > 0.9


def test_a_member_that_often_fails_is_weighed_by_what_it_said() -> None:
    p, truth = strong_and_weak(4, 600)
    p[np.arange(600) % 3 > 0, 0] = NAN
    judged = fit(p, truth)
    assert judged.pool is not None
    assert judged.pool.shares([True] * 3)[0] > 0.5


def test_labels_of_no_weight_have_no_say() -> None:
    first, truth = council(5, 200, [2.0, 0.2])
    turned = np.concatenate([first, first[:, ::-1]])
    weights = np.repeat([1.0, 0.0], 200)
    judged = fit(turned, np.concatenate([truth, truth]), weights)
    assert judged.pool is not None and judged.pool.weights[0] > 3 * judged.pool.weights[1]


def test_a_pool_in_effect_stays_while_it_is_no_worse() -> None:
    taken = [(fit(*problem).pool, fit(*problem, again=True).pool) for problem in _undecided()]
    assert sum(first is not None for first, _ in taken) < sum(kept is not None for _, kept in taken)


def _undecided() -> list[tuple[Floats, Ints]]:
    return [council(seed, 60, [1.0, 0.8, 0.7]) for seed in range(10)]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_few_labels_teach_nothing(n: int) -> None:
    p, truth = council(0, n, [2.0, 0.1])
    assert fit(p, truth) == opinions.Judged(None, n)

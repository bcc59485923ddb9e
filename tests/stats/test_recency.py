from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.stats import kstest

from benchmarks.simulations import promises
from svc.stats import recency
from svc.stats.calibrators import Floats
from svc.stats.recency import ChangeTest


def changed(seed: int, before: float, after: float, fall: float = 0.0) -> Floats:
    """2,000 scores of a model, and 200 of another."""
    random = np.random.default_rng(seed)
    models = promises.model(random, 2_000, before, 0.0), promises.model(random, 200, after, fall)
    return np.concatenate([promises.score(*labelled) for labelled in models])


@pytest.mark.parametrize("scores", [np.arange(50) % 2, np.zeros(50)])
def test_ranks_of_ties_are_uniform_too(scores: Floats) -> None:
    ranks = recency.counted(np.arange(1_000), np.tile(scores, 20)).ranks()
    assert ranks.min() >= 0 and ranks.max() < 1
    assert kstest(ranks, "uniform").pvalue > 0.001


def test_a_rank_is_that_among_the_scores_until_then() -> None:
    scores = np.random.default_rng(1).random(200)
    ranks = recency.counted(np.arange(200), scores).ranks()
    for place in (0, 1, 77, 199):
        smaller = (scores[:place] < scores[place]).sum()
        assert smaller <= ranks[place] * (place + 1) <= smaller + 1


def test_a_model_that_became_too_sure_is_noticed_and_the_place_found() -> None:
    for seed in range(10):
        found = recency.latest(changed(seed, 1.0, 2.5))
        assert found is not None and abs(found - 2_000) < 60


def test_a_model_that_became_calibrated_is_noticed() -> None:
    for seed in range(10):
        found = recency.latest(changed(seed, 2.5, 1.0))
        assert found is not None and abs(found - 2_000) < 60


def test_a_fall_of_ten_points_is_mostly_noticed_within_200_labels() -> None:
    places = [recency.latest(changed(seed, 1.0, 1.0, 0.1)) for seed in range(20)]
    assert sum(place is not None and place > 1_500 for place in places) >= 12


def test_where_nothing_changes_there_is_seldom_an_alarm() -> None:
    """5% may have one within 5,000 labels, and 2.6 standard deviations of 40 by chance."""
    random = np.random.default_rng(3)
    assert sum(bool(recency.changes(random.random(5_000))) for _ in range(40)) <= 5


def test_two_changes_are_both_found() -> None:
    random = np.random.default_rng(4)
    scores = np.concatenate([random.normal(mean, 1, 400) for mean in (0, 3, -1)])
    found = recency.changes(scores)
    assert len(found) == 2
    assert np.abs(np.subtract(found, (400, 800))).max() < 20


def test_old_labels_together_weigh_little() -> None:
    assert 800 * recency.weight_of(800) == pytest.approx(recency.OLD_LABELS)
    assert recency.weight_of(4) == 1


def test_ranks_that_are_kept_are_those_of_all_labels_counted_anew() -> None:
    random = np.random.default_rng(6)
    test, ids, scores = ChangeTest(), np.zeros(0, dtype=np.int64), np.zeros(0)
    for number in range(300):
        left = random.random(len(ids)) > 0.01
        new = random.integers(0, 10_000, random.integers(0, 9))
        ids = np.concatenate([ids[left], new])
        # Many are equal, and some change.
        scores = np.concatenate([scores[left], random.integers(0, 5, len(new)) + (number > 150)])
        if number % 5 == 0 and len(ids):
            scores[random.integers(len(ids))] += 1
        order = np.argsort(ids, kind="stable")
        ids, scores = ids[order], scores[order]
        assert test.latest(ids, scores) == ChangeTest().latest(ids, scores)
    assert len(ids) > 300


def test_no_labels_have_no_change() -> None:
    assert recency.changes(np.empty(0)) == []
    assert recency.latest(np.zeros(1)) is None


def test_5000_labels_take_little_time() -> None:
    """About 12 ms on a machine that does nothing else."""
    scores = np.random.default_rng(5).random(5_000)
    started = time.process_time()
    recency.changes(scores)
    assert time.process_time() - started < 0.1


def test_scores_that_change_without_end_are_told_as_changes_a_handful_of_labels_apart() -> None:
    rising = np.arange(3_000.0)
    found = recency.changes(rising)
    assert len(found) < 3_000 / 10 and found == sorted(set(found))
    # The last one that can be noticed is not long ago.
    assert found[-1] > 2_950
    kept = recency.ChangeTest()
    for count in (2_990, 2_999, 3_000):
        ids = np.arange(count)
        assert kept.latest(ids, rising[:count]) == recency.latest(rising[:count])


def test_of_several_labels_of_one_decision_one_counts() -> None:
    random = np.random.default_rng(1)
    decisions = np.repeat(np.arange(60), 64)
    # Of the same answers, so that only what is drawn for ties can tell them apart.
    scores = np.repeat(random.integers(0, 2, 60).astype(float), 64)
    times = decisions * recency.DAY_MS
    given = recency.Given(decisions, times, times)
    one = recency.Given(decisions[::64], times[::64], times[::64])
    groups = np.array(["m"] * len(decisions))
    test = recency.GroupedChangeTest()
    assert test.latest(given, groups, scores) == {}
    changed = np.where(decisions < 30, 0.0, scores + 1)
    found = recency.GroupedChangeTest().latest(given, groups, changed)["m"]
    of_one = recency.GroupedChangeTest().latest(one, groups[::64], changed[::64])["m"]
    assert set(decisions[found.since]) == set(decisions[::64][of_one.since])
    assert len(found.since) == 64 * len(of_one.since)


def test_among_too_few_labels_no_bet_can_notice_a_change() -> None:
    most = max(bet.times for bet in recency.ANY)
    reached = sum(most**n for n in range(1, recency.FEWEST))
    assert reached < recency.HORIZON / recency.FALSE

"""Errors that know their noise: against simulations and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from svc.stats import scores
from svc.stats.calibration_errors import BINS, bins_of, calibration_error
from svc.stats.calibrators import Floats, Ints
from svc.stats.tasks import TASKS
from tests.stats import problems


def labelled(n: int, seed: int, slope: float = 1.0) -> tuple[Floats, Ints, Floats]:
    """Confidences, what was right, and the chance of it: `slope` of the confidence beyond 1/2."""
    random = np.random.default_rng(seed)
    confidence = 0.5 + 0.5 * random.beta(4, 1, n)
    chance = 0.5 + slope * (confidence - 0.5)
    return confidence, (random.random(n) < chance).astype(np.int64), chance


def true_error(confidence: Floats, chance: Floats) -> float:
    gaps = np.bincount(bins_of(confidence), weights=chance - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidence))


@pytest.mark.parametrize("n", [30, 100, 1_000])
def test_a_calibrated_models_error_is_what_chance_makes_of_it(n: int) -> None:
    found = [calibration_error(*labelled(n, seed)[:2]) for seed in range(100)]
    observed, chance, corrected = (
        np.array(values)
        for values in zip(
            *((e.observed, e.by_chance, e.corrected.estimate) for e in found if e), strict=True
        )
    )
    assert observed.mean() == pytest.approx(chance.mean(), rel=0.12)
    assert corrected.mean() < 0.6 * observed.mean()
    assert (corrected == 0).mean() > 0.35
    assert np.mean([e.p < 0.05 for e in found if e]) <= 0.1
    assert np.mean([e.corrected.low > 0 for e in found if e]) <= 0.06


@pytest.mark.parametrize(("n", "slope"), [(30, 0.4), (300, 0.6), (2_000, 0.6), (300, 0.9)])
def test_the_interval_holds_the_true_error(n: int, slope: float) -> None:
    held = []
    for seed in range(100):
        confidence, correct, chance = labelled(n, seed + 500, slope)
        found = calibration_error(confidence, correct)
        assert found is not None
        held.append(found.corrected.low <= true_error(confidence, chance) <= found.corrected.high)
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("n", [30, 100, 600])
@pytest.mark.parametrize(
    ("said", "chance"),
    [(0.999999, 0.9), (0.9999, 0.97), (0.99, 0.9), (0.95, 0.95), (0.0001, 0.05)],
)
def test_the_interval_holds_the_true_error_of_extreme_probabilities(
    said: float, chance: float, n: int
) -> None:
    held = []
    for seed in range(100):
        happened = (np.random.default_rng(seed).random(n) < chance).astype(np.int64)
        found = calibration_error(np.full(n, said), happened)
        assert found is not None
        held.append(found.corrected.low <= abs(said - chance) <= found.corrected.high)
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("n", [100, 600, 3_000])
def test_bins_without_an_error_do_not_hide_or_add_to_that_of_one(n: int) -> None:
    held = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        sure, doubtful = random.random(n) < 0.8, random.uniform(0.5, 1, n)
        said, chance = np.where(sure, 0.9999, doubtful), np.where(sure, 0.95, doubtful)
        found = calibration_error(said, (random.random(n) < chance).astype(np.int64))
        assert found is not None
        held.append(found.corrected.low <= 0.8 * 0.0499 <= found.corrected.high)
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("n", [100, 600, 3_000])
@pytest.mark.parametrize(
    ("share", "said", "chance"),
    [(0.5, (0.7, 0.99), (1.0, 0.99)), (0.1, (0.55, 0.995), (0.05, 0.995))],
)
def test_the_interval_knows_that_bins_were_filled_by_chance(
    share: float, said: tuple[float, float], chance: tuple[float, float], n: int
) -> None:
    true = share * abs(said[0] - chance[0])
    held = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        which = (random.random(n) >= share).astype(np.int64)
        happened = (random.random(n) < np.array(chance)[which]).astype(np.int64)
        found = calibration_error(np.array(said)[which], happened)
        assert found is not None
        held.append(found.corrected.low <= true <= found.corrected.high)
    assert np.mean(held) >= 0.88


def test_no_error_among_few_labels_may_still_be_one() -> None:
    found = calibration_error(np.full(30, 0.999999), np.ones(30, dtype=np.int64))
    assert found is not None
    # About three in as many labels, as of any event that was not seen among them.
    assert found.corrected.estimate == found.corrected.low == 0
    assert 3 / 30 < found.corrected.high < 5 / 30


def test_an_estimate_is_not_larger_than_what_was_observed() -> None:
    found = calibration_error(np.full(5, 0.3), np.zeros(5, dtype=np.int64))
    assert found is not None
    assert found.corrected.low == 0 and found.corrected.estimate < 0.25
    assert found.corrected.high <= found.observed == pytest.approx(0.3)


def test_weights_undo_that_the_doubtful_were_labelled_more_often() -> None:
    estimates: dict[str, list[float]] = {"none": [], "weights": [], "all": []}
    for seed in range(30):
        confidence, correct, _ = labelled(4_000, seed, 0.6)
        chance = np.where(confidence < 0.8, 0.5, 0.05)
        chosen = np.random.default_rng(seed + 9).random(4_000) < chance
        p, truth = confidence[chosen, None], correct[chosen]
        task = TASKS["rightness"]
        estimates["none"].append(scores.uncertainty(task, p, truth)["ece"]["corrected"]["estimate"])
        found = scores.uncertainty(task, p, truth, 1 / chance[chosen])
        estimates["weights"].append(found["ece"]["corrected"]["estimate"])
        estimates["all"].append(true_error(confidence, 0.5 + 0.6 * (confidence - 0.5)))
    means = {name: np.mean(values) for name, values in estimates.items()}
    assert means["weights"] == pytest.approx(means["all"], abs=0.015)
    assert abs(means["none"] - means["all"]) > 0.02


@pytest.mark.parametrize("n", [30, 200])
def test_intervals_of_accuracy_and_brier_hold_the_truth(n: int) -> None:
    held = {"accuracy": 0, "brier": 0}
    for seed in range(200):
        random = np.random.default_rng(seed)
        p = random.dirichlet([0.3] * 3, n)
        truth = (random.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        found = scores.uncertainty(TASKS["classes"], p, truth)
        for name, true in (("accuracy", ACCURACY), ("brier", BRIER)):
            held[name] += found[name]["low"] <= true <= found[name]["high"]
    for name, times in held.items():
        assert 0.91 <= times / 200 <= 0.99, name


# Of answers that are drawn from the probabilities: by many of them.
_MANY = np.random.default_rng(0).dirichlet([0.3] * 3, 400_000)
ACCURACY = float(_MANY.max(axis=1).mean())
BRIER = float(1 - (_MANY**2).sum(axis=1).mean())


@pytest.mark.parametrize("seed", range(10))
def test_estimates_are_the_figures_of_the_summary(seed: int) -> None:
    p, truth = problems.classes(seed)
    plain, found = (
        scores.summary(TASKS["classes"], p, truth),
        scores.uncertainty(TASKS["classes"], p, truth),
    )
    for name in ("accuracy", "brier"):
        assert found[name]["estimate"] == pytest.approx(plain[name], abs=1e-6)
    assert found["ece"]["observed"] == pytest.approx(plain["ece"], abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.filterwarnings("ignore:.*ill-defined")
def test_confusion_precision_recall_and_f1_are_scikit_learns(seed: int) -> None:
    p, truth = problems.classes(seed)
    options, answers = list(range(p.shape[1])), p.argmax(axis=1)
    weights = np.random.default_rng(seed).uniform(1, 5, len(truth))
    judged = precision_recall_fscore_support(truth, answers, labels=options, sample_weight=weights)
    for option, row in enumerate(scores.by_option(p, p.argmax(axis=1), truth, weights)):
        for name, expected in zip(("precision", "recall"), judged, strict=False):
            if row[name] is not None:
                assert row[name]["estimate"] == pytest.approx(expected[option], abs=1e-6)
        if row["f1"] is not None:
            assert row["f1"] == pytest.approx(judged[2][option])
    counts = np.zeros((len(options), len(options)), dtype=np.int64)
    for cell in scores.confusion(p.argmax(axis=1), truth, p.shape[1]):
        counts[cell["true"], cell["answer"]] = cell["count"]
    assert (counts == confusion_matrix(truth, answers, labels=options)).all()


def test_an_option_never_answered_or_never_true_has_no_precision_or_recall() -> None:
    p = np.tile([0.7, 0.2, 0.1], (10, 1))
    first, second, third = scores.by_option(p, p.argmax(axis=1), np.repeat([0, 1], 5))
    assert (first["precision"]["estimate"], first["recall"]["estimate"]) == (0.5, 1.0)
    assert (second["precision"], second["recall"]["estimate"], second["f1"]) == (None, 0.0, 0.0)
    assert (third["precision"], third["recall"], third["f1"]) == (None, None, None)
    assert third["probability"] == pytest.approx(0.1)
    assert third["share"]["estimate"] == 0.0


def test_classwise_errors_show_the_option_that_is_off() -> None:
    random = np.random.default_rng(4)
    p = random.dirichlet(np.ones(3), 3_000)
    chance = p.copy()
    chance[:, 2] *= 0.4
    chance /= chance.sum(axis=1, keepdims=True)
    truth = (random.random((3_000, 1)) > chance.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    found = scores.by_option(p, p.argmax(axis=1), truth)
    assert found[2]["probability"] > found[2]["share"]["high"]
    assert found[2]["ece"]["p"] < 0.02
    assert found[2]["ece"]["corrected"]["low"] > 0.05


def test_without_labels_there_is_nothing_to_say() -> None:
    p, truth = np.zeros((0, 3)), np.zeros(0, dtype=np.int64)
    assert calibration_error(p[:, 0], truth) is None
    assert scores.uncertainty(TASKS["classes"], p, truth) == {}
    assert scores.by_option(p, p.argmax(axis=1), truth) == []
    assert scores.confusion(p.argmax(axis=1), truth, p.shape[1]) == []


def test_of_many_options_the_calibration_of_the_most_frequent_is_told() -> None:
    options = scores.MOST_OPTIONS + 20
    truth = np.repeat(np.arange(options), 2)[:-1]
    p = np.full((len(truth), options), 0.5 / (options - 1))
    p[np.arange(len(truth)), truth] = 0.5
    found = scores.by_option(p, p.argmax(axis=1), truth)
    with_error = [option for option, row in enumerate(found) if row["ece"] is not None]
    assert with_error == list(range(scores.MOST_OPTIONS))
    assert all(row["share"] is not None and row["recall"] is not None for row in found)

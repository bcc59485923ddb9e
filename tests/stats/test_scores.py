"""Metrics against scikit-learn and MAPIE."""

from __future__ import annotations

import numpy as np
import pytest
from mapie.metrics.calibration import expected_calibration_error as mapie_ece
from sklearn.metrics import brier_score_loss, log_loss

from svc.questions.kit.lettering import tidy
from svc.stats import scores
from svc.stats.calibrators import Floats, Ints
from svc.stats.tasks import TASKS
from tests.stats import problems

CLASSES, YES_NO, RIGHTNESS = TASKS["classes"], TASKS["yes_no"], TASKS["rightness"]
EXACT = 1e-9


@pytest.mark.parametrize("seed", problems.SEEDS)
def test_the_calibration_error_is_mapies(seed: int) -> None:
    p, truth = problems.classes(seed)
    p = np.round(p, seed % 4 + 1)  # some of them lie on the edges of bins
    confidence, correct = CLASSES.confidence(p), CLASSES.correct(p, truth)
    # What MAPIE calls bins are their edges.
    expected = mapie_ece(correct, confidence, num_bins=11, split_strategy="uniform")
    found = scores.expected_calibration_error(confidence, correct)
    assert found == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("seed", problems.SEEDS)
def test_brier_scores_and_log_losses_are_scikit_learns(seed: int) -> None:
    p, truth = problems.classes(seed)
    labels = list(range(p.shape[1]))
    brier = brier_score_loss(truth, p, labels=labels, scale_by_half=False)
    assert CLASSES.briers(p, truth).mean() == pytest.approx(brier, abs=EXACT)
    raised = np.maximum(p, 1e-6)
    if (raised == p).all():
        loss = log_loss(truth, p, labels=labels)
        assert CLASSES.log_losses(p, truth).mean() == pytest.approx(loss, abs=EXACT)
    p, truth = problems.binary(seed)
    for task in (YES_NO, RIGHTNESS):
        brier = brier_score_loss(truth, p[:, 0], scale_by_half=True)
        assert task.briers(p, truth).mean() == pytest.approx(brier, abs=EXACT)


def test_the_figures_of_a_small_example_by_hand() -> None:
    p = np.array([[0.95, 0.05], [0.95, 0.05], [0.35, 0.65], [0.5, 0.5]])
    found = scores.summary(CLASSES, p, np.array([0, 1, 1, 0]))
    assert found["accuracy"] == 0.75  # of the tie, the first class is the answer
    assert (found["automated"], found["accuracy_when_automated"]) == (0.5, 0.5)
    gaps = [abs(1 - 1.9), abs(1 - 0.65), abs(1 - 0.5)]
    assert found["ece"] == pytest.approx(sum(gaps) / 4)
    assert found["brier"] == pytest.approx((0.005 + 1.805 + 0.245 + 0.5) / 4)
    filled = {one["from"]: one["count"] for one in found["bins"] if one["count"]}
    assert filled == {0.4: 1, 0.6: 1, 0.9: 2}


@pytest.mark.parametrize(
    ("confidence", "bin_from"),
    [(0.0, 0.0), (0.1, 0.0), (0.1000001, 0.1), (0.3, 0.2), (0.7, 0.6), (0.9, 0.8), (1.0, 0.9)],
)
def test_a_bin_holds_its_upper_edge(confidence: float, bin_from: float) -> None:
    bins = scores.reliability(np.array([confidence]), np.array([1]))
    assert [one["from"] for one in bins if one["count"]] == [bin_from]


def test_a_yes_or_no_is_as_sure_as_its_side_and_a_value_as_its_probability() -> None:
    p, truth = np.array([[0.2], [0.7]]), np.array([0, 0])
    assert YES_NO.confidence(p).tolist() == [0.8, 0.7]
    assert YES_NO.correct(p, truth).tolist() == [1, 0]
    assert RIGHTNESS.confidence(p).tolist() == [0.2, 0.7]
    assert RIGHTNESS.correct(p, truth).tolist() == [0, 0]


@pytest.mark.parametrize("task", list(TASKS.values()))
def test_without_labels_everything_is_null(task: object) -> None:
    found = scores.summary(task, np.zeros((0, 1)), np.zeros(0, dtype=np.int64))  # type: ignore[arg-type]
    bins = found.pop("bins")
    assert set(found.values()) == {None}
    assert [one["count"] for one in bins] == [0] * 10


@pytest.mark.parametrize(
    ("name", "p", "truth"), [*problems.edges_of_classes(), *problems.edges_of_binary()]
)
def test_every_figure_stays_finite_at_the_edges(name: str, p: Floats, truth: Ints) -> None:
    task = CLASSES if p.shape[1] > 1 else YES_NO
    found = scores.summary(task, p, truth)
    assert all(0 <= found[figure] <= 2 for figure in ("accuracy", "ece", "brier", "automated"))
    assert np.isfinite(task.log_losses(p, truth)).all()


def test_confidences_are_as_callers_see_them() -> None:
    random = np.random.default_rng(3)
    p = random.dirichlet(np.ones(7), size=2_000)
    p[:500] = np.round(p[:500], 1) + 0.01
    p /= p.sum(axis=1, keepdims=True)
    assert TASKS["classes"].shown(p).tolist() == [max(tidy(row)) for row in p.tolist()]
    assert (TASKS["classes"].shown(p) != np.round(p.max(axis=1), 6)).any()
    assert TASKS["yes_no"].shown(np.array([[0.1234567]])).tolist() == [0.876543]

"""Whether labelled decisions are told from a random draw, and how seldom by mistake."""

from __future__ import annotations

import numpy as np
import pytest

from svc.stats.calibrators import Floats
from svc.stats.selection import (
    DIFFERENT,
    WeekOfLabels,
    confidence_difference,
    mix_difference,
)

Random = np.random.Generator


def week(top: Floats, confidence: Floats, labelled: Floats) -> WeekOfLabels:
    def counts(tops: Floats) -> dict[str, int]:
        names, found = np.unique(tops, return_counts=True)
        return dict(zip(map(str, names), found.tolist(), strict=True))

    return WeekOfLabels(
        counts(top),
        float(confidence.sum()),
        float((confidence**2).sum()),
        counts(top[labelled]),
        float(confidence[labelled].sum()),
    )


def weeks_of(random: Random, options: int, drawn: str, n: int = 300) -> list[WeekOfLabels]:
    """Eight weeks whose mix, confidences and share of labels move."""
    found = []
    for number in range(8):
        mix = random.dirichlet(np.full(options, 1.0))
        top = random.choice(options, n, p=mix)
        confidence = 0.5 + 0.5 * random.beta(4 - number / 4, 1, n)
        wrong = random.random(n) > confidence
        chance = {
            "at random": np.full(n, 0.02 + 0.06 * (number % 3)),
            "unsure ones": np.where(confidence < 0.8, 0.2, 0.05),
            "corrections": np.where(wrong, 0.5, 0.0),
            "one answer": np.where(top == 0, 0.25, 0.06),
            "nearly all": np.full(n, 0.97),
        }[drawn]
        found.append(week(top, confidence, random.random(n) < chance))
    return found


@pytest.mark.parametrize("drawn", ["at random", "nearly all"])
@pytest.mark.parametrize("options", [2, 10, 77])
def test_a_random_draw_differs_by_mistake_only(options: int, drawn: str) -> None:
    random = np.random.default_rng(options)
    found = [weeks_of(random, options, drawn) for _ in range(300)]
    for test in (mix_difference, confidence_difference):
        p = np.array([test(weeks).p for weeks in found])
        assert np.mean(p <= DIFFERENT) <= 0.03
        assert np.mean(p <= 0.2) <= 0.28


@pytest.mark.parametrize("drawn", ["unsure ones", "corrections"])
def test_labels_that_were_picked_for_doubt_or_error_differ_in_confidence(drawn: str) -> None:
    random = np.random.default_rng(4)
    p = [confidence_difference(weeks_of(random, 4, drawn)).p for _ in range(40)]
    assert np.mean(np.array(p) <= DIFFERENT) > 0.95


def test_labels_that_were_picked_by_answer_differ_in_the_mix() -> None:
    random = np.random.default_rng(5)
    found = [mix_difference(weeks_of(random, 4, "one answer")) for _ in range(40)]
    assert np.mean([one.p <= DIFFERENT for one in found]) > 0.95
    assert np.mean([one.change for one in found]) > 0.1


def test_weeks_without_labels_and_decisions_that_are_all_labelled_say_nothing() -> None:
    top, confidence = np.arange(100) % 3, np.linspace(0.5, 1, 100)
    all_of_them, none = np.ones(100, dtype=bool), np.zeros(100, dtype=bool)
    weeks = [week(top, confidence, all_of_them), week(top, confidence, none)]
    for test in (mix_difference, confidence_difference):
        assert test(weeks).p == 1.0


def test_the_change_is_how_far_labels_are_from_what_is_expected() -> None:
    weeks = [WeekOfLabels({"a": 80, "b": 20}, 90.0, 82.0, {"a": 10, "b": 10}, 16.0)] * 2
    assert mix_difference(weeks).change == pytest.approx(0.3)
    assert confidence_difference(weeks).change == pytest.approx(-0.1)


def test_a_label_that_the_weekly_sums_have_not_counted_yet_is_no_error() -> None:
    weeks = [WeekOfLabels({"a": 5}, 4.5, None, {"a": 4, "b": 3}, 6.0)]
    assert 0 <= mix_difference(weeks).p <= 1
    assert 0 <= confidence_difference(weeks).p <= 1


def test_two_answers_in_one_week_are_tested_as_by_chi_square() -> None:
    scipy = pytest.importorskip("scipy.stats")
    weeks = [WeekOfLabels({"a": 700, "b": 300}, 900.0, 820.0, {"a": 60, "b": 40}, 90.0)]
    expected = scipy.chi2_contingency([[60, 40], [640, 260]], correction=False).pvalue
    # The variance of a draw without replacement is that of the whole, less one.
    assert mix_difference(weeks).p == pytest.approx(expected, rel=0.01)


def test_equal_confidences_do_not_differ() -> None:
    weeks = [WeekOfLabels({"a": 30}, 30 * 0.9, 30 * 0.81, {"a": 4}, 4 * 0.9)]
    assert confidence_difference(weeks).p == pytest.approx(1.0)
    assert mix_difference(weeks).p == 1.0


@pytest.mark.parametrize(
    ("values", "shares"),
    [([0.999999, 0.5], [0.9975, 0.0025]), ([1, 0.5], [0.999, 0.001]), ([1, 0.6], [0.99, 0.01])],
)
@pytest.mark.parametrize("labels", [5, 12, 290])
def test_one_doubtful_answer_among_random_labels_is_no_difference(
    values: list[float], shares: list[float], labels: int
) -> None:
    random, confidences = np.random.default_rng(labels), np.array(values)
    different = 0
    for _ in range(500):
        weeks = []
        for counts in random.multinomial(300, shares, size=8):
            drawn = random.multivariate_hypergeometric(counts, labels)
            sums = float(counts @ confidences), float(counts @ confidences**2)
            labelled = {"": labels}, float(drawn @ confidences)
            weeks.append(WeekOfLabels({"": 300}, *sums, *labelled))
        different += confidence_difference(weeks).p <= DIFFERENT
    assert different <= 10

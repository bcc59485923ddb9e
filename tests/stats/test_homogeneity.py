"""P-values against scipy's, and how often they are small without a difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from svc.stats import homogeneity
from svc.stats.calibrators import Floats
from svc.stats.homogeneity import Moments, chi_square_tail, counts_p_value, means_p_value


def moments(values: Floats, *, squares: bool = True) -> Moments:
    return Moments(len(values), float(values.sum()), float((values**2).sum()) if squares else None)


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 76, 255])
@pytest.mark.parametrize("x", [0.0, 1e-3, 1.0, 30.0, 300.0])
def test_the_tail_of_chi_square_is_scipys(x: float, freedom: int) -> None:
    expected = stats.chi2.sf(x, freedom)
    assert chi_square_tail(x, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("skew", [0.0, 1e-5, 0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("z", [0.0, 1.0, 2.5, 4.0])
def test_a_skewed_tail_is_pearsons(z: float, skew: float) -> None:
    expected = stats.pearson3.sf(z, skew)
    assert homogeneity.skewed_tail(z, skew) == pytest.approx(expected, rel=0.1, abs=0.01 * expected)


@pytest.mark.parametrize("seed", range(30))
def test_two_columns_of_small_counts_are_tested_as_fisher_did(seed: int) -> None:
    random = np.random.default_rng(seed)
    one, other = random.integers(0, 15, 2), random.integers(1, 60, 2)
    if one.sum():
        expected = stats.fisher_exact([one, other]).pvalue
        assert counts_p_value(one.tolist(), other.tolist()) == pytest.approx(expected)


def test_large_counts_are_tested_as_pearson_did() -> None:
    table = [[210, 190, 100], [1_900, 2_100, 1_000]]
    expected = stats.chi2_contingency(table, correction=False).pvalue
    assert counts_p_value(*table) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("one", "other"), [([6, 0, 2, 1], [10, 30, 25, 12]), ([0, 0, 3], [40, 30, 1])]
)
def test_small_counts_in_many_columns_are_permuted(one: list[int], other: list[int]) -> None:
    columns = np.add(one, other)
    cells = stats.multivariate_hypergeom(columns, sum(one))
    # Every table of these margins, with its probability.
    tables = [t for t in np.ndindex(*(columns + 1)) if sum(t) == sum(one)]
    reached = likelihood_ratio(one, columns) - 1e-9
    exact = sum(cells.pmf(t) for t in tables if likelihood_ratio(t, columns) >= reached)
    found = counts_p_value(one, other)
    assert found == pytest.approx(exact, rel=0.5, abs=1e-4)


def likelihood_ratio(row: Sequence[int], columns: Floats) -> float:
    table = np.array([row, columns - np.array(row)])
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(stats.power_divergence(table, expected, axis=None, lambda_="log-likelihood")[0])


@pytest.mark.parametrize("others", [10**9, 10**10, 10**13, 10**17])
@pytest.mark.parametrize(("rare", "low"), [((97, 3, 1), 0.1), ((80, 20, 1), 1e-5), ((97, 3), 0.1)])
def test_a_few_answers_after_billions_are_tested_as_after_millions(
    others: int, rare: tuple[int, ...], low: float
) -> None:
    """Tables of 10^9 cannot be drawn; the process that tells hooks ended with that."""
    before = [others, others // 100, others // 1_000][: len(rare)]
    fewer = [count * 10**8 // others for count in before]
    p, expected = counts_p_value(before, rare), counts_p_value(fewer, rare)
    assert p == pytest.approx(expected, rel=0.1, abs=1e-6)
    assert (p < low) == (expected < low)


def test_rare_answers_of_billions_are_compared() -> None:
    one, other = [3_100_000_000, 1_000_000], [50_000_000, 17_000]
    expected = stats.chi2_contingency([one, other], correction=False).pvalue
    assert counts_p_value(one, other) == pytest.approx(expected)
    # Half of what tables are drawn of, twice, with the halves of all counts rounded.
    assert counts_p_value([230_000_000, 230_000_000, 6], [230_000_000, 230_000_000, 5]) > 0.1
    # Beyond what tables are drawn of, the rarest of all are not seen.
    assert counts_p_value([10**12, 30], [10**12, 5]) == 1.0


def test_the_bound_on_a_small_p_value_is_one() -> None:
    """Were it too small, the flag would be up too often."""
    random = np.random.default_rng(5)
    columns = np.array([40, 30, 20, 10])
    rows = random.multivariate_hypergeometric(columns, 12, 200_000)
    bounds = np.array(
        [homogeneity._entropy_bound(np.array([r, columns - r])) for r in rows[:20_000]]
    )
    for level in (0.3, 0.1, 0.03, 0.01):
        assert (bounds <= level).mean() <= level


def test_a_change_beyond_doubt_needs_no_tables() -> None:
    assert counts_p_value([0, 0, 30], [300, 280, 10]) < 1e-5
    before = np.arange(1, 78) * 3
    now = before[::-1] // 6
    assert counts_p_value(now.tolist(), before.tolist()) <= homogeneity.NEGLIGIBLE


@pytest.mark.parametrize("options", [3, 10, 77])
def test_what_is_called_beyond_doubt_is_never_drawn(options: int) -> None:
    random = np.random.default_rng(options)
    columns = np.arange(1, options + 1) * 5
    drawn = random.multivariate_hypergeometric(columns, int(columns.sum()) // 4, 200)
    others = random.multivariate_hypergeometric(columns, int(columns.sum()) // 4, 20_000)
    few, many = (homogeneity._entropies(rows, columns) for rows in (drawn, others))
    assert not homogeneity._beyond_doubt(float(many.max()), few, options - 1)


@pytest.mark.parametrize(
    ("one", "other"), [([], []), ([5], [9]), ([0, 0], [3, 4]), ([3, 4], [0, 0]), ([5, 0], [9, 0])]
)
def test_nothing_to_compare_is_no_difference(one: list[int], other: list[int]) -> None:
    assert counts_p_value(one, other) == 1.0


def test_p_values_do_not_depend_on_the_order_of_columns() -> None:
    assert counts_p_value([1, 5, 2], [30, 20, 10]) == counts_p_value([2, 1, 5], [10, 30, 20])


def test_of_very_many_columns_the_rarest_count_as_one() -> None:
    random = np.random.default_rng(5)
    often = random.integers(3, 9, (2, homogeneity.COLUMNS - 1)).tolist()
    rare = random.integers(0, 2, (2, 300)).tolist()
    whole = [[*most, *least] for most, least in zip(often, rare, strict=True)]
    pooled = [[*most, sum(least)] for most, least in zip(often, rare, strict=True)]
    assert counts_p_value(*whole) == counts_p_value(*pooled)


@pytest.mark.parametrize("rows", [(1, 1), (1, 3)])
def test_of_very_many_columns_without_a_difference_p_values_are_uniform(
    rows: tuple[int, int],
) -> None:
    random = np.random.default_rng(6)
    shares = random.dirichlet(np.full(600, 0.5))
    found = [
        counts_p_value(*(random.multinomial(400 * size, shares).tolist() for size in rows))
        for _ in range(60)
    ]
    assert 0.3 < np.mean(found) < 0.7 and min(found) > 0.001


def test_means_of_many_values_are_tested_as_by_t() -> None:
    random = np.random.default_rng(3)
    for shift in (0.0, 0.005, 0.01):
        one, other = random.beta(4, 2, 20_000), random.beta(4, 2, 20_000) - shift
        expected = stats.ttest_ind(one, other).pvalue
        assert means_p_value([moments(one)], [moments(other)]) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("n", [5, 20, 100])
def test_means_of_a_few_skewed_values_raise_no_alarm_without_a_difference(n: int) -> None:
    random = np.random.default_rng(n)
    found = []
    for _ in range(5_000):
        values = np.where(random.random(n + 400) < 0.05, random.uniform(0.1, 0.6, n + 400), 0.999)
        found.append(means_p_value([moments(values[:n])], [moments(values[n:])]))
    # By Student's t it would be 0.4% to 2.6% at the lower level.
    assert np.mean(np.array(found) <= 0.001) <= 0.0025
    assert np.mean(np.array(found) <= 0.05) <= 0.06


@pytest.mark.parametrize("n", [10, 30, 300])
@pytest.mark.parametrize(("low", "share"), [(0.5, 0.0005), (0.5, 0.002), (0.8, 0.01), (0.0, 0.003)])
def test_a_single_low_value_in_a_small_week_among_large_ones_is_no_alarm(
    n: int, low: float, share: float
) -> None:
    random = np.random.default_rng(n)
    found = []
    for _ in range(3_000):
        lows = random.binomial(n, share), random.binomial(3_000, share)
        groups = [
            Moments(count, count - few * (1 - low), count - few * (1 - low**2))
            for count, few in zip((n, 3_000), lows, strict=True)
        ]
        found.append(means_p_value(groups[:1], groups[1:]))
    assert np.mean(np.array(found) <= 0.001) <= 0.0025
    assert np.mean(np.array(found) <= 0.05) <= 0.07


@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("gap", [0.0, 1e-300, 1e-12, 1e-8, 1e-3])
def test_few_values_with_hardly_a_gap_are_no_alarm(count: int, gap: float) -> None:
    assert homogeneity.few_values_tail(count, gap, 0.9, 0.01) > 0.1


@pytest.mark.parametrize("n", [1, 4, 19])
def test_few_values_are_as_probable_as_their_number(n: int) -> None:
    # Values of 0 with a chance of 1%, and of 1: the mean of 20 of them is lower by so many.
    p, count = 0.01, 20
    expected = stats.binom.sf(n - 1, count, p)
    found = homogeneity.few_values_tail(count, n / count - p, 1 - p, p * (1 - p))
    assert found == pytest.approx(expected, rel=1e-6)


def test_without_squares_the_largest_variance_counts() -> None:
    random = np.random.default_rng(4)
    one, other = random.beta(9, 1, 200), random.beta(7, 1, 200)
    known = means_p_value([moments(one)], [moments(other)])
    unknown = means_p_value([moments(one, squares=False)], [moments(other, squares=False)])
    some = means_p_value([moments(one, squares=False)], [moments(other)])
    assert known < unknown
    assert some == pytest.approx(known, rel=1)


def test_equal_values_are_no_difference() -> None:
    same = np.full(50, 0.999)
    assert means_p_value([moments(same)], [moments(same)]) == 1.0
    assert means_p_value([Moments(0, 0.0, 0.0)], [moments(same)]) == 1.0
    # In sums of many parts, rounding leaves a difference, and a variance that is smaller still.
    parts = [moments(np.full(n, 0.999)) for n in (3, 7, 20, 20, 33)]
    for place in range(1, len(parts)):
        assert means_p_value([parts[place]], parts[:place]) == 1.0

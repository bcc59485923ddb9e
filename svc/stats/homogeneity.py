"""Whether two groups of answers can be draws from one source: p-values for counts and for means.

Both take the answers for independent draws. Where they are not (copies of one state, a batch of
one kind), a p-value is smaller than it should be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from svc.stats.calibrators import Floats, Ints

# Every cell that is expected to hold this many is large enough for the chi-square approximation,
# also in the far tail that a yearly rate needs.
LARGE = 20
# Of small counts in many columns, p-values above this are near enough by chi-square.
ORDINARY = 0.1
# Monte Carlo stops after the first of these numbers of tables with enough as far apart.
TABLES = (200, 2_000, 20_000)
ENOUGH = 20
# So many tables are drawn at a time, and of more columns than these the rarest count together.
DRAWN = 1_000
COLUMNS = 128
# A bound below this is reported as the p-value: tables drawn at random could not tell it anyway.
NEGLIGIBLE = 1e-5
# By how much the tail of a fitted chi-square must fall short of `NEGLIGIBLE` to be trusted.
_TRUST = 0.1
# Tables are drawn of fewer than 10^9 answers, see numpy's `Generator.multivariate_hypergeometric`.
MOST_DRAWN = 900_000_000
SEED = 20_260_114
_TIES = 1e-9
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Moments:
    """How many values between 0 and 1, their sum, and where known the sum of their squares."""

    count: int
    total: float
    squares: float | None = None


def counts_p_value(one: Sequence[int], other: Sequence[int]) -> float:
    """How often chance alone would set two rows of counts at least so far apart.

    Pearson's chi-square where all expected counts are large or nothing is out of the ordinary,
    else exact given the margins: Fisher's test for two columns, and Monte Carlo tables ranked by
    the likelihood ratio for more (Besag and Clifford, Sequential Monte Carlo p-values, 1991), with
    a fixed seed. Of more than `COLUMNS` columns the rarest of both rows together, the later ones of
    equal sums, count as one: that depends on the margins alone. Of more answers than `MOST_DRAWN`
    with small expected counts, a row with over half as many has its shares of that.
    """
    columns = _pooled([pair for pair in zip(one, other, strict=True) if any(pair)])
    if len(columns) < 2 or not all(map(sum, zip(*columns, strict=True))):
        return 1.0
    first, second = zip(*sorted(columns), strict=True)
    return _counts_p_value(first, second)


def _pooled(columns: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The columns with the largest sums, and one more that has the sums of all others."""
    if len(columns) <= COLUMNS:
        return columns
    ordered = sorted(columns, key=sum, reverse=True)
    first, second = zip(*ordered[COLUMNS - 1 :], strict=True)
    return [*ordered[: COLUMNS - 1], (sum(first), sum(second))]


@lru_cache(maxsize=4_096)
def _counts_p_value(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    table = np.array([one, other], dtype=np.int64)
    tail = chi_square_tail(_pearson(table), len(one) - 1)
    if _expected(table).min() >= LARGE:
        return tail
    if table.sum() > MOST_DRAWN:
        return counts_p_value(_fewer(one), _fewer(other))
    if len(one) == 2:
        return _fisher(table)
    if tail > ORDINARY:
        return tail
    bound = _entropy_bound(table)
    return bound if bound < NEGLIGIBLE else _monte_carlo(table)


def _fewer(row: Sequence[int]) -> list[int]:
    """A row in proportion, where it has more than half of what tables are drawn of."""
    share = min(1.0, MOST_DRAWN / 2 / sum(row))
    # Rounded down, or both rows might have one more than that again.
    return [int(count * share) for count in row]


def _expected(table: Ints) -> Floats:
    # As floats, since the products of sums in billions are beyond integers of 64 bits.
    margins: Floats = np.outer(table.sum(axis=1, dtype=np.float64), table.sum(axis=0)) / table.sum()
    return margins


def _pearson(table: Ints) -> float:
    expected = _expected(table)
    return float(((table - expected) ** 2 / expected).sum())


def chi_square_tail(x: float, freedom: int) -> float:
    """P(chi-square of so many degrees of freedom >= x), by the recursion from one or two."""
    half = x / 2
    if half <= 0:
        return 1.0
    if freedom % 2:
        tail, start = math.erfc(math.sqrt(half)), 0.5
    else:
        tail, start = math.exp(-half), 1.0
    for step in range((freedom - 1) // 2):
        a = start + step
        tail += math.exp(a * math.log(half) - half - math.lgamma(a + 1))
    return min(tail, 1.0)


def _fisher(table: Ints) -> float:
    """The two-sided exact test: all tables of these margins that are no likelier than this one."""
    drawn, kind, total = int(table[0].sum()), int(table[:, 0].sum()), int(table.sum())
    cells = range(max(0, drawn + kind - total), min(drawn, kind) + 1)
    logs = np.array(
        [_log_choose(kind, cell) + _log_choose(total - kind, drawn - cell) for cell in cells]
    )
    shares = np.exp(logs - logs.max())
    reached = logs <= logs[int(table[0, 0]) - cells[0]] + _TIES
    return float(shares[reached].sum() / shares.sum())


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _entropy_bound(table: Ints) -> float:
    """A bound on the p-value by the smaller row's divergence from all answers together.

    Agrawal, Finite-Sample Concentration of the Multinomial in Relative Entropy (2020), theorem
    1.2; it holds for draws without replacement as well, for its proof bounds the mean of a convex
    function of the counts (Hoeffding 1963, theorem 4).
    """
    row = table[int(table[1].sum() < table[0].sum())]
    freedom = len(row) - 1
    there = row > 0
    shares, expected = row[there] / row.sum(), (table.sum(axis=0) / table.sum())[there]
    distance = float((row[there] * np.log(shares / expected)).sum())
    if distance <= freedom:
        return 1.0
    return math.exp(freedom * (1 + math.log(distance / freedom)) - distance)


def _monte_carlo(table: Ints) -> float:
    random = np.random.default_rng(SEED)
    columns, drawn = table.sum(axis=0), int(table[0].sum())
    reached = _entropies(table[:1], columns)[0] - _TIES
    further = tables = 0
    for wanted in TABLES:
        sizes = [min(DRAWN, wanted - begin) for begin in range(tables, wanted, DRAWN)]
        drawn_entropies = np.concatenate(
            [_entropies(_tables(random, columns, drawn, size), columns) for size in sizes]
        )
        further += int((drawn_entropies >= reached).sum())
        tables = wanted
        if further >= ENOUGH:
            break
        if _beyond_doubt(reached, drawn_entropies, len(columns) - 1):
            return NEGLIGIBLE
    return (further + 1) / (tables + 1)


def _tables(random: np.random.Generator, columns: Ints, drawn: int, size: int) -> Ints:
    """The first rows of `size` tables of these margins."""
    return random.multivariate_hypergeometric(columns, drawn, size, method="marginals")


def _beyond_doubt(reached: float, drawn: Floats, freedom: int) -> bool:
    """Whether a chi-square of the drawn tables' mean and spread never comes so far."""
    spread = float(drawn.std())
    z = (reached - float(drawn.mean())) / spread if spread > 0 else 0.0
    tail = chi_square_tail(freedom + z * math.sqrt(2 * freedom), freedom)
    return z > 0 and tail < _TRUST * NEGLIGIBLE


def _entropies(rows: Ints, columns: Ints) -> Floats:
    """What in the likelihood ratio depends on the counts of the first row."""
    sums: Floats = (_times_log(rows) + _times_log(columns - rows)).sum(axis=1)
    return sums


def _times_log(counts: Ints) -> Floats:
    values = counts.astype(np.float64)
    product: Floats = values * np.log(np.maximum(values, 1))
    return product


def means_p_value(one: Sequence[Moments], other: Sequence[Moments]) -> float:
    """How often chance alone would set the means of two groups at least so far apart.

    The variance is that of both groups together, as no difference implies. Values between 0 and 1
    can be skewed no further than their mean and variance allow; the tail is that of a Pearson
    type III distribution with this worst skew, so that a handful of low values among many high
    ones is no alarm. Where a few values of the smaller group can make the gap, it is at least the
    chance to draw so many of them.
    """
    (n, mean), (m, other_mean) = summed(one), summed(other)
    common, spread = summed([*one, *other])[1], variance([*one, *other])
    # Equal values differ by what rounding makes of their sums.
    if not (n and m) or spread <= 0 or abs(mean - other_mean) < _TIES:
        return 1.0
    error = math.sqrt(spread * (1 / n + 1 / m))
    # A gap upwards is made by high values of the smaller group, or by low ones of the larger.
    room = 1 - common if (mean > other_mean) == (n <= m) else common
    skew = worst_skew(room, spread) * spread**1.5 * abs(1 / n**2 - 1 / m**2) / error**3
    tail = 2 * skewed_tail(abs(mean - other_mean) / error, skew)
    smaller, its_mean = min((n, mean), (m, other_mean))
    return min(1.0, max(tail, few_values_tail(smaller, abs(its_mean - common), room, spread)))


def few_values_tail(count: int, gap: float, room: float, spread: float) -> float:
    """How often chance draws the fewest values of so many that can move their mean by a gap.

    0 where these are more than a few, of which the skew tells enough. The values lie around their
    mean with the variance `spread`, and end at `room` from it on that side. Of two points that have
    this variance, the far one is as near as so few values allow.
    """
    if gap >= room:
        return 0.0
    others = spread / room
    least = max(1, math.ceil(count * (gap + others) / (room + others) - _TIES))
    if least >= LARGE:
        return 0.0
    total = gap * count
    far = (total + math.sqrt(total**2 + 4 * least * (count - least) * spread)) / (2 * least)
    return _binomial_tail(count, spread / (spread + far**2), least)


def _binomial_tail(count: int, p: float, least: int) -> float:
    """P(at least so many of `count` draws with the chance p each); 1 where as many are expected."""
    if p * count >= least:
        return 1.0
    log = _log_choose(count, least) + least * math.log(p) + (count - least) * math.log1p(-p)
    tail = term = math.exp(log)
    for hits in range(least, count):
        term *= (count - hits) / (hits + 1) * p / (1 - p)
        tail += term
        if term < tail * _TIES:
            break
    return min(1.0, tail)


def summed(groups: Sequence[Moments]) -> tuple[int, float]:
    """How many values there are in all, and their mean."""
    count = sum(group.count for group in groups)
    return count, math.fsum(group.total for group in groups) / max(count, 1)


def variance(groups: Sequence[Moments]) -> float:
    """Of all values around their mean, by the groups whose squares are known.

    Where these are few, the largest variance that the mean allows (Bhatia and Davis 2000).
    """
    count, mean = summed(groups)
    known = [(group, group.squares) for group in groups if group.squares is not None]
    measured = sum(group.count for group, _ in known)
    if measured < min(count, LARGE):
        return mean * (1 - mean)
    squares = math.fsum(
        squares - 2 * mean * group.total + group.count * mean**2 for group, squares in known
    )
    return max(squares, 0.0) / max(measured - 1, 1)


def worst_skew(room: float, spread: float) -> float:
    """The largest skewness of values of this variance that end so far from their mean."""
    sd = math.sqrt(spread)
    return max((room**2 - spread) / (room * sd), 0.0) if room > 0 else 0.0


def skewed_tail(z: float, skew: float) -> float:
    """P(a standardised Pearson type III variable >= z), by Wilson and Hilferty's cube root."""
    if skew < 1e-4:
        return _NORMAL.cdf(-z)
    freedom = 8 / skew**2
    ratio = 1 + z * math.sqrt(2 / freedom)
    spread = 2 / (9 * freedom)
    return _NORMAL.cdf(-(ratio ** (1 / 3) - 1 + spread) / math.sqrt(spread))

"""Letters for options, and probabilities for all of them when a reply names only some."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

# How many decimals every probability has that callers see.
DECIMALS = 6
UNITS = 10**DECIMALS


@lru_cache(maxsize=512)
def letters(count: int) -> tuple[str, ...]:
    """The first `count` labels: A to Z, then AA, AB and so on, as a spreadsheet names columns."""
    return tuple(_letter(index) for index in range(count))


def _letter(index: int) -> str:
    first, last = divmod(index, 26)
    return (_letter(first - 1) if first else "") + chr(ord("A") + last)


def complete(
    stated: Mapping[int, float], count: int, *, bound: float = 1.0
) -> tuple[float, ...] | None:
    """Probabilities for all of `count` labels, from those `stated` for some of them.

    Labels that are missing share what is left of 1 equally, and get at most `bound` each. Values
    that are negative or not finite count as missing. Returns `count` numbers that sum to 1, or
    None when nothing usable is stated.
    """
    usable = {i: p for i, p in stated.items() if 0 <= i < count and p >= 0 and math.isfinite(p)}
    total = sum(usable.values())
    if not total > 0 or not math.isfinite(total):
        return None
    missing = count - len(usable)
    rest = min(bound, max(0.0, 1.0 - total) / missing) if missing else 0.0
    filled = [usable.get(index, rest) for index in range(count)]
    return normalised(filled)


def normalised(weights: Sequence[float]) -> tuple[float, ...]:
    """`weights`, which are not negative and not all 0, scaled to sum to 1."""
    # Scaled by the largest first, so that neither huge nor tiny weights overflow.
    largest = max(weights)
    scaled = [weight / largest for weight in weights]
    total = math.fsum(scaled)
    return tuple(weight / total for weight in scaled)


def tidy(probabilities: Sequence[float], order: Sequence[int] = ()) -> list[float]:
    """Round a distribution for the caller so that it still sums to 1 and keeps its order.

    The largest remainders are rounded up (Hamilton's method of apportionment), and of equal ones
    those that come first in `order`, which is that of the positions by default.
    """
    exact = [p * UNITS for p in probabilities]
    units = [int(share) for share in exact]
    by_remainder = sorted(order or range(len(exact)), key=lambda i: units[i] - exact[i])
    for index in by_remainder[: UNITS - sum(units)]:
        units[index] += 1
    return [unit / UNITS for unit in units]


def argmax(values: Sequence[float]) -> int:
    """Index of the largest value, the first of equals."""
    return values.index(max(values))


def one_line(text: str) -> str:
    """`text` on one line, so that a description cannot pose as a further option."""
    return " ".join(text.split())

"""Split conformal prediction sets (Vovk et al.; Angelopoulos and Bates, A Gentle Introduction).

They hold the truth with the probability asked for as long as the labelled answers are drawn like
those to come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_ROUNDING = 1e-9  # what (n + 1) times a coverage may be off by


def quantile(scores: Sequence[float], coverage: float) -> float:
    """The ⌈(n + 1) coverage⌉-th smallest of n nonconformity scores; infinite, had there to be more.

    `scores` are in ascending order.
    """
    rank = max(1, math.ceil((len(scores) + 1) * coverage - _ROUNDING))
    return scores[rank - 1] if rank <= len(scores) else math.inf


def prediction_set(probabilities: Sequence[float], limit: float) -> list[int]:
    """Places of the options whose score is within `limit`; never empty, the top one at least."""
    inside = [index for index, p in enumerate(probabilities) if 1 - p <= limit]
    return inside or [max(range(len(probabilities)), key=probabilities.__getitem__)]

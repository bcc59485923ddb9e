"""Figures of how good the answers to scored rows are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from svc.evals.scoring import Scored
from svc.stats import AUTOMATE_FROM, expected_calibration_error, reliability, thresholds

# How many standard deviations a two-sided 95% interval reaches from the mean.
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one or more sets; rates are from 0 to 1, None where nothing was answered.

    `rows` counts the answered rows. The accuracy on all such rows lies in `interval` with 95%
    confidence. `automated` is the share of answers with a confidence of at least 0.9. `bins` are
    those of a reliability diagram, see `svc.stats.scores`, and `promises` say what could be
    automated, see `svc.stats.thresholds`. `confusion` counts pairs of label and answer where the
    different answers are few.
    """

    rows: int
    right: int
    failed: int
    skipped: int
    accuracy: float | None
    interval: tuple[float, float]
    ece: float | None
    brier: float | None
    automated: float | None
    accuracy_when_automated: float | None
    cost_usd: float
    median_ms: float | None
    p95_ms: float | None
    bins: list[dict[str, Any]]
    promises: list[dict[str, Any]]
    confusion: Counter[tuple[str, str]]


def figures_of(scored: Sequence[Scored]) -> Figures:
    """The figures of some rows together."""
    answered = [one for one in scored if one.answered]
    confidences = np.array([one.confidence for one in answered], np.float64)
    agrees = np.array([one.agrees for one in answered], np.int64)
    latencies = np.array([one.latency_ms for one in answered], np.float64)
    right, sure = int(agrees.sum()), confidences >= AUTOMATE_FROM
    pairs = ((one.label, one.answer) for one in answered if one.comparable)
    some = len(answered) > 0
    return Figures(
        rows=len(answered),
        right=right,
        failed=sum(bool(one.error) for one in scored),
        skipped=sum(one.skipped for one in scored),
        accuracy=right / len(answered) if some else None,
        interval=wilson(right, len(answered)),
        ece=expected_calibration_error(confidences, agrees) if some else None,
        brier=math.fsum(one.brier for one in answered) / len(answered) if some else None,
        automated=float(sure.mean()) if some else None,
        accuracy_when_automated=float(agrees[sure].mean()) if sure.any() else None,
        cost_usd=math.fsum(one.cost_usd for one in scored),
        median_ms=float(np.median(latencies)) if some else None,
        p95_ms=float(np.percentile(latencies, 95)) if some else None,
        bins=reliability(confidences, agrees),
        promises=thresholds.report(confidences, agrees, ordered=False) if some else [],
        confusion=Counter(pairs),
    )


def wilson(right: int, rows: int) -> tuple[float, float]:
    """The 95% confidence interval of a share; 0 to 1 where there are no rows.

    Wilson, Probable Inference, the Law of Succession, and Statistical Inference (1927).
    """
    if not rows:
        return 0.0, 1.0
    share, spread = right / rows, _Z * _Z / rows
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)

"""Whether a question's answers change from week to week."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MIX_MOVED = 0.2  # total-variation distance above which the mix has drifted
CONFIDENCE_MOVED = 0.1
_DIGITS = 6  # of everything shown; so 0.3 - 0.1 is not more than 0.2


@dataclass(frozen=True, slots=True)
class WeekTally:
    """One week's answers: how many by top answer, and the sum of their confidences."""

    name: str
    counts: Mapping[str, int]
    confidence: float

    @property
    def decisions(self) -> int:
        return sum(self.counts.values())

    @property
    def mix(self) -> dict[str, float]:
        """The share of each top answer."""
        return {top: round(n / self.decisions, _DIGITS) for top, n in self.counts.items()}

    @property
    def mean_confidence(self) -> float:
        return round(self.confidence / self.decisions, _DIGITS)


def report(weeks: Sequence[WeekTally], *, mixed: bool) -> list[dict[str, Any]]:
    """The report's weeks, the oldest first; the last one is compared with the mean of the others.

    Without `mixed` the top answers are not counted, and only confidence can drift. With nothing
    to compare with, changes are null.
    """
    rows = [
        {
            "week": week.name,
            "decisions": week.decisions,
            "mix": week.mix if mixed else None,
            "confidence": week.mean_confidence,
        }
        for week in weeks
    ]
    if rows:
        rows[-1] |= _changes(weeks[-1], weeks[:-1], mixed)
    return rows


def _changes(latest: WeekTally, earlier: Sequence[WeekTally], mixed: bool) -> dict[str, Any]:
    mix = _mix_change(latest, earlier) if mixed and earlier else None
    confidence = _confidence_change(latest, earlier) if earlier else None
    moved = (mix or 0.0) > MIX_MOVED or abs(confidence or 0.0) > CONFIDENCE_MOVED
    changes = {"confidence_change": confidence, "drift": moved}
    return {"mix_change": mix, **changes} if mixed else changes


def _mix_change(latest: WeekTally, earlier: Sequence[WeekTally]) -> float:
    """Half the sum of the distances to the mean of the earlier mixes."""
    mixes = [week.mix for week in earlier]
    tops = sorted({top for mix in (latest.mix, *mixes) for top in mix})
    distances = [
        abs(latest.mix.get(top, 0.0) - math.fsum(mix.get(top, 0.0) for mix in mixes) / len(mixes))
        for top in tops
    ]
    return round(math.fsum(distances) / 2, _DIGITS)


def _confidence_change(latest: WeekTally, earlier: Sequence[WeekTally]) -> float:
    mean = math.fsum(week.mean_confidence for week in earlier) / len(earlier)
    return round(latest.mean_confidence - mean, _DIGITS)

"""Whether a question's answers change from week to week: by a fixed rule, and by tests.

The tests take decisions for independent draws and, without drift, every week for a draw of one
mix. Each finished week is tested once, and an unfinished one may be looked at once a day: then a
year of weeks that do not drift has an alarm in at most 5% of projects (Bonferroni, over all
tests of all 52 weeks). Weeks that differ by nature, say around holidays, are drift to them;
docs/drift.md says how many alarms that makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svc.jsontext import JsonObject
from svc.stats.homogeneity import (
    Moments,
    counts_p_value,
    means_p_value,
    summed,
    variance,
)

MIX_MOVED = 0.2  # total-variation distance above which the mix has drifted
CONFIDENCE_MOVED = 0.1
_DIGITS = 6  # of everything shown; so 0.3 - 0.1 is not more than 0.2

FALSE_ALARMS_A_YEAR = 0.05
WEEKS_A_YEAR = 52
# The part of a week's error that looks at it before its end may spend, a seventh of it each day.
UNFINISHED = 0.2
DAYS = 7
# Of more different answers than these, weeks are compared by groups of answers.
NAMED = 1_000
# Slow drift is told by this many weeks, the latest ones against the first ones.
MONTH = 4


@dataclass(frozen=True, slots=True)
class WeekTally:
    """One week's answers: how many by top answer, and the sum of their confidences.

    `squares` is the sum of the squared confidences, where it was kept. `grouped` has the `counts`
    by groups of answers that are the same in all weeks. Some are `unnamed` where `counts` does not
    tell them apart: always the same ones, or some of more than `NAMED` answers.
    """

    name: str
    counts: Mapping[str, int]
    confidence: float
    squares: float | None = None
    grouped: Mapping[str, int] | None = None
    unnamed: bool = False

    @property
    def decisions(self) -> int:
        return sum(self.counts.values())

    @property
    def mix(self) -> dict[str, float]:
        """The share of each top answer."""
        return _shares(self.counts)

    @property
    def mean_confidence(self) -> float:
        return round(self.confidence / self.decisions, _DIGITS)


@dataclass(frozen=True, slots=True)
class DriftComparison:
    """What was compared, and how often chance would have done it."""

    change: float
    by_chance: float
    p: float
    level: float

    @property
    def alarm(self) -> bool:
        return self.p <= self.level

    @property
    def as_json(self) -> JsonObject:
        """`yearly` is `p` with all tests of a year allowed for: an alarm has 0.05 or less."""
        return {
            "change": round(self.change, _DIGITS),
            "by_chance": round(self.by_chance, _DIGITS),
            "p": self.p,
            "yearly": min(1.0, self.p * FALSE_ALARMS_A_YEAR / self.level),
            "alarm": self.alarm,
        }


def latest_significance(weeks: Sequence[WeekTally], *, mixed: bool, finished: bool) -> JsonObject:
    """The mix and confidence of the last week, tested against what went before.

    `mix` and `confidence` compare it with all earlier weeks together; `slow_mix` and
    `slow_confidence` compare the latest four weeks with the first four, so that a change stays
    visible for as long as the first month is given, and are left to finished weeks. Null where
    there is nothing to compare with, or (without `mixed`) no mix. Give all weeks of the past
    year, however few are to be shown.
    """
    limit = level(mixed=mixed, finished=finished)
    *earlier, latest = weeks
    pairs: dict[str, tuple[Sequence[WeekTally], Sequence[WeekTally]]] = {"": ([latest], earlier)}
    if finished:
        pairs["slow_"] = (weeks[MONTH:][-MONTH:], weeks[:MONTH])
    found: JsonObject = dict.fromkeys(prefix + name for prefix in ("", "slow_") for name in _TESTS)
    found |= {
        prefix + name: test(now, before, limit).as_json
        for prefix, (now, before) in pairs.items()
        for name, test in _TESTS.items()
        if now and before and (mixed or name != "mix")
    }
    alarm = any(one["alarm"] for one in found.values() if one)
    return {"week": latest.name, "finished": finished, **found, "alarm": alarm}


def level(*, mixed: bool, finished: bool) -> float:
    """The p-value up to which one test of a week is an alarm."""
    week = FALSE_ALARMS_A_YEAR / WEEKS_A_YEAR / (1 + mixed)
    return week * (1 - UNFINISHED) / 2 if finished else week * UNFINISHED / DAYS


def _mix_test(
    now: Sequence[WeekTally], before: Sequence[WeekTally], limit: float
) -> DriftComparison:
    """By counts; the change is the total-variation distance of the two mixes."""
    counts = _comparable([*now, *before])
    tops = _all_of(counts)
    one, other = (
        [sum(week.get(top, 0) for week in weeks) for top in tops]
        for weeks in (counts[: len(now)], counts[len(now) :])
    )
    n, m = sum(one), sum(other)
    pairs = list(zip(one, other, strict=True))
    change = math.fsum(abs(a / n - b / m) for a, b in pairs) / 2
    by_chance = math.fsum(_absolute_deviation((a + b) / (n + m), n, m) for a, b in pairs) / 2
    return DriftComparison(change, by_chance, counts_p_value(one, other), limit)


def _comparable(weeks: Sequence[WeekTally]) -> list[Mapping[str, int]]:
    """The counts of weeks by the same answers, or by groups of them where they are very many.

    Which of both depends on all weeks together, and so does not favour a difference.
    """
    counts = [week.counts for week in weeks]
    if len(_all_of(counts)) <= NAMED and not any(week.unnamed for week in weeks):
        return counts
    return [week.counts if week.grouped is None else week.grouped for week in weeks]


def _all_of(counts: Sequence[Mapping[str, float]]) -> list[str]:
    """The answers of all weeks, sorted."""
    return sorted(set().union(*counts))


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    decisions = sum(counts.values())
    return {top: round(n / decisions, _DIGITS) for top, n in counts.items()}


def _absolute_deviation(share: float, n: int, m: int) -> float:
    """How far two shares of n and of m draws are from each other on average, without drift."""
    variance = share * (1 - share)
    return min(math.sqrt(2 / math.pi * variance * (1 / n + 1 / m)), 2 * variance)


def _confidence_test(
    now: Sequence[WeekTally], before: Sequence[WeekTally], limit: float
) -> DriftComparison:
    """By means; the change is their difference."""
    one, other = _moments(now), _moments(before)
    (n, mean), (m, earlier) = summed(one), summed(other)
    by_chance = math.sqrt(2 / math.pi * variance([*one, *other]) * (1 / n + 1 / m))
    return DriftComparison(mean - earlier, by_chance, means_p_value(one, other), limit)


def _moments(weeks: Sequence[WeekTally]) -> list[Moments]:
    return [Moments(week.decisions, week.confidence, week.squares) for week in weeks]


_TESTS = {"mix": _mix_test, "confidence": _confidence_test}


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
    now, *mixes = map(_shares, _comparable([latest, *earlier]))
    distances = [
        abs(now.get(top, 0.0) - math.fsum(mix.get(top, 0.0) for mix in mixes) / len(mixes))
        for top in _all_of([now, *mixes])
    ]
    return round(math.fsum(distances) / 2, _DIGITS)


def _confidence_change(latest: WeekTally, earlier: Sequence[WeekTally]) -> float:
    mean = math.fsum(week.mean_confidence for week in earlier) / len(earlier)
    return round(latest.mean_confidence - mean, _DIGITS)

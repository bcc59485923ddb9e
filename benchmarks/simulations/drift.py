"""How often the drift tests cry wolf, and what they see.

A project is 52 weeks of draws from a mix, with confidences; each finished week is looked at once,
and where it says so the unfinished one on every day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from svc.stats.calibrators import Floats, Ints
from svc.stats.drift import DAYS, WEEKS_A_YEAR, WeekTally, latest_significance

Random = np.random.Generator
Confidences = Callable[[Random, int], Floats]


def sure(random: Random, n: int) -> Floats:
    """Mostly sure answers, with a long tail of doubt: a mean of 0.9."""
    return 0.5 + 0.5 * random.beta(4, 1, n)


def very_sure(random: Random, n: int) -> Floats:
    """What is hardest for a test of means: nearly all 0.999, one in twenty a guess."""
    return np.where(random.random(n) < 0.05, random.uniform(0.1, 0.6, n), 0.999)


@dataclass(frozen=True, slots=True)
class Project:
    """A question without drift; `spread` makes the mixes of weeks differ all the same."""

    name: str
    mix: Floats
    decisions: int
    confidences: Confidences = sure
    squares: bool = True
    # The standard deviation between weeks of an answer's share of one half.
    spread: float = 0.0
    volume: str = "steady"

    def days(self, random: Random, mix: Floats | None = None) -> list[WeekTally]:
        """One week as it stands at the end of each of its days."""
        mix = self._of_this_week(random, self.mix if mix is None else mix)
        sizes = self._sizes(random)
        parts = [self.part(random, mix, int(size)) for size in sizes]
        return list(accumulate(parts, _added))

    def week(self, random: Random, mix: Floats | None = None) -> WeekTally:
        """The whole of it."""
        chosen = self._of_this_week(random, self.mix if mix is None else mix)
        return self.part(random, chosen, int(self._sizes(random).sum()))

    def _sizes(self, random: Random) -> Ints:
        mean = self.decisions
        if self.volume == "uneven":
            mean = max(3, int(mean * random.lognormal(-0.5, 1.0)))
        sizes: Ints = random.multinomial(mean, np.full(DAYS, 1 / DAYS))
        return sizes

    def _of_this_week(self, random: Random, mix: Floats) -> Floats:
        if not self.spread:
            return mix
        strength = 0.25 / self.spread**2 - 1
        drawn: Floats = random.dirichlet(np.maximum(mix * strength, 1e-3))
        return drawn

    def part(self, random: Random, mix: Floats, n: int) -> WeekTally:
        counts = random.multinomial(n, mix)
        values = self.confidences(random, n)
        named = {str(top): int(count) for top, count in enumerate(counts) if count}
        squares = float((values**2).sum()) if self.squares else None
        return WeekTally("", named, float(values.sum()), squares)


def _added(one: WeekTally, other: WeekTally) -> WeekTally:
    tops = one.counts.keys() | other.counts.keys()
    counts = {top: one.counts.get(top, 0) + other.counts.get(top, 0) for top in sorted(tops)}
    known = one.squares is not None and other.squares is not None
    squares = (one.squares or 0.0) + (other.squares or 0.0) if known else None
    return WeekTally("", counts, one.confidence + other.confidence, squares)


def even(options: int) -> Floats:
    return np.full(options, 1 / options)


def long_tailed(options: int) -> Floats:
    """Shares as of the intents of a real service: by Zipf's law."""
    shares: Floats = 1 / np.arange(1, options + 1)
    shares /= shares.sum()
    return shares


QUIET = (
    Project("yes/no, 20 a week", even(2), 20),
    Project("yes/no, 20 a week, nine in ten yes", np.array([0.9, 0.1]), 20, very_sure),
    Project("yes/no, 100 a week", even(2), 100),
    Project("yes/no, 100 a week, 2% yes", np.array([0.02, 0.98]), 100, very_sure),
    Project("yes/no, 1,000 a week", even(2), 1_000),
    Project("yes/no, 1,000 a week, no squares", even(2), 1_000, squares=False),
    Project("5 options, 20 a week, very sure", long_tailed(5), 20, very_sure),
    Project(
        "5 options, 3 to 300 a week, very sure", long_tailed(5), 60, very_sure, volume="uneven"
    ),
    Project("77 options, 300 a week", even(77), 300),
    Project("77 options, long-tailed, 300 a week", long_tailed(77), 300, very_sure),
)
OVERDISPERSED = tuple(
    Project(
        f"yes/no, {decisions:,} a week, weeks differ by {points} points",
        even(2),
        decisions,
        spread=points / 100,
    )
    for decisions, points in (
        *((100, 2), (100, 3), (300, 2), (300, 3)),
        *((1_000, 1), (1_000, 2), (1_000, 3), (10_000, 0.5), (10_000, 1)),
    )
)
READ_DAILY = (QUIET[0], QUIET[2])
MONDAY = Project("a Monday with ten decisions, weeks of 100", even(5), 100)


def alarms(weeks: Sequence[WeekTally], *, finished: bool = True) -> dict[str, bool]:
    """Which of the tests of the last week raise an alarm."""
    last = latest_significance(weeks, mixed=True, finished=finished)
    return {name: bool(one and one["alarm"]) for name, one in last.items() if name in TESTS}


TESTS = ("mix", "confidence", "slow_mix", "slow_confidence")


def year(project: Project, seed: int, *, daily: bool = False) -> set[str]:
    """The tests that raise an alarm at some time of a year without drift."""
    random = np.random.default_rng(seed)
    before: list[WeekTally] = []
    raised: set[str] = set()
    for _ in range(WEEKS_A_YEAR):
        *days, whole = project.days(random)
        looks = [([*before, day], False) for day in days if daily and day.decisions]
        before.append(whole)
        raised |= {
            name
            for weeks, finished in [*looks, (before, True)]
            for name, alarm in alarms(weeks, finished=finished).items()
            if alarm
        }
    return raised


def mondays(seed: int) -> bool:
    """Whether a year of reports on Mondays, with ten decisions so far, has an alarm."""
    random = np.random.default_rng(seed)
    before: list[WeekTally] = []
    for _ in range(WEEKS_A_YEAR):
        ten = MONDAY.part(random, MONDAY.mix, 10)
        if any(alarms([*before, ten], finished=False).values()):
            return True
        before.append(MONDAY.week(random))
    return False


def shifted(points: float) -> Floats:
    return np.array([0.5 + points, 0.5 - points])


def flagged(decisions: int, path: Sequence[float], seed: int) -> list[set[str]]:
    """Which tests flag each week of a yes/no that moves along `path`, off an even mix."""
    random = np.random.default_rng(seed)
    project = Project("", even(2), decisions)
    weeks = [project.week(random, shifted(points)) for points in path]
    return [
        {name for name, alarm in alarms(weeks[: place + 1]).items() if alarm}
        for place in range(len(weeks))
    ]


def run(repetitions: int, seed: int) -> None:
    """Print the tables."""
    print(f"Drift: {repetitions} projects a row, from seed {seed}\n")
    print("| a year | with an alarm | of mix / confidence / slow mix / slow confidence |")
    print("|---|---|---|")
    for project in (*QUIET, *OVERDISPERSED):
        print(_quiet_row(project, repetitions, seed), flush=True)
    for project in READ_DAILY:
        print(_quiet_row(project, repetitions, seed, daily=True), flush=True)
    false = sum(mondays(seed + one) for one in range(repetitions))
    print(f"| {MONDAY.name} | {false / repetitions:.1%} | |", flush=True)
    print("\n| drift of a yes/no | decisions a week | flagged |\n|---|---|---|")
    for row in _power_rows(repetitions, seed):
        print(row, flush=True)


def _quiet_row(project: Project, repetitions: int, seed: int, *, daily: bool = False) -> str:
    years = [year(project, seed + one, daily=daily) for one in range(repetitions)]
    each = " / ".join(f"{np.mean([name in raised for raised in years]):.1%}" for name in TESTS)
    name = project.name + ", read daily" * daily
    return f"| {name} | {np.mean([bool(raised) for raised in years]):.1%} | {each} |"


SHIFT = ("10 points in one week, after 8 of none", [0.0] * 8 + [0.1])
SLOW = ("3 points a week for 8 weeks, from the first on", [0.03 * week for week in range(8)])
AFTER = (
    "3 points a week for 8 weeks, after a quiet month",
    [0.0] * 4 + [0.03 * w for w in range(1, 9)],
)
STEP = ("25 points that stay, after 8 weeks", [0.0] * 8 + [0.25] * 12)


def _power_rows(repetitions: int, seed: int) -> Iterator[str]:
    for name, path in (SHIFT, SLOW, AFTER):
        for decisions in (100, 300, 1_000):
            runs = [flagged(decisions, path, seed + one) for one in range(repetitions)]
            last = np.mean([bool(weeks[-1]) for weeks in runs])
            ever = np.mean([any(weeks) for weeks in runs])
            print_row = f"{last:.1%} in the last week, {ever:.1%} in one of them"
            yield f"| {name} | {decisions:,} | {print_row} |"
    for decisions in (100, 1_000):
        runs = [flagged(decisions, STEP[1], seed + one) for one in range(repetitions)]
        weekly = ", ".join(f"{np.mean([bool(r[8 + w]) for r in runs]):.0%}" for w in range(12))
        yield f"| {STEP[0]} | {decisions:,} | week by week: {weekly} |"

"""Faults of levels: their order, their steps, and whether they can be told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from svc.wording.text import gist, plain, shown
from svc.wording.wording import Spot, Wording

# Words that begin a level, by what they measure; lower words stand further to the left.
_SCALES = (
    "no,none,nothing,zero/minimal,negligible,trivial/low,little,minor,slight,small,mild"
    "/some,moderate,medium,middling/much,high,major,serious,large,strong,considerable"
    "/very high,very much,critical,extreme,severe,maximal,grave",
    "never/rarely,seldom/sometimes,occasionally/often,frequently,usually/always,constantly",
    "very negative,very bad,terrible,awful,horrible/negative,bad,poor"
    "/neutral,mixed,fair,average,acceptable,okay,ok/positive,good"
    "/very positive,very good,excellent,great,perfect,outstanding",
    "impossible/very unlikely/unlikely,improbable/possible/likely,probable/very likely/certain",
    "very dissatisfied/dissatisfied,unhappy/satisfied,happy/very satisfied,very happy,delighted",
    "strongly disagree/disagree/agree/strongly agree",
    "whenever/within a month/within a week/within a few days/tomorrow/today"
    "/now,at once,immediately",
    "very short/short/long/very long",
    "very cold,freezing/cold/cool/warm/hot/very hot",
)
_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {name: value for value, name in enumerate(_NAMES)}
_HEAD = re.compile(r"^[^:;,.(]*")
_SPAN = re.compile(r"^\W*(\d{1,9})(?:\s*(?:[-\N{EN DASH}]|to)\s*(\d{1,9}))?\b")
_BARE = re.compile(r"^\W*(?:level\s*)?\d+\W*$")


def _ranks(scale: str) -> Mapping[str, int]:
    steps = enumerate(scale.split("/"))
    return {name: rank for rank, names in steps for name in names.split(",")}


_RANKS = tuple(map(_ranks, _SCALES))


def out_of_order(wording: Wording) -> Iterator[Spot]:
    """A level that stands above one which is higher."""
    for place, (low, high) in enumerate(pairwise(wording.levels), 1):
        if any(_falls(ranks, low, high) for ranks in _RANKS) or _counts_down(low, high):
            yield Spot(f"levels[{place}]", f"{shown(high)} stands above {shown(low)}")
            return


def gap(wording: Wording) -> Iterator[Spot]:
    """Numbered levels with steps of different sizes, or ranges that do not meet."""
    spans = [_span(level) for level in wording.levels]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return
    if any(low != high for low, high in known):
        yield from _unmet(known)
    elif len({after - before for (before, _), (after, _) in pairwise(known)}) > 1:
        yield Spot("levels", f"their numbers are {', '.join(str(low) for low, _ in known)}")


def duplicate_level(wording: Wording) -> Iterator[Spot]:
    """A level that says the same as one before it."""
    gists = list(map(gist, wording.levels))
    for place, level in enumerate(wording.levels):
        for before, other in zip(wording.levels, gists[:place], strict=False):
            if gists[place].near(other):
                yield Spot(f"levels[{place}]", f"{shown(level)} says the same as {shown(before)}")
                break


def bare_levels(wording: Wording) -> Iterator[Spot]:
    """Levels that are numbers alone."""
    if wording.levels and all(map(_BARE.match, map(plain, wording.levels))):
        yield Spot("levels", "they are numbers alone")


def _falls(ranks: Mapping[str, int], low: str, high: str) -> bool:
    before, after = _rank(ranks, low), _rank(ranks, high)
    return before is not None and after is not None and before > after


def _rank(ranks: Mapping[str, int], level: str) -> int | None:
    """Where a level stands on a scale, by the words that it begins with."""
    found = _HEAD.match(plain(level))
    head = f"{found[0].strip() if found else ''} "
    begins = [name for name in ranks if head.startswith(f"{name} ")]
    return ranks[max(begins, key=len)] if begins else None


def _counts_down(low: str, high: str) -> bool:
    before, after = _span(low), _span(high)
    return before is not None and after is not None and before[0] > after[0]


def _span(level: str) -> tuple[int, int] | None:
    """The number or the range that a level begins with."""
    text = plain(level)
    if found := _SPAN.match(text):
        return int(found[1]), int(found[2] or found[1])
    number = _NUMBERS.get(text.split(" ")[0])
    return None if number is None else (number, number)


def _unmet(spans: list[tuple[int, int]]) -> Iterator[Spot]:
    for place, ((_, high), (low, _)) in enumerate(pairwise(spans), 1):
        if low not in (high, high + 1):
            yield Spot(f"levels[{place}]", f"it begins at {low}, the one before ends at {high}")
            return

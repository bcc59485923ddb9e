"""How models write probabilities in JSON: as shares or percentages, by label, by name, in lists."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

SHARES, PERCENT = 1.0, 100.0
BOTH = frozenset({SHARES, PERCENT})
SUM_SLACK = 5.0  # how far from 100 rounding may push a distribution in percentages
PARTLY = 20.0  # a number above this is a percentage also where some labels are missing
ENTRIES = 1_100  # of a list that are looked at: four times the most options there can be
ONE_SLACK = 1e-6  # how far over 1 rounding may push a share
SURE = 2 / 3  # the part of what is left that a label gets which is named without a probability
_LABEL_FIELDS = ("label", "option", "answer", "choice")
_NUMBER_FIELDS = ("probability", "confidence", "likelihood", "p")
_NAME_CHARS = 1_000  # of a name that are looked at
_NUMERIC = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{0,20})?)\s*(%?)\s*")
_LEADING_LABEL = re.compile(
    r"\s*[(\[\"'*]*([A-Za-z]{1,3})[)\]\"'*]*(?:\s*[.:)]|\s+[-\u2013\u2014]\s|\s*$)"
)


@dataclass(frozen=True, slots=True)
class Stated:
    """The probabilities that a reply states of one question, by label position, as written.

    `whole` says that they are of one distribution rather than independent, `complete` that no
    label is missing. `bare` are labels that were named without a number, the likeliest first.
    """

    numbers: Mapping[int, float] = field(default_factory=dict)
    bare: tuple[int, ...] = ()
    whole: bool = True
    complete: bool = False

    @property
    def scales(self) -> frozenset[float]:
        """The scales that the numbers may be on: parts of 1, parts of 100, or none that is known.

        Numbers of one distribution are percentages when they sum to about 100. Independent ones
        are when each may be one: 0.5 beside 85 is not half a per cent for certain.
        """
        values = self.numbers.values()
        if not any(values):
            return BOTH
        if max(values) <= 1 + ONE_SLACK:
            return frozenset({SHARES})
        if max(values) > PERCENT:
            return frozenset()
        if self.whole:
            total = math.fsum(values)
            near = abs(total - PERCENT) <= SUM_SLACK
            percent = near or (not self.complete and max(values) > PARTLY and total < PERCENT)
        else:
            percent = not any(0 < value < 1 for value in values)
        return frozenset({PERCENT}) if percent else frozenset()

    def on(self, scale: float) -> dict[int, float]:
        """The probabilities by label position, once their scale is known.

        Labels without a number share what is left, each two thirds of it in turn: which one the
        model means is known, how sure it is was not said.
        """
        if self.numbers:
            return {index: min(1.0, n / scale) for index, n in self.numbers.items()}
        return {index: SURE * (1 - SURE) ** rank for rank, index in enumerate(self.bare)}


def stated(member: Any, labels: Sequence[str], names: Sequence[str], whole: bool = True) -> Stated:
    """What a reply's member states of `labels`, which are also met by their `names`."""
    numbers: dict[int, float] = {}
    bare: dict[int, None] = {}
    place = {_folded(name): index for index, name in enumerate(names)}
    place |= {label.casefold(): index for index, label in enumerate(labels)}
    for name, value in islice(_entries(member), ENTRIES):
        index = _position(name, place, labels)
        number = number_of(value)
        if index is None:
            continue
        if number is not None:
            numbers.setdefault(index, number)
        elif value is None:
            bare.setdefault(index)
    return Stated(numbers, tuple(bare), whole, complete=len(numbers) == len(labels))


def number_of(value: Any) -> float | None:
    """A finite number, also one in a text; negative ones are cut to 0, and 85% is 0.85."""
    if isinstance(value, str) and (written := _NUMERIC.fullmatch(value)):
        return float(written[1]) / (PERCENT if written[2] else 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _entries(member: Any) -> Iterator[tuple[str, Any]]:
    """Each label that the member names, with what stands for its probability, or None."""
    if isinstance(member, str):
        yield member, None
    elif isinstance(member, bool):
        yield ("true" if member else "false"), None
    elif isinstance(member, Mapping):
        named = next((member[f] for f in _LABEL_FIELDS if isinstance(member.get(f), str)), None)
        if named is not None:
            yield named, next((member[f] for f in _NUMBER_FIELDS if f in member), None)
        else:
            yield from ((str(name), value) for name, value in member.items() if value is not None)
    elif isinstance(member, list):
        for entry in member[:ENTRIES]:
            if not isinstance(entry, list):
                yield from _entries(entry)
            elif len(entry) == 2 and isinstance(entry[0], str):
                yield entry[0], entry[1]


def _position(name: str, place: Mapping[str, int], labels: Sequence[str]) -> int | None:
    """The place of a label as models write it: `C`, `c`, `C. name`, `(C)`, or the option's name."""
    wanted = _folded(name[:_NAME_CHARS])
    if wanted in place:
        return place[wanted]
    leading = _LEADING_LABEL.match(wanted)
    if leading and (index := place.get(leading[1])) is not None:
        return index if labels[index].casefold() == leading[1] else None
    key, colon, _ = wanted.partition(":")
    return place.get(key.strip()) if colon else None


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()

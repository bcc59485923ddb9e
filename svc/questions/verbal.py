"""How models write probabilities in JSON: as shares or percentages, by label, by name, in lists."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHARES, PERCENT = 1.0, 100.0
BOTH = frozenset({SHARES, PERCENT})
SUM_SLACK = 5.0  # how far from 100 rounding may push a distribution in percentages
ONE_SLACK = 1e-6  # how far over 1 rounding may push a share
SURE = 2 / 3  # the part of what is left that a label gets which is named without a probability
_LABEL_FIELDS = ("label", "option", "answer", "choice")
_NUMBER_FIELDS = ("probability", "confidence", "likelihood", "p")
_NUMERIC = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{0,20})?)\s*(%?)\s*")
_LEADING_LABEL = re.compile(r"\s*[(\[\"'*]*([A-Za-z]{1,3})[)\]\"'*]*\s*[.:)\-\u2013]")


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
            least = PERCENT - SUM_SLACK if self.complete else 0.0
            percent = least <= total <= PERCENT + SUM_SLACK
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
    for name, value in _entries(member):
        index = _position(name, labels, names)
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
        for entry in member:
            if not isinstance(entry, list):
                yield from _entries(entry)
            elif len(entry) == 2 and isinstance(entry[0], str):
                yield entry[0], entry[1]


def _position(name: str, labels: Sequence[str], names: Sequence[str]) -> int | None:
    """The place of a label as models write it: `C`, `c`, `C. name`, `(C)`, or the option's name."""
    wanted = " ".join(name.split()).casefold()
    lowered = [label.casefold() for label in labels]
    if wanted in lowered:
        return lowered.index(wanted)
    for index, option in enumerate(names):
        if wanted and wanted == " ".join(option.split()).casefold():
            return index
    leading = _LEADING_LABEL.match(name + ".")
    if leading and leading[1].casefold() in lowered:
        return lowered.index(leading[1].casefold())
    return None

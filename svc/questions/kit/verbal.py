"""Reads probabilities as models write them in JSON: shares or percentages, by label or name."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from svc.memo import SizedMemo

SHARES, PERCENT = 1.0, 100.0
BOTH = frozenset({SHARES, PERCENT})

# How far from 100 rounding may push the sum of a distribution in percentages.
SUM_SLACK = 5.0

# Where some labels are missing, numbers are percentages if the largest is above this one.
PARTLY = 20.0

# How many entries of a list are looked at: four times the most options there can be. Of the labels
# that a member names so many are looked at for each that the question has, and so many more.
ENTRIES = 1_100
NAMED_EACH, NAMED_MORE = 4, 80

# How far over 1 rounding may push a share.
ONE_SLACK = 1e-6

# The part of the remaining probability for a label that is named without a number.
SURE = 2 / 3

_LABEL_FIELDS = ("label", "option", "answer", "choice")
_NUMBER_FIELDS = ("probability", "confidence", "likelihood", "p")

# Of a name so many more characters are looked at than the longest of its question has, and no more
# than these in all.
_NAME_MORE, _NAME_CHARS = 80, 1_000

_NUMERIC = re.compile(r"([0-9]{1,9}(?:\.[0-9]{0,20})?)\s*(%?)")
_LEADING_LABEL = re.compile(
    r"\s*[(\[\"'*]*([A-Za-z]{1,3})[)\]\"'*]{0,9}(?:\s*[.:)]|\s+[-\u2013\u2014]\s|\s*$)"
)


@dataclass(frozen=True, slots=True)
class Stated:
    """The probabilities that a reply states of one question, by label position, as written.

    `whole` says that they are one distribution rather than independent, and `complete` that no
    label is missing. `bare` are labels that were named without a number, the likeliest first.
    """

    numbers: Mapping[int, float] = field(default_factory=dict)
    bare: tuple[int, ...] = ()
    whole: bool = True
    complete: bool = False

    @property
    def scales(self) -> frozenset[float]:
        """The scales that the numbers may be on: parts of 1, parts of 100, or no known scale.

        Numbers of one distribution are percentages when they sum to about 100. Independent numbers
        are percentages unless one is between 0 and 1: next to 85, 0.5 may be 50% or 0.5%.
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

        Where labels were named without numbers, each in turn gets two thirds of what is left: the
        model said which label it prefers, but not how sure it is.
        """
        if self.numbers:
            return {index: min(1.0, n / scale) for index, n in self.numbers.items()}
        return {index: SURE * (1 - SURE) ** rank for rank, index in enumerate(self.bare)}


def stated(member: Any, labels: Sequence[str], names: Sequence[str], whole: bool = True) -> Stated:
    """What a reply's member states of `labels`; it may use their `names` instead."""
    numbers: dict[int, float] = {}
    bare: dict[int, None] = {}
    written = _written((tuple(labels), tuple(names)))
    for name, value in islice(_entries(member), NAMED_EACH * len(labels) + NAMED_MORE):
        index = None if name is None else written.position(name)
        if index is None:
            continue
        if (number := number_of(value)) is not None:
            numbers.setdefault(index, number)
        elif value is None:
            bare.setdefault(index)
    return Stated(numbers, tuple(bare), whole, complete=len(numbers) == len(labels))


def number_of(value: Any) -> float | None:
    """A finite number, also one in a text; negative ones are cut to 0, and 85% is 0.85."""
    if isinstance(value, float):
        return max(0.0, value) if math.isfinite(value) else None
    if isinstance(value, str) and (written := _NUMERIC.fullmatch(value.strip())):
        return float(written[1]) / (PERCENT if written[2] else 1.0)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    try:
        return max(0.0, float(value))
    except OverflowError:
        return None


def count_entries(member: Any) -> int:
    """How many entries of a reply's member `stated` looks at, at most."""
    if isinstance(member, list):
        looked_at = member[:ENTRIES]
        objects = [one for one in looked_at if isinstance(one, dict)]
        return len(looked_at) - len(objects) + sum(map(count_entries, objects))
    names_labels = isinstance(member, dict) and _label(member) is None
    return max(1, len(member)) if names_labels else 1


def _entries(member: Any) -> Iterator[tuple[str | None, Any]]:
    """Each label that the member names, with the value of its probability or None.

    What names none is an entry too: to look at many of them takes time.
    """
    if isinstance(member, str):
        yield member, None
    elif isinstance(member, bool):
        yield ("true" if member else "false"), None
    elif isinstance(member, dict):
        label = _label(member)
        if label is not None:
            yield label, next((member[name] for name in _NUMBER_FIELDS if name in member), None)
        else:
            for name, value in member.items() or [(None, None)]:
                yield (None if value is None else name), value
    elif isinstance(member, list):
        for entry in member[:ENTRIES]:
            if not isinstance(entry, list):
                yield from _entries(entry)
            elif len(entry) == 2 and isinstance(entry[0], str):
                yield entry[0], entry[1]
            else:
                yield None, None
    else:
        yield None, None


def _label(member: Mapping[str, Any]) -> str | None:
    """The label that an object is about, None where its members are labels themselves."""
    named = (member[name] for name in _LABEL_FIELDS if isinstance(member.get(name), str))
    return next(named, None)


class _Written:
    """The labels of a question, as models write them."""

    def __init__(self, labels: Sequence[str], names: Sequence[str]) -> None:
        """`names` are what the labels stand for, in the same order."""
        self._labels = labels
        self._chars = min(_NAME_CHARS, max(map(len, names), default=0) + _NAME_MORE)
        folded = [_folded(name) for name in names]
        self._shared = {name for name, times in Counter(folded).items() if times > 1}
        self._exact = {name: index for index, name in enumerate(names)}
        self._positions = {
            **{name: index for index, name in enumerate(folded) if name not in self._shared},
            **{label.casefold(): index for index, label in enumerate(labels)},
        }

    def position(self, name: str) -> int | None:
        """The position of a label that is written `C`, `c`, `C. name`, `(C)`, or by its name.

        Names that differ in case or blanks alone stand for one where they are written as it is.
        """
        wanted = _folded(name.strip()[: self._chars])
        if wanted in self._positions:
            return self._positions[wanted]
        if wanted in self._shared:
            return self._exact.get(name)
        leading = _LEADING_LABEL.match(wanted)
        if leading and (index := self._positions.get(leading[1])) is not None:
            return index if self._labels[index].casefold() == leading[1] else None
        key, colon, _ = wanted.partition(":")
        return self._positions.get(key.strip()) if colon else None


# The bytes that are filled here by a question, by each of its labels, and by each character of
# their names, of which folding case may make three. There is room for the labels of the largest
# request in both orders: its replies are read one after the other, so that less would keep none.
_QUESTION_BYTES, _LABEL_BYTES, _CHAR_BYTES = 1_500, 320, 16
_KEPT_BYTES = 21_000_000

_Labels = tuple[tuple[str, ...], tuple[str, ...]]


def _size(key: _Labels) -> int:
    """About how many bytes labels and their names fill."""
    _, names = key
    return _QUESTION_BYTES + _LABEL_BYTES * len(names) + _CHAR_BYTES * sum(map(len, names))


# Of a reply many parts are read, one after the other, and a request has many replies.
_written = SizedMemo(lambda key: _Written(*key), _size, _KEPT_BYTES)


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()

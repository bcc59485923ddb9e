"""Faults of figures: bounds that the words contradict, and thresholds without effect."""

from __future__ import annotations

import re
from collections.abc import Iterator

from svc.wording.wording import INSTRUCTIONS, Spot, Wording

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_RANGE = re.compile(
    rf"\b(?:from|between|scale of|range of) {_NUMBER} ?(?:to|and|[-\N{{EN DASH}}]) ?{_NUMBER}\b"
)
_AT_LEAST = re.compile(rf"\b(?:at least|not below|no less than) {_NUMBER}\b")
_AT_MOST = re.compile(rf"\b(?:at most|up to|no more than|not above) {_NUMBER}\b")
_CHARACTERS = re.compile(r"\b(?:at most|up to|no more than) (\d{1,9}) characters\b")
_ISO_DATE = re.compile(r"\byyyy-mm-dd\b")
_ISO_LENGTH = 10
_DECIMALS = re.compile(r"\b(?:decimals?|decimal places?|cents|a fraction)\b")
_PERCENT = re.compile(r"\bpercent\b|%")
_NULL = re.compile(r"\bnull\b|\bleave (?:it |this )?(?:empty|blank)\b")
# A confidence that hardly any answer reaches.
_CERTAIN = 0.999


def contradicted(wording: Wording) -> Iterator[Spot]:
    """Words that ask for what the fields of the question refuse."""
    text = wording.plain
    if wording.levels:
        yield from _levels(wording, text)
    elif wording.takes_words:
        yield from _length(wording, text)
    elif wording.takes_number:
        yield from _number(wording, text)


def refused_null(wording: Wording) -> Iterator[Spot]:
    """Words that allow null where the question does not."""
    never = wording.definition.get("nullable") is False
    if never and (found := _NULL.search(wording.plain)):
        yield Spot(INSTRUCTIONS, f'"{found[0]}" allows what `nullable: false` refuses')


def idle_threshold(wording: Wording) -> Iterator[Spot]:
    """A threshold that every answer reaches."""
    least, wanted = wording.answers, wording.question.min_confidence
    if least and wanted is not None and wanted <= 1 / least:
        what = f"the most probable of {least} answers has at least {1 / least:.3g}"
        yield Spot("min_confidence", what)
    if wording.threshold == 0:
        yield Spot("threshold", "every option has a probability of at least 0")


def unreachable_threshold(wording: Wording) -> Iterator[Spot]:
    """A threshold that no answer reaches."""
    wanted = wording.question.min_confidence
    if wanted is not None and wanted >= _CERTAIN:
        yield Spot("min_confidence", f"{wanted:g} is reached by certainty alone")
    if wording.threshold is not None and wording.threshold >= _CERTAIN:
        yield Spot("threshold", f"{wording.threshold:g} is reached by certainty alone")


def _levels(wording: Wording, text: str) -> Iterator[Spot]:
    if found := _RANGE.search(text):
        steps = float(found[2]) - float(found[1]) + 1
        if steps != len(wording.levels):
            yield Spot(INSTRUCTIONS, f'"{found[0]}" does not fit {len(wording.levels)} levels')


def _length(wording: Wording, text: str) -> Iterator[Spot]:
    longest = wording.definition["max_length"]
    found = _CHARACTERS.search(text)
    if found and int(found[1]) > longest:
        yield Spot("max_length", f'{longest} is less than "{found[0]}"')
    elif _ISO_DATE.search(text) and longest < _ISO_LENGTH:
        yield Spot("max_length", f"a date as YYYY-MM-DD has more than {longest} characters")


def _number(wording: Wording, text: str) -> Iterator[Spot]:
    low = float(wording.definition.get("min", "-inf"))
    high = float(wording.definition.get("max", "inf"))
    if found := _refused(text, low, high):
        yield Spot(INSTRUCTIONS, f'"{found}" does not fit the bounds {low:g} to {high:g}')
    elif wording.question.label_schema["type"] == ["integer", "null"] and (
        part := _DECIMALS.search(text)
    ):
        yield Spot(INSTRUCTIONS, f'"{part[0]}" does not fit a whole number')
    elif high <= 1 and (part := _PERCENT.search(text)):
        yield Spot(INSTRUCTIONS, f'"{part[0]}" does not fit a largest value of {high:g}')


def _refused(text: str, low: float, high: float) -> str:
    """The words that name a number outside the bounds."""
    if (found := _RANGE.search(text)) and (float(found[1]) < low or float(found[2]) > high):
        return found[0]
    if (found := _AT_LEAST.search(text)) and float(found[1]) > high:
        return found[0]
    if (found := _AT_MOST.search(text)) and float(found[1]) < low:
        return found[0]
    return ""

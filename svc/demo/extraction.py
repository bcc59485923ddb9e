"""Numbers and phrases that the demonstration model finds in an input by simple patterns."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence

from svc.demo.lexicon import STOP_WORDS, plain_words, stem, stems

SURE, LIKELY, UNSURE, GUESS = 0.9, 0.75, 0.5, 0.1

# Only the beginning of the input is searched.
READ_CHARS = 20_000

# A number within this distance of a word of the question is probably the wanted one.
NEAR_CHARS = 40

# The value, and the probability that it is right.
Found = tuple[str | float | None, float]

_UNIT_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_UNITS = _UNIT_WORDS.split()
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORD_VALUES = {
    **{word: float(value) for value, word in enumerate(_UNITS)},
    **{word: float(value * 10) for value, word in enumerate(_TEN_WORDS.split(), 2)},
    "dozen": 12.0,
}
_SCALES = {"hundred": 100.0, "thousand": 1e3, "million": 1e6}
_NUMBER = re.compile(
    rf"(?<![\w./-])-?\d{{1,3}}(?:,\d{{3}}){{1,6}}(?:\.\d{{1,9}})?(?!\w)|"
    rf"(?<![\w./-])-?\d{{1,18}}(?:\.\d{{1,9}})?(?![\w:/])|"
    rf"\b(?:{'|'.join(_WORD_VALUES)})(?:[- ](?:{'|'.join((*_UNITS, *_SCALES))}))?\b",
    re.IGNORECASE,
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DAY = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day"
_CAPITALS = r"[A-Z][\w'\u2019-]{0,30}(?: [A-Z][\w'\u2019-]{0,30}){0,3}"

_DATE = (
    r"\b\d{4}[-/]\d\d[-/]\d\d\b",
    r"\b\d\d?[./]\d\d?[./]\d{2,4}\b",
    rf"\b\d\d?(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?\b",
    rf"\b{_MONTH} \d\d?(?:st|nd|rd|th)?(?:,? \d{{4}})?\b",
    rf"\b(?:next )?{_DAY}\b",
    r"\b(?:today|tomorrow|tonight|yesterday)\b",
)
_TIME = (
    r"\b\d\d?:\d\d(?: ?[ap]\.?m\b\.?)?",
    r"\b\d\d? ?[ap]\.?m\b\.?",
    r"\b(?:noon|midnight)\b",
)
_ID = (r"#\w{1,40}", r"\b(?=[\w-]{0,40}\d)[A-Z]{1,10}-?[\w-]{1,40}", r"\b\d{4,40}\b")
_NAMED = "my name is|this is|i am|i'm|name:|under|regards,|sincerely,"

# Words of a question, and the pattern of what they ask for; its group, if any, is the value.
_KINDS = tuple(
    (re.compile(rf"\b(?:{cues})\b", re.IGNORECASE), re.compile(pattern))
    for cues, pattern in (
        ("e-?mail", r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"),
        ("url|link|website", r"https?://\S{1,500}"),
        ("phone|telephone|mobile", r"\+?\d[\d ()/-]{5,18}\d"),
        ("date|day|when", f"(?i:{'|'.join(_DATE)})"),
        ("time|hour|when", f"(?i:{'|'.join(_TIME)})"),
        ("name|who|called", rf"\b(?i:{_NAMED})\s({_CAPITALS})"),
        ("id|number|code|order|reference|invoice|serial|ticket", "|".join(_ID)),
        ("where|city|place|country|address", rf"\b(?:in|at|from|to|near)\s({_CAPITALS})"),
    )
)
_QUOTED = re.compile(r"[\"\u201c\u00ab]([^\"\u201d\u00bb\n]{1,500})[\"\u201d\u00bb]")


def number(instructions: str, text: str, whole: bool, low: float, high: float) -> Found:
    """The number within the bounds that stands nearest to words of the question."""
    text = text[:READ_CHARS]
    cues = _cue_positions(instructions, text)
    candidates = []
    for match in _NUMBER.finditer(text):
        value = _value(match[0])
        if low <= value <= high and not (whole and value % 1):
            candidates.append((_distance(match.start(), match.end(), cues), match.start(), value))
    if not candidates:
        return None, SURE
    distance, _, value = min(candidates)
    near, alone = distance <= NEAR_CHARS, len({value for _, _, value in candidates}) == 1
    return value, SURE if near and alone else LIKELY if near or alone else UNSURE


def phrase(instructions: str, text: str, longest: int) -> Found:
    """A thing of the kind that the question asks for, of at most `longest` characters."""
    text = text[:READ_CHARS]
    cues = _cue_positions(instructions, text)
    for cue, pattern in _KINDS:
        if cue.search(instructions):
            matches = [
                match
                for match in pattern.finditer(text)
                if len(match[match.lastindex or 0]) <= longest
            ]
            if matches:
                best = min(matches, key=lambda match: _distance(match.start(), match.end(), cues))
                return best[best.lastindex or 0], SURE if len(matches) == 1 else LIKELY
    for value, confidence in (
        (_after_cue(instructions, text), LIKELY),
        (_quoted(text), UNSURE),
    ):
        if value and len(value) <= longest:
            return value, confidence
    return None, LIKELY


def _after_cue(instructions: str, text: str) -> str:
    """What follows a word of the question and `is`, `was`, `:` or `=`."""
    words = [word for word in plain_words(instructions) if word not in STOP_WORDS]
    for word in words[-8:]:
        pattern = rf"\b{re.escape(word)}\b(?:\s(?:is|was)\b|\s?[:=])\s*([^\n,;.!?]{{1,500}})"
        if match := re.search(pattern, text, re.IGNORECASE):
            return match[1].strip()
    return ""


def _quoted(text: str) -> str:
    match = _QUOTED.search(text)
    return match[1].strip() if match else ""


def _cue_positions(instructions: str, text: str) -> list[int]:
    wanted = set(stems(plain_words(instructions)))
    matches = re.finditer(r"[^\W\d_]+", text)
    return [match.start() for match in matches if stem(match[0].lower()) in wanted]


def _distance(start: int, end: int, cues: Sequence[int]) -> int:
    """Characters from a match to the nearest word of the question on either side."""
    after = bisect(cues, start)
    before = start - cues[after - 1] if after else len(cues) + 10**6
    behind = cues[after] - end if after < len(cues) else len(cues) + 10**6
    return min(before, behind)


def _value(written: str) -> int | float:
    """The value of digits or of number words."""
    if written[-1].isdigit():
        digits = written.replace(",", "")
        return float(digits) if "." in digits else int(digits)
    first, *rest = re.split(r"[- ]", written.lower())
    value = _WORD_VALUES[first]
    for word in rest:
        value = value * _SCALES[word] if word in _SCALES else value + _WORD_VALUES[word]
    return value

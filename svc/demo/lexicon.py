"""Words as the demonstration model sees them: stems, synonyms, urgency and sentiment.

All of it is everyday English, and small on purpose. Other languages are matched by their letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_SUFFIX_WORDS = "ation ment ing ion ate ive al ed ly e y i"
_SUFFIXES = tuple(_SUFFIX_WORDS.split())

# From this character on, scripts put no spaces between words.
_UNSPACED = "\u2e80"

_LEAST_STEM = 3

_STOP_WORDS = (
    "a about after all also am an and any are as at be because been before being but by can could "
    "did do does doing for from get got had has have having he her here him his how i if in into "
    "is it its just like me more most my of off on or other our out over please she should so some "
    "such than that the their them then there these they this those to too up us very was we were "
    "what when where which while who whom whose why will with would you your it's i'm i've i'd "
    # Words that most questions about an input contain.
    "answer applies apply ask asks asked author best caller client contain contains customer "
    "decide describe describes fit fits given holds input mention mentioned mentions message "
    "option person question sender state talk text ticket touch topic user want wants writer"
)
_NEGATIONS = "no not never none nothing without neither nor cannot hardly"

_SYNONYMS = (
    "payment charge bill billing invoice fee cost price paid",
    "error bug crash broken fail failure outage problem fault technical",
    "late delay wait slow overdue",
    "cancel terminate close end stop quit unsubscribe",
    "deliver delivery ship shipment parcel package courier arrive arrival",
    "lost missing stolen disappear",
    "buy purchase order sale",
    "refund reimburse return reimbursement",
    "password passcode login sign credentials",
    "decline reject refuse deny",
    "account profile",
    "change edit update modify",
    "help support assist",
)
_URGENCY = {
    0.0: "whenever eventually someday low minor trivial routine relaxed optional",
    0.5: "soon medium moderate normal week",
    0.8: "today high important serious significant major quickly deadline tonight",
    1.0: "urgent urgently asap immediately emergency critical now instantly severe outage down",
}
_SENTIMENT = {
    -1.0: "furious terrible awful horrible worst hate disgusting unacceptable outrageous angry",
    -0.6: "bad poor negative disappointed upset unhappy annoyed frustrated complaint wrong broken "
    "dissatisfied useless rude late fail sad problem",
    0.0: "neutral calm okay ok fine average mixed",
    0.6: "good nice positive happy pleased satisfied thank thanks helpful friendly",
    1.0: "great excellent amazing love perfect wonderful fantastic delighted brilliant best",
}

# A negation multiplies the value of a word by this, for urgency and for sentiment.
_OPPOSITES = (0.0, -0.5)

_DEGREES = {
    "slightly": 0.4,
    "somewhat": 0.5,
    "fairly": 0.7,
    "very": 1.3,
    "extremely": 1.5,
}


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A lower-case word without its most common endings."""
    if len(word) > _LEAST_STEM and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _LEAST_STEM:
            word = word[: -len(suffix)]
            break
    if len(word) > _LEAST_STEM and word[-1] == word[-2]:
        word = word[:-1]
    return word


def plain_words(text: str) -> list[str]:
    """The lower-case words of a text, in order; of unspaced scripts, pairs of characters."""
    words: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word[0] >= _UNSPACED and len(word) > 2:
            words += [word[start : start + 2] for start in range(len(word) - 1)]
        else:
            words.append(word)
    return words


def stems(words: Iterable[str]) -> list[str]:
    """The stems of the words that carry meaning."""
    return [stem(word) for word in words if word not in STOP_WORDS and word not in NEGATIONS]


def tone(words: Sequence[str]) -> tuple[float | None, float | None]:
    """Urgency (0 to 1) and sentiment (-1 to 1) of a text by its strongest word; None without one.

    A negated word of urgency counts as 0, and one of sentiment as half of its opposite.
    """
    by_axis: tuple[list[float], list[float]] = ([], [])
    for position, word in enumerate(words):
        root = stem(word)
        for values, axis, opposite in zip(by_axis, AXES, _OPPOSITES, strict=True):
            if root in axis:
                scale = _DEGREES.get(words[position - 1], 1.0) if position else 1.0
                values.append(axis[root] * scale * (opposite if negated(words, position) else 1.0))
    urgency, sentiment = (max(values, key=abs, default=None) for values in by_axis)
    return urgency, sentiment


def negated(words: Sequence[str], position: int) -> bool:
    """Whether one of the three words before `position` negates it."""
    return any(
        word in NEGATIONS or word.endswith(("n't", "n\u2019t"))
        for word in words[max(0, position - 3) : position]
    )


STOP_WORDS = frozenset(_STOP_WORDS.split())
NEGATIONS = frozenset(_NEGATIONS.split())
SYNONYMS = {
    stem(word): frozenset(stem(other) for other in group.split())
    for group in _SYNONYMS
    for word in group.split()
}
AXES = tuple(
    {stem(word): value for value, words in axis.items() for word in words.split()}
    for axis in (_URGENCY, _SENTIMENT)
)

"""Sentences, words and what they have in common, as the faults compare them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['-][^\W\d_]+)*")
_ASKS = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_ENDS = re.escape("".join([".!", *_ASKS]))
_SENTENCE = re.compile(rf"[^{_ENDS}]*[{_ENDS}]*")
_CLAUSE = re.compile(r"[,;:()\n]|\b(?:and|or|but)\b")


def word_set(*lines: str) -> frozenset[str]:
    """The words of some lines."""
    return frozenset(word for line in lines for word in line.split())


_NEGATIONS = word_set(
    "not no never none nobody nothing without neither nor cannot unless fail fails lack lacks"
)
# Words that say nothing of what an option is about.
_EMPTY = word_set(
    "a about an and any are as at be been being but by for from had has have he her his how i if",
    "in into is it its more of on one or our out she so some somebody something such than that the",
    "their them then there these they this those to up was we were what when where which who will",
    "with you your",
)
# Two texts with this share of their words in common are near.
_NEAR = 0.75
# Characters of a text that a finding repeats.
_SHOWN = 60


def plain(text: str) -> str:
    """The text in lower case on one line, with straight apostrophes."""
    return " ".join(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").casefold().split())


def words(text: str) -> list[str]:
    """The words and numbers of a text in lower case, in their order."""
    return _WORD.findall(plain(text))


class Gist(NamedTuple):
    """What two texts are compared by."""

    content: frozenset[str]
    numbers: tuple[str, ...]
    denies: bool

    def near(self, other: Gist) -> bool:
        """Whether nearly all words are the same, and both deny and count alike."""
        return self._near(other, len(self.content & other.content))

    def overlaps(self, other: Gist, common: int) -> bool:
        """Whether they are near, or all that one is about, two words or more, is in the other.

        Both deny and count alike, and have so many words in `common`.
        """
        mine, theirs = len(self.content), len(other.content)
        return (common > 1 and common in (mine, theirs)) or self._near(other, common)

    def _near(self, other: Gist, common: int) -> bool:
        either = len(self.content) + len(other.content) - common
        return bool(self.content) and self[1:] == other[1:] and common / either >= _NEAR


def gist(text: str) -> Gist:
    """What a text is compared by; singular and plural are alike."""
    said = words(text)
    content = frozenset(_stem(word) for word in said if word not in _EMPTY)
    numbers = tuple(word for word in said if word[0].isdigit())
    return Gist(content, numbers, negated(text) > 0)


def negated(text: str) -> int:
    """How many negations a text has; `whether or not` is none."""
    return sum(map(_negates, words(plain(text).replace("or not", ""))))


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text with their ends."""
    return (part.strip() for part in _SENTENCE.findall(text) if part.strip())


def asked(text: str) -> list[str]:
    """The sentences that end in a question mark."""
    return [sentence for sentence in sentences(text) if sentence.endswith(_ASKS)]


def clauses(sentence: str) -> list[str]:
    """The parts of a sentence between commas and conjunctions."""
    return _CLAUSE.split(plain(sentence))


def spaced(key: str) -> str:
    """A key as words: `late_delivery` is `late delivery`."""
    return " ".join(words(key.replace("_", " ").replace("-", " ")))


def shown(text: str) -> str:
    """The beginning of a text, quoted."""
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= _SHOWN else f'"{line[: _SHOWN - 1]}…"'


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word

"""How the demonstration model decides: words that the input shares with an option or a question.

It is not a language model. Every number here was chosen by hand, with a look at public data, so
that the probabilities look reasonable on everyday messages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from svc.demo.lexicon import SYNONYMS, negated, plain_words, stem, stems, tone
from svc.demo.prompt_reading import PromptQuestion, letters

ESCAPE = "none_of_these"

# The escape option has this score, so that it wins when hardly a word is shared.
ESCAPE_SCORE = 0.5

# A word of the question that stands in the input only as a synonym counts as this much of a word.
SYNONYM_WEIGHT = 0.5

# Shared parts of words only decide between options that are otherwise equal.
GRAM_WEIGHT = 0.3

TONE_WEIGHT = 2.0
EXAMPLE_WEIGHT = 1.5
TEMPERATURE = 0.35

# The first option gets this bonus and the later ones less, because models prefer what stands first.
ORDER_BONUS = 0.05

# Yes is as likely as no when the input has this share of the question's words.
YES_CENTRE = 0.45
YES_SLOPE = 6.0

# The urgency and sentiment of a text that shows none.
NO_TONE = (0.2, 0.0)

# A weaker tone of the question is not compared with that of the input.
SHOWN_TONE = 0.3


class Evidence:
    """The words of the input; each view of them is made when it is first used."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = plain_words(text)
        self.stems = set(stems(self.words))

    @cached_property
    def grams(self) -> set[str]:
        return _grams(self.stems)

    @cached_property
    def negated(self) -> set[str]:
        """Stems that are negated wherever they occur."""
        plain, negatives = set[str](), set[str]()
        for position, word in enumerate(self.words):
            (negatives if negated(self.words, position) else plain).add(stem(word))
        return negatives - plain

    @cached_property
    def tone(self) -> tuple[float, float]:
        urgency, sentiment = tone(self.words)
        return (
            NO_TONE[0] if urgency is None else urgency,
            NO_TONE[1] if sentiment is None else sentiment,
        )

    def holds(self, root: str) -> float:
        """1 where the stem stands in the input, less where a synonym does, else 0."""
        if root in self.stems:
            return 1.0
        return 0.0 if self.stems.isdisjoint(SYNONYMS.get(root, ())) else SYNONYM_WEIGHT


@dataclass(frozen=True, slots=True)
class _OptionTerms:
    """The stems and grams of an option, of which the rarer ones weigh more."""

    escape: bool
    stems: dict[str, float]
    grams: dict[str, float]
    tone: tuple[float | None, float | None]

    def score(self, evidence: Evidence) -> float:
        if self.escape:
            return ESCAPE_SCORE
        words = math.fsum(evidence.holds(root) * weight for root, weight in self.stems.items())
        shared = self.grams.keys() & evidence.grams
        grams = math.fsum(self.grams[gram] for gram in sorted(shared))
        return words / _root(self.stems) + GRAM_WEIGHT * grams / _root(self.grams)


def distribution(question: PromptQuestion, count: int, evidence: Evidence) -> list[float]:
    """The probability of each of the `count` options from the top; they sum to 1."""
    scores = _scores(question, count, evidence)
    largest = max(scores)
    weights = [math.exp((score - largest) / TEMPERATURE) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def applies(question: PromptQuestion, count: int, evidence: Evidence) -> list[float]:
    """The probability that each of the `count` options holds, each on its own."""
    scores = _scores(question, count, evidence)
    return [_sigmoid((score - ESCAPE_SCORE) / TEMPERATURE) for score in scores]


def yes(question: PromptQuestion, no_first: bool, evidence: Evidence) -> float:
    """The probability of yes; the answer that is named first gets the order's bonus."""
    roots, tones = _stems_and_tone(question.instructions)
    matches = (evidence.holds(root) * (-1 if root in evidence.negated else 1) for root in roots)
    share = math.fsum(matches) / len(roots) if roots else 0.0
    for of_question, of_input in zip(tones, evidence.tone, strict=True):
        if of_question is not None and abs(of_question) >= SHOWN_TONE:
            share = max(share, 1 - abs(of_question - of_input))
    bonus = (-ORDER_BONUS if no_first else ORDER_BONUS) / TEMPERATURE
    against, in_favour = _example_bonuses(question, ("no", "yes"), evidence)
    return _sigmoid(YES_SLOPE * (share - YES_CENTRE) + bonus + in_favour - against)


def _scores(question: PromptQuestion, count: int, evidence: Evidence) -> list[float]:
    texts = (question.options + ("",) * count)[:count]
    options = _profile(texts)
    scores = [
        option.score(evidence) + ORDER_BONUS / (1 + index) for index, option in enumerate(options)
    ]
    for axis in (0, 1):
        tones = [option.tone[axis] for option in options]
        # Where half of the options have a tone, they are degrees on this axis.
        if tones.count(None) * 2 <= count:
            for index, value in enumerate(tones):
                if value is not None:
                    scores[index] += TONE_WEIGHT * (1 - abs(value - evidence.tone[axis]))
    bonuses = _example_bonuses(question, list(islice(letters(), count)), evidence)
    return [score + bonus for score, bonus in zip(scores, bonuses, strict=True)]


def _example_bonuses(
    question: PromptQuestion, answers: Sequence[str], evidence: Evidence
) -> list[float]:
    """For each answer, how similar the input is to the examples with this answer."""
    bonuses = [0.0] * len(answers)
    for text, solution in question.examples:
        words = set(stems(plain_words(text)))
        likeness = len(words & evidence.stems) / math.sqrt(1 + len(words) * len(evidence.stems))
        for index, answer in enumerate(answers):
            if answer in solution.split(", "):
                bonuses[index] += EXAMPLE_WEIGHT * likeness
    return bonuses


# Many calls have the same questions.
@lru_cache(maxsize=64)
def _stems_and_tone(instructions: str) -> tuple[list[str], tuple[float | None, float | None]]:
    """The stems of a question in a fixed order, and its own tone."""
    words = plain_words(instructions)
    return sorted(set(stems(words))), tone(words)


@lru_cache(maxsize=64)
def _profile(texts: tuple[str, ...]) -> tuple[_OptionTerms, ...]:
    words = [plain_words(text) for text in texts]
    roots = [set(stems(some) or map(stem, some)) for some in words]
    grams = [_grams(some) for some in roots]
    return tuple(
        _OptionTerms(text.partition(": ")[0] == ESCAPE, stem_weights, gram_weights, tone(some))
        for text, some, stem_weights, gram_weights in zip(
            texts, words, _rarity(roots), _rarity(grams), strict=True
        )
    )


def _rarity(sets: Sequence[set[str]]) -> list[dict[str, float]]:
    """The inverse frequency of each feature over the options, in a fixed order."""
    counts = Counter(feature for some in sets for feature in some)
    return [
        {feature: math.log(1 + len(sets) / counts[feature]) for feature in sorted(some)}
        for some in sets
    ]


def _grams(roots: set[str]) -> set[str]:
    return {root[start : start + 3] for root in roots for start in range(len(root) - 2)}


def _root(weights: dict[str, float]) -> float:
    return math.sqrt(math.fsum(weights.values())) or 1.0


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))

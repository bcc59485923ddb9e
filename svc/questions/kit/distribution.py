"""What `choice`, `score` and `noul` share: the answer is one of several labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from svc.questions.kit.base import (
    LabelLine,
    LabelQuestion,
    Reading,
    Unreadable,
    object_schema,
    probability_schema,
    to_digits,
)
from svc.questions.kit.lettering import complete, letters, normalised, one_line, tidy
from svc.questions.kit.verbal import Stated, stated
from svc.shapes import Json

# Probabilities that are further apart differ in the seven digits that are stored.
_NEARLY = 1 - 2e-6


@dataclass(frozen=True, kw_only=True)
class Distribution(LabelQuestion):
    """A question answered by one of several labels: choice, score and noul."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The labels a model replies with, in the order shown."""

    def shown_labels(self, backwards: bool) -> tuple[str, ...]:
        """The labels in the order shown; letters start at the top in either option order."""
        return self.labels

    def reply_lines(self, backwards: bool) -> list[tuple[str, tuple[str, ...]]]:
        return [("", self.shown_labels(backwards))]

    def verbal_format(self, backwards: bool) -> str:
        labels = ", ".join(self.shown_labels(backwards))
        return f"an object with a probability from 0 to 1 for each of {labels}; they sum to 1"

    def verbal_schema(self, backwards: bool, bounded: bool = False) -> Json:
        return probabilities_schema(self.shown_labels(backwards), bounded)

    def read_lines(self, lines: Sequence[LabelLine], backwards: bool) -> Reading:
        (line,) = lines
        shown = complete(line.probabilities, len(self.labels), bound=line.bound)
        return self.reading(shown, backwards, line.mass)

    def shown_names(self, backwards: bool) -> tuple[str, ...]:
        """Other words for the labels, in the order shown, that a reply may use instead."""
        return ()

    def stated(self, member: Any, backwards: bool) -> Stated:
        return stated(member, self.shown_labels(backwards), self.shown_names(backwards))

    def read_stated(self, stated: Stated, member: Any, backwards: bool, scale: float) -> Reading:
        named = stated.on(scale)
        if len(self.labels) == 2 and len(named) == 1:
            # The other one of two labels has the rest of the probability.
            ((index, p),) = named.items()
            named = {index: p, 1 - index: 1 - p}
        shown = complete(named, len(self.labels), bound=self._bound(named))
        return self.reading(shown, backwards)

    def _bound(self, stated: Mapping[int, float]) -> float:
        """The most that a label may have which a reply does not name: as much as those it names.

        Raises `Unreadable` where such a label would have more than any that the reply names.
        """
        missing = len(self.labels) - len(stated)
        if not stated or not missing:
            return 1.0
        if (1 - math.fsum(stated.values())) / missing > max(stated.values()):
            raise Unreadable("the labels that the reply leaves out outweigh those that it names")
        return min(stated.values())

    def reading(
        self, shown: tuple[float, ...] | None, backwards: bool, mass: float | None = None
    ) -> Reading:
        """The reading in the question's own order, from probabilities in the order shown."""
        if shown is None:
            raise Unreadable("no probability for any of the labels")
        return Reading(shown[::-1] if backwards else shown, mass)

    def merge(self, readings: Sequence[Reading]) -> Reading:
        mean = super().merge(readings)
        return replace(mean, probabilities=normalised(mean.probabilities))

    def confidence(self, reading: Reading) -> float:
        return max(reading.probabilities)


@dataclass(frozen=True, kw_only=True)
class Lettered(Distribution):
    """A distribution over options that stand in the prompt as lettered lines."""

    @property
    @abstractmethod
    def option_texts(self) -> tuple[str, ...]:
        """One line of text per option, in the question's order."""

    @property
    def labels(self) -> tuple[str, ...]:
        return letters(len(self.option_texts))

    def option_lines(self, backwards: bool) -> list[str]:
        return lettered(self.option_texts, backwards)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What the caller calls the labels, in the question's order."""

    def shown_names(self, backwards: bool) -> tuple[str, ...]:
        return self.names[::-1] if backwards else self.names

    def best(self, reading: Reading) -> int:
        """The position of the most probable label.

        Of equal ones it is the first in the order of `definition`: so do labels count, which know
        probabilities as they are stored and no order of options but that one.
        """
        first, *others = self._nearly_best(reading)
        p = reading.probabilities
        if all(p[place] == p[first] for place in others):
            return first
        return max(first, *others, key=to_digits(p).__getitem__)

    def _nearly_best(self, reading: Reading) -> list[int]:
        """Those that may be equal to the most probable one as they are stored; mostly it alone."""
        p = reading.probabilities
        least = _NEARLY * max(p)
        return [place for place in self.defined_places if p[place] >= least]

    @property
    def defined_places(self) -> Sequence[int]:
        """The positions of the labels, in the order of `definition`."""
        return range(len(self.labels))

    def one_hot(self, index: int) -> Reading:
        """All probability on one label."""
        return Reading(tuple(float(i == index) for i in range(len(self.labels))))

    def letter(self, index: int, backwards: bool) -> str:
        """The letter that a label has in the order shown."""
        return self.labels[::-1][index] if backwards else self.labels[index]

    def rounded(self, reading: Reading) -> list[float]:
        if len(self._nearly_best(reading)) == 1:
            return tidy(reading.probabilities)
        # In a tie the label that is the answer is rounded up first, so that none is above it.
        return tidy(to_digits(reading.probabilities), self.defined_places)

    def shown_confidence(self, reading: Reading) -> float:
        return max(self.rounded(reading))


def lettered(texts: Sequence[str], backwards: bool) -> list[str]:
    """`A. text` lines; reversed, the last text gets the first letter."""
    shown = texts[::-1] if backwards else texts
    return [f"{letter}. {text}" for letter, text in zip(letters(len(texts)), shown, strict=True)]


def option_text(key: str, description: str) -> str:
    """How one option reads in a prompt."""
    return one_line(f"{key}: {description}" if description.strip() else key)


def probabilities_schema(labels: Sequence[str], bounded: bool = False) -> Json:
    """JSON schema of an object with a probability for each label."""
    return object_schema({label: probability_schema(bounded) for label in labels})

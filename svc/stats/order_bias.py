"""What the order of options does to a model's probabilities, learned from answers in both orders.

Models prefer labels by where they stand. By PriDe the logarithm of what a model gives an option is
about the sum of a prior of its position and of what the model thinks of the option (Zheng et al.,
"Large Language Models Are Not Robust Multiple Choice Selectors", ICLR 2024, arXiv 2309.03882,
section 4). In the reversed order the prior alone is another one, so that the ratio of an option's
two probabilities is the same in every answer, and one order tells what the other would have been.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

# Smaller probabilities say little of the prior: most of them are bounds of what a reply left out.
FLOOR = 1e-3

# The pairs that the mean of ratios goes back over, so that it follows a model that changes.
WINDOW = 200


class OrderBias:
    """The mean ratios of reversed to original probabilities of one model and question.

    `exclusive` probabilities sum to 1; others stand for a yes or no each.
    """

    def __init__(self, exclusive: bool) -> None:
        self._exclusive = exclusive
        # An array, as a process keeps those of thousands of questions.
        self._log_ratios = array("d")
        # How many pairs were learned from.
        self.pairs = 0

    def learn(self, original: Sequence[float], reversed_: Sequence[float]) -> None:
        """Learn from an answer in both orders, both in the order of the question's options."""
        scores = zip(self._scores(original), self._scores(reversed_), strict=True)
        found = [second - first for first, second in scores]
        self.pairs += 1
        if self.pairs == 1:
            self._log_ratios = array("d", found)
            return
        rate = 1 / min(self.pairs, WINDOW)
        pairs = zip(self._log_ratios, found, strict=True)
        self._log_ratios = array("d", (mean + rate * (one - mean) for mean, one in pairs))

    def reversed_of(self, original: Sequence[float]) -> tuple[float, ...]:
        """What the reversed order would give by what was learned from one pair or more."""
        scores = zip(self._scores(original), self._log_ratios, strict=True)
        moved = [score + ratio for score, ratio in scores]
        if not self._exclusive:
            return tuple(1 / (1 + math.exp(-score)) for score in moved)
        most = max(moved)
        weights = [math.exp(score - most) for score in moved]
        total = math.fsum(weights)
        return tuple(weight / total for weight in weights)

    def distance(self, one: Sequence[float], other: Sequence[float]) -> float:
        """How far two answers are apart, from 0 to 1.

        For exclusive probabilities it is their total variation distance, else the largest
        difference.
        """
        differences = [abs(a - b) for a, b in zip(one, other, strict=True)]
        return math.fsum(differences) / 2 if self._exclusive else max(differences)

    def _scores(self, probabilities: Sequence[float]) -> list[float]:
        """Logarithms of exclusive probabilities, log-odds of others."""
        if self._exclusive:
            return [math.log(max(p, FLOOR)) for p in probabilities]
        bounded = (min(max(p, FLOOR), 1 - FLOOR) for p in probabilities)
        return [math.log(p / (1 - p)) for p in bounded]

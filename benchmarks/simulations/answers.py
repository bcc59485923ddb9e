"""Answers with a known chance of being right, for simulations of promises."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.bayes import NaiveBayes
from svc.stats.calibrators import Floats, Ints
from svc.stats.tasks import SHOWN

Random: TypeAlias = np.random.Generator
# Confidences and whether each answer was right.
Labelled: TypeAlias = tuple[Floats, Ints]

# Messages that naive Bayes is trained on: so few that it is as wrong as the model of the issue.
TRAINED = 350
INTENTS = 10


@dataclass(frozen=True)
class World:
    """How confidences are drawn, and how often answers of a confidence are right."""

    name: str
    draw: Callable[[Random, int], Floats]
    accuracy: Callable[[Floats], Floats]

    def labels(self, random: Random, n: int) -> Labelled:
        confidence = np.round(self.draw(random, n), SHOWN)
        return confidence, (random.random(n) < self.accuracy(confidence)).astype(np.int64)

    def worse(self, fall: float) -> World:
        """The same where each answer is right `fall` less often."""
        return World(self.name, self.draw, lambda c: np.maximum(self.accuracy(c) - fall, 0))

    def above(self, threshold: float) -> tuple[float, float]:
        """The accuracy of answers at or above a threshold, and their share."""
        reached = self.population[self.population >= threshold]
        return float(self.accuracy(reached).mean()), len(reached) / len(self.population)

    @cached_property
    def population(self) -> Floats:
        """Confidences of many answers."""
        return np.round(self.draw(np.random.default_rng(0), 20_000), SHOWN)


def _even(random: Random, n: int) -> Floats:
    return random.uniform(0.5, 1.0, n)


def _sure(random: Random, n: int) -> Floats:
    return 1 - np.minimum(random.exponential(0.05, n), 0.5)


def alike(accuracy: float) -> World:
    """All answers have one confidence."""
    return World(
        "one confidence", lambda _, n: np.full(n, 0.9), lambda c: np.full(len(c), accuracy)
    )


def flat(accuracy: float) -> World:
    """Confidence says nothing."""
    return World("confidence says nothing", _even, lambda c: np.full(len(c), accuracy))


def step(accuracy: float) -> World:
    """The upper half is right that often, the lower one much less."""
    return World("upper half on the boundary", _even, lambda c: np.where(c >= 0.75, accuracy, 0.7))


def slope(accuracy: float) -> World:
    """Accuracy rises with confidence; the upper half of answers has `accuracy` on average."""
    return World("rising", _even, lambda c: np.clip(accuracy + 0.6 * (c - 0.875), 0, 1))


def words(accuracy: float) -> World:
    """Five confidences, as models put them into words; the upper three are on the boundary."""
    said = np.array([0.6, 0.8, 0.9, 0.95, 0.99])
    right = np.array([0.5, 0.75, accuracy - 0.02, accuracy, accuracy + 0.02])
    return World(
        "five confidences",
        lambda random, n: random.choice(said, n),
        lambda c: right[np.searchsorted(said, c)],
    )


def calibrated() -> World:
    """Mostly sure, and right as often as it says."""
    return World("calibrated, mean .95", _sure, lambda c: c)


def intents(folder: Path, seed: int) -> tuple[Floats, Ints]:
    """Log-probabilities and truths of an overconfident model on the ten most frequent intents."""
    with (folder / "banking77-train.csv").open(newline="") as file:
        rows = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    frequent = {intent for intent, _ in Counter(row[1] for row in rows).most_common(INTENTS)}
    chosen = [row for row in rows if row[1] in frequent]
    random.Random(seed).shuffle(chosen)
    model = NaiveBayes(chosen[:TRAINED])
    found = [model.log_probabilities(text) for text, _ in chosen[TRAINED:]]
    logs = np.array([[one[intent] for intent in model.classes] for one in found])
    truth = np.array([model.classes.index(intent) for _, intent in chosen[TRAINED:]])
    return logs, truth

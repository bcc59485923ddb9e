"""Models whose probabilities are true, or off in a known way, and what they answer."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.banking import data_folder
from benchmarks.bayes import NaiveBayes
from svc.stats.calibrators import Floats, Ints, sigmoid, softmax
from svc.stats.tasks import TASKS, Task

# What a served calibrator is judged on; never seen by a fit.
FRESH = 4_000
# Ways in which real messages are split into those a model learns from and those it answers.
SPLITS = 20
INTENTS = 10
# What a message is about, for classes of unequal frequency; and how many of each are learnt from.
TOPICS = ("pin", "refund", "top_up", "exchange", "identity", "cash", "transfer", "card")
LEARNT = 40

Random = np.random.Generator
Rows = tuple[Floats, Ints]


@dataclass(frozen=True, slots=True)
class World:
    """A model behind a question: `draw` gives labelled rows and fresh ones."""

    name: str
    task: Task
    draw: Callable[[Random, int], tuple[Rows, Rows]]


def calibrated() -> list[World]:
    """Models whose probabilities are true."""
    return [
        World("nearly always right, choice of 4", TASKS["classes"], _classes(4, 24.0)),
        World("nearly always right, 97% each", TASKS["classes"], _sure(0.97)),
        World("nearly always right, extraction", TASKS["rightness"], _yes_no(3.5, 0.5)),
        World("choice of 4", TASKS["classes"], _classes(4, 1.5)),
        World("choice of 10", TASKS["classes"], _classes(10, 2.5)),
        World("choice of 30", TASKS["classes"], _classes(30, 3.0)),
        World("yes or no", TASKS["yes_no"], _yes_no(0.0, 2.0)),
        World("yes or no, rarely yes", TASKS["yes_no"], _yes_no(-2.5, 1.0)),
        World("extraction", TASKS["rightness"], _yes_no(1.5, 1.0)),
    ]


def mistaken() -> list[World]:
    """Models that are too sure, or meet other frequencies than those they know."""
    return [
        World("overconfident choice of 5", TASKS["classes"], _classes(5, 1.5, sharper=3.0)),
        World("shifted yes or no", TASKS["yes_no"], _yes_no(0.0, 1.5, moved=1.5)),
        World("naive Bayes, ten intents", TASKS["classes"], _messages(_ten_intents)),
        World("naive Bayes, eight and none", TASKS["classes"], _messages(_eight_and_none)),
        World("overconfident yes or no", TASKS["yes_no"], _yes_no(0.0, 1.5, sharper=3.0)),
        World("underconfident choice of 4", TASKS["classes"], _classes(4, 4.0, sharper=0.4)),
        World("class-conditional bias", TASKS["classes"], _classes(6, 2.0, biases=1.0)),
    ]


def skewed() -> list[World]:
    """Real messages of unequal frequency, answered by models that learnt from equal ones."""
    return [
        World("naive Bayes, skewed", TASKS["classes"], _messages(_skewed_bayes)),
        World("logistic regression, skewed", TASKS["classes"], _messages(_skewed_logistic)),
    ]


def unlike() -> list[World]:
    """A model that is too sure, and one that is not."""
    return [
        World("one", TASKS["classes"], _classes(5, 1.5, sharper=3.0)),
        World("other", TASKS["classes"], _classes(5, 1.5)),
    ]


def ten_options() -> World:
    """What refits are timed on."""
    return World("ten options", TASKS["classes"], _classes(10, 2.0, biases=1.0))


def drawn(random: Random, shares: Floats) -> Ints:
    """A class of each row, with its probabilities."""
    bounds = shares.cumsum(axis=1)
    places = (random.random(len(shares))[:, None] > bounds).sum(axis=1)
    found: Ints = np.minimum(places, shares.shape[1] - 1)
    return found


def _classes(
    k: int, scale: float, *, sharper: float = 1.0, biases: float = 0.0
) -> Callable[[Random, int], tuple[Rows, Rows]]:
    """True log-odds are normal; the model's are `sharper` times those and off by fixed biases."""

    def draw(random: Random, labels: int) -> tuple[Rows, Rows]:
        offsets = random.normal(scale=biases, size=k) if biases else np.zeros(k)
        true = random.normal(scale=scale, size=(labels + FRESH, k))
        rows = softmax(true * sharper + offsets), drawn(random, softmax(true))
        return _split(rows, labels)

    return draw


def _sure(top: float) -> Callable[[Random, int], tuple[Rows, Rows]]:
    """About as sure of each answer, and right about it."""

    def draw(random: Random, labels: int) -> tuple[Rows, Rows]:
        first = top + random.uniform(-0.01, 0.01, labels + FRESH)
        p = np.stack([first, (1 - first) * 0.6, (1 - first) * 0.4], 1)
        order = random.permuted(np.tile(np.arange(3), (len(p), 1)), axis=1)
        p = np.take_along_axis(p, order, axis=1)
        return _split((p, drawn(random, p)), labels)

    return draw


def _yes_no(
    mean: float, scale: float, *, sharper: float = 1.0, moved: float = 0.0
) -> Callable[[Random, int], tuple[Rows, Rows]]:
    def draw(random: Random, labels: int) -> tuple[Rows, Rows]:
        true = random.normal(mean, scale, size=labels + FRESH)
        truth = (random.random(len(true)) < sigmoid(true)).astype(np.int64)
        return _split((sigmoid(true * sharper + moved)[:, None], truth), labels)

    return draw


def _messages(
    answered: Callable[[int], Rows],
) -> Callable[[Random, int], tuple[Rows, Rows]]:
    """Rows of one of the splits, in an order of its own."""

    def draw(random: Random, labels: int) -> tuple[Rows, Rows]:
        p, truth = answered(int(random.integers(SPLITS)))
        order = random.permutation(len(truth))
        return _split((p[order], truth[order]), labels)

    return draw


def _split(rows: Rows, labels: int) -> tuple[Rows, Rows]:
    p, truth = rows
    return (p[:labels], truth[:labels]), (p[labels:], truth[labels:])


@lru_cache
def _all_messages() -> list[tuple[str, str]]:
    with (Path(data_folder()) / "banking77-train.csv").open(newline="") as file:
        return [(row["text"], row["category"]) for row in csv.DictReader(file)]


@lru_cache
def _frequent(count: int) -> list[str]:
    names = [intent for _, intent in _all_messages()]
    return sorted(sorted(set(names)), key=lambda name: -names.count(name))[:count]


def _shuffled(split: int) -> list[tuple[str, str]]:
    rows = _all_messages()
    return [rows[index] for index in np.random.default_rng(split).permutation(len(rows))]


def _bayes(known: Sequence[tuple[str, str]], asked: Sequence[tuple[str, str]]) -> Rows:
    model = NaiveBayes(known)
    p = [list(model.log_probabilities(text).values()) for text, _ in asked]
    return np.exp(np.array(p)), np.array([model.classes.index(intent) for _, intent in asked])


@lru_cache
def _ten_intents(split: int) -> Rows:
    intents = set(_frequent(INTENTS))
    rows = [row for row in _shuffled(split) if row[1] in intents]
    return _bayes(rows[:350], rows[350:])


@lru_cache
def _eight_and_none(split: int) -> Rows:
    """A quarter of what the model knows is none of its eight intents, of what it is asked half."""
    intents = set(_frequent(8))
    rows = _shuffled(split)
    inside = [row for row in rows if row[1] in intents]
    outside = [(text, "none") for text, intent in rows if intent not in intents]
    known, asked = (
        inside[:400] + outside[:200],
        inside[400:] + outside[200 : 200 + len(inside) - 400],
    )
    return _bayes(known, asked)


def _topic(intent: str) -> str:
    """The first of the topics that an intent's name holds."""
    return next((topic for topic in TOPICS if topic in intent), "other")


def _unequal(split: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """As many messages of each topic to learn from; to answer, all others as they come."""
    rows = [(text, _topic(intent)) for text, intent in _shuffled(split)]
    known: list[tuple[str, str]] = []
    for topic in (*TOPICS, "other"):
        known += [row for row in rows if row[1] == topic][:LEARNT]
    learnt = set(known)
    return known, [row for row in rows if row not in learnt][: FRESH // 2]


@lru_cache
def _skewed_bayes(split: int) -> Rows:
    return _bayes(*_unequal(split))


@lru_cache
def _skewed_logistic(split: int) -> Rows:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    known, asked = _unequal(split)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=3.0))
    model.fit([text for text, _ in known], [intent for _, intent in known])
    classes = list(model.classes_)
    p = model.predict_proba([text for text, _ in asked])
    return p, np.array([classes.index(intent) for _, intent in asked])

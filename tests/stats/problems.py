"""Labelled answers of many kinds: random ones, and the edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from svc.stats.calibrators import Floats, Ints

SEEDS = range(50)


def classes(seed: int) -> tuple[Floats, Ints]:
    """Probabilities of some classes that are sharper or flatter than the truth."""
    random = np.random.default_rng(seed)
    n, k = int(random.integers(30, 800)), int(random.integers(2, 12))
    logits = random.normal(scale=random.uniform(0.3, 4), size=(n, k))
    truth = drawn(random, softmax(logits))
    return softmax(logits * random.uniform(0.3, 4)), truth


def options(seed: int, *, verbal: bool) -> tuple[Floats, Ints]:
    """2 to 255 options; in words the five most probable ones alone, to two digits."""
    random = np.random.default_rng(seed)
    n, k = int(random.integers(30, 200)), int(random.integers(2, 256))
    logits = random.normal(scale=random.uniform(0.3, 4), size=(n, k))
    truth = drawn(random, softmax(logits))
    p = softmax(logits * random.uniform(0.1, 8))
    if verbal:
        fifth = np.sort(p, axis=1)[:, -min(5, k)][:, None]
        p = np.where(p >= fifth, np.round(p, 2), 0.0)
        p = np.where(p.sum(axis=1, keepdims=True) > 0, p, 1.0)
        p /= p.sum(axis=1, keepdims=True)
    return p, truth


def binary(seed: int) -> tuple[Floats, Ints]:
    """P(yes), off by a slope and an offset."""
    random = np.random.default_rng(seed)
    n = int(random.integers(30, 800))
    logits = random.normal(scale=random.uniform(0.3, 3), size=n)
    truth = (random.random(n) < sigmoid(logits)).astype(np.int64)
    slope, offset = random.uniform(0.3, 3), random.normal()
    return sigmoid(logits * slope + offset)[:, None], truth


def edges_of_classes() -> Iterator[tuple[str, Floats, Ints]]:
    random = np.random.default_rng(0)
    some = random.dirichlet(np.ones(3), 60)
    top = some.argmax(axis=1)
    yield "all right", some, top
    yield "all wrong", some, (top + 1) % 3
    yield "one class only", some, np.zeros(60, dtype=np.int64)
    yield "exactly 30", some[:30], random.integers(0, 3, 30)
    yield "constant", np.tile([0.7, 0.2, 0.1], (60, 1)), random.integers(0, 3, 60)
    yield "ties", np.full((60, 3), 1 / 3), random.integers(0, 3, 60)
    yield "perfect", np.eye(3)[top], top
    yield "extreme and half wrong", np.eye(3)[top], np.where(np.arange(60) % 2, top, (top + 1) % 3)


def edges_of_binary() -> Iterator[tuple[str, Floats, Ints]]:
    random = np.random.default_rng(0)
    some = random.random((60, 1))
    yes = (some[:, 0] >= 0.5).astype(np.int64)
    yield "all right", some, yes
    yield "all wrong", some, 1 - yes
    yield "only yes", some, np.ones(60, dtype=np.int64)
    yield "only no", some, np.zeros(60, dtype=np.int64)
    yield "exactly 30", some[:30], random.integers(0, 2, 30)
    yield "constant", np.full((60, 1), 0.8), random.integers(0, 2, 60)
    yield "even", np.full((60, 1), 0.5), random.integers(0, 2, 60)
    yield "perfect", yes[:, None].astype(float), yes
    yield "extreme and half wrong", yes[:, None].astype(float), np.arange(60) % 2


def drawn(random: np.random.Generator, p: Floats) -> Ints:
    """A class of each row, with its probabilities."""
    places = (random.random(len(p))[:, None] > p.cumsum(axis=1)).sum(axis=1)
    found: Ints = np.minimum(places, p.shape[1] - 1)
    return found


def softmax(z: Floats) -> Floats:
    weights = np.exp(z - z.max(axis=1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def sigmoid(z: Floats) -> Floats:
    shares: Floats = 1 / (1 + np.exp(-z))
    return shares

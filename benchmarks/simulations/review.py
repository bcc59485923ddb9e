"""What labels from the review queue are worth, beside as many drawn evenly and the least certain.

Models answer messages to a bank; the labels that a queue asks for give the accuracy of all answers
and prediction sets for fresh ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.simulations.worlds import World, mistaken, skewed
from svc.stats import conformal, drawing
from svc.stats.calibrators import Floats, Ints
from svc.stats.intervals import Interval, bounded_mean
from svc.stats.tasks import Task

Random = np.random.Generator
DECISIONS = (300, 1_000)
LABELS = 200
COVERAGE = 0.9
REAL = ("naive Bayes", "logistic")


@dataclass(frozen=True, slots=True)
class Figures:
    """A figure of each repetition, by its name."""

    found: dict[str, list[float]] = field(default_factory=dict)

    def note(self, **figures: float) -> None:
        for name, figure in figures.items():
            self.found.setdefault(name, []).append(figure)

    def mean(self, name: str) -> float:
        return float(np.mean(self.found[name]))

    def squares(self, name: str) -> float:
        return float(np.mean(np.square(self.found[name])))


def worlds() -> Iterator[World]:
    """Those of real messages."""
    return (world for world in [*skewed(), *mistaken()] if world.name.startswith(REAL))


def replays(world: World, decisions: int, repetitions: int, seed: int) -> Figures:
    """Let a queue ask for labels, and see what they say."""
    figures = Figures()
    for repetition in range(repetitions):
        random = np.random.default_rng(seed + repetition)
        (p, truth), fresh = world.draw(random, decisions)
        _replay(world.task, p, truth, fresh, random, figures)
    return figures


def _replay(
    task: Task, p: Floats, truth: Ints, fresh: tuple[Floats, Ints], random: Random, figures: Figures
) -> None:
    confidence, correct = task.confidence(p), task.correct(p, truth)
    level = drawing.levels(confidence, confidence)
    drawn, chances = drawn_first(level, p.argmax(axis=1), LABELS, random)
    weights = chances.mean() / chances
    counts = np.bincount(level, minlength=drawing.LEVELS).astype(np.float64)
    queue = drawing.accuracy(correct[drawn], level[drawn], weights, counts)
    assert queue is not None
    evenly = random.choice(len(p), LABELS, replace=False)
    least = np.argsort(confidence, kind="stable")[:LABELS]
    found = {
        "queue": queue,
        "report": bounded_mean(correct[drawn], weights),
        "evenly": bounded_mean(correct[evenly]),
        "least": bounded_mean(correct[least]),
    }
    for name, interval in found.items():
        _note_interval(figures, name, interval, float(correct.mean()))
    for name, rows, parts in (("queue", drawn, weights), ("evenly", evenly, None)):
        scores = conformal.log_scores(task.true_probabilities(p[rows], truth[rows]))
        limit = conformal.weighted_quantile(scores, COVERAGE, parts)
        _note_sets(figures, name, task, fresh, limit)


def drawn_first(level: Ints, kinds: Ints, count: int, random: Random) -> tuple[Ints, Floats]:
    """The places that a queue hands out first, and the chance of each."""
    priority = drawing.priorities(level, kinds, random)
    order = np.argsort(priority)
    frontier = priority[order[count]] if count < len(order) else np.inf
    drawn = order[:count]
    return drawn, np.minimum(1.0, frontier * np.array(drawing.SIZES)[level[drawn]])


def _note_interval(figures: Figures, name: str, interval: Interval, true: float) -> None:
    figures.note(
        **{
            f"{name} error": interval.estimate - true,
            f"{name} width": interval.high - interval.low,
            f"{name} holds": float(interval.low <= true <= interval.high),
        }
    )


def _note_sets(
    figures: Figures, name: str, task: Task, fresh: tuple[Floats, Ints], limit: float
) -> None:
    p, truth = fresh
    with np.errstate(divide="ignore"):
        sizes = np.maximum((-np.log(p) <= limit).sum(axis=1), 1)
    held = conformal.log_scores(task.true_probabilities(p, truth)) <= limit
    figures.note(**{f"{name} covers": held.mean(), f"{name} size": sizes.mean()})


def run(repetitions: int, seed: int) -> None:
    """Print the table."""
    print(f"Review: {LABELS} labels, {repetitions} repetitions from seed {seed}\n")
    print("Error of the accuracy estimate with labels of the queue (as `progress.accuracy` and as")
    print(
        "the calibration report have it) and of the least certain; the squared width and error as"
    )
    print("parts of those of labels drawn evenly, which is how many labels it takes for the same;")
    print(f"how often the interval holds the truth; what sets promised {COVERAGE:.0%} cover, and")
    print("their size beside that of sets from labels drawn evenly.\n")
    columns = ("world", "decisions", "bias", "report's", "least certain", "labels by width")
    further = ("by error", "report's width", "holds", "covers", "size")
    print(f"| {' | '.join((*columns, *further))} |\n" + "|---" * 11 + "|")
    for world in worlds():
        for decisions in DECISIONS:
            print(_row(world.name, decisions, replays(world, decisions, repetitions, seed)))


def _row(name: str, decisions: int, found: Figures) -> str:
    cells = (
        f"{found.mean('queue error'):+.4f}",
        f"{found.mean('report error'):+.4f}",
        f"{found.mean('least error'):+.3f}",
        f"{found.squares('queue width') / found.squares('evenly width'):.2f}",
        f"{found.squares('queue error') / found.squares('evenly error'):.2f}",
        f"{found.squares('report width') / found.squares('evenly width'):.2f}",
        f"{found.mean('queue holds'):.3f}",
        f"{found.mean('queue covers'):.3f}",
        f"{found.mean('queue size') / found.mean('evenly size'):.3f}",
    )
    return f"| {name} | {decisions:,} | {' | '.join(cells)} |"

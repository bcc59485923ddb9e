"""Calibrators as they would be served: tried from 30 labels on, and again as labels come.

A first one is tried at 30 labels and at every tenth more; one in effect is fitted again at each
look, and given up where it is no better than none. What is served is judged on fresh answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.simulations import worlds
from benchmarks.simulations.worlds import World
from svc.stats import acceptance
from svc.stats.calibrators import Calibrator, Floats, Ints
from svc.stats.fitting import fit_biased, fit_platt, fit_temperature
from svc.stats.pooling import fit_groups
from svc.stats.scores import expected_calibration_error
from svc.stats.tasks import TASKS, Task

LOOKS = (*range(30, 101, 10), 120, 150, 200, 300, 450, 600)
SHOWN = (30, 50, 100, 200, 300, 600)


@dataclass(frozen=True, slots=True)
class Served:
    """What one draw of a world was served with after some labels, on fresh answers."""

    labels: int
    taken: bool
    biased: bool
    # Log-loss, Brier score and accuracy.
    raw: tuple[float, float, float]
    now: tuple[float, float, float]
    # The least log-loss of the simplest calibrator, and of the last of the ladder.
    simple: float
    best: float


def main(repetitions: int, seed: int, only: str = "") -> None:
    """Print the tables."""
    kinds = (
        ("true probabilities", worlds.calibrated()),
        ("too sure, or shifted", worlds.mistaken()),
        ("real classes of unequal frequency", worlds.skewed()),
    )
    for title, members in kinds:
        print(f"\n{title}, {repetitions} repetitions\n\n{_HEAD}", flush=True)
        for world in members:
            if only in world.name:
                print(_lines(world, sequences(world, repetitions, seed)), flush=True)
    if only in "two models":
        print(_two_models(repetitions, seed))
    if only in "time":
        print(_time())


def sequences(
    world: World, repetitions: int, seed: int, looks: Sequence[int] = LOOKS
) -> list[Served]:
    """What is served at each look of each repetition."""
    found: list[Served] = []
    for repetition in range(repetitions):
        found += sequence(world, np.random.default_rng([seed, repetition]), looks)
    return found


def sequence(world: World, random: np.random.Generator, looks: Sequence[int]) -> list[Served]:
    """What is served at each look while the labels of one draw come in."""
    (p, truth), fresh = world.draw(random, max(looks))
    task, calibrator, found = world.task, None, []
    raw, limits = _scores(task, None, *fresh), _attainable(task, *fresh)
    for n in looks:
        again = calibrator is not None
        calibrator = acceptance.fit(task, p[:n], truth[:n], again=again)
        biased = "bias" in calibrator.parameters if calibrator else False
        now = _scores(task, calibrator, *fresh)
        found.append(Served(n, calibrator is not None, biased, raw, now, *limits))
    return found


def _scores(
    task: Task, calibrator: Calibrator | None, p: Floats, truth: Ints
) -> tuple[float, float, float]:
    served = p if calibrator is None else task.calibrated(calibrator, p)
    losses, briers = task.log_losses(served, truth), task.briers(served, truth)
    return float(losses.mean()), float(briers.mean()), float(task.correct(served, truth).mean())


def _attainable(task: Task, p: Floats, truth: Ints) -> tuple[float, float]:
    """The log-loss of calibrators that were fitted on the fresh answers themselves."""
    if task is not TASKS["classes"]:
        loss = _scores(task, fit_platt(p, truth), p, truth)[0]
        return loss, loss
    simple, best = fit_temperature(p, truth), fit_biased(p, truth, bias_sd=3.0)
    return _scores(task, simple, p, truth)[0], _scores(task, best, p, truth)[0]


_HEAD = (
    "| model | labels | taken up | with biases | log-loss raw | served | served ÷ raw | "
    "share of the simple gain | of the whole gain | accuracy gained | "
    "of those taken up: truly better in log-loss, Brier | harm where taken up |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def _lines(world: World, rows: Sequence[Served]) -> str:
    return "\n".join(
        f"| {world.name} {_line([row for row in rows if row.labels == n], n)}" for n in SHOWN
    )


def _line(rows: Sequence[Served], n: int) -> str:
    raw, now = (np.array([getattr(row, name) for row in rows]) for name in ("raw", "now"))
    taken = np.array([row.taken for row in rows])
    before, after = raw[:, 0].mean(), now[:, 0].mean()
    simple, best = (before - np.mean([getattr(row, x) for row in rows]) for x in ("simple", "best"))
    better = (now < raw)[taken, :2].mean(axis=0) if taken.any() else np.zeros(2)
    harm = (now - raw)[taken, 0].mean() if taken.any() else 0.0
    shares = [f"{(before - after) / gain:.0%}" if gain > 0.02 else "" for gain in (simple, best)]
    return (
        f"| {n} | {taken.mean():.1%} | {np.mean([row.biased for row in rows]):.1%} "
        f"| {before:.3f} | {after:.3f} | {after / before:.3f} | {shares[0]} | {shares[1]} "
        f"| {100 * (now - raw)[:, 2].mean():+.1f} | {better[0]:.0%}, {better[1]:.0%} "
        f"| {harm:+.3f} |"
    )


def two_models(random: np.random.Generator, labels: int) -> tuple[list[float], list[float]]:
    """Calibration errors of an overconfident and a true model behind one question.

    Before and after; each has half the labels.
    """
    task, before, after = TASKS["classes"], [], []
    pair = worlds.unlike()
    draws = [world.draw(random, labels // 2) for world in pair]
    p = np.vstack([rows[0] for rows, _ in draws])
    truth = np.concatenate([rows[1] for rows, _ in draws])
    order = random.permutation(len(truth))
    groups = np.repeat(["one", "other"], labels // 2)[order]
    found = fit_groups(task, p[order], truth[order], groups.tolist())
    for name, (_, (fresh, answers)) in zip(("one", "other"), draws, strict=True):
        calibrator = found.by_group[name].calibrator
        served = fresh if calibrator is None else calibrator.apply(fresh)
        for held, q in ((before, fresh), (after, served)):
            held.append(expected_calibration_error(task.confidence(q), task.correct(q, answers)))
    return before, after


def _two_models(repetitions: int, seed: int) -> str:
    lines = ["\ntwo models behind one question: ECE of the worse, mean and 95th percentile", ""]
    for labels in (60, 100, 200, 500, 1_000):
        draws = [
            two_models(np.random.default_rng([seed, 7, n]), labels) for n in range(repetitions)
        ]
        before, after = (np.array([max(draw[which]) for draw in draws]) for which in (0, 1))
        lines.append(
            f"{labels} labels: {before.mean():.3f} before, {after.mean():.3f} after "
            f"({np.quantile(after, 0.95):.3f})"
        )
    return "\n".join(lines)


def _time() -> str:
    """Processor time of the whole ladder, 5,000 labels of a choice of 10."""
    world = worlds.mistaken()[-1]
    (p, truth), _ = worlds.ten_options().draw(np.random.default_rng(0), 5_000)
    groups = ["one" if n % 2 else "other" for n in range(len(truth))]
    alone = _best_of(lambda: acceptance.fit(world.task, p, truth, again=True))
    grouped = _best_of(lambda: fit_groups(world.task, p, truth, groups))
    one = acceptance.fit(world.task, p, truth, again=True)
    assert one is not None
    answer = p[0].tolist()
    each = _best_of(lambda: [one.one(answer) for _ in range(1_000)])
    return (
        f"\nrefit of 5,000 labels, choice of 10: {alone:.0f} ms, two groups {grouped:.0f} ms "
        f"of processor time; one answer {each:.1f} µs"
    )


def _best_of(work: Callable[[], object], times: int = 7) -> float:
    """Milliseconds of processor time."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return 1_000 * min(taken)

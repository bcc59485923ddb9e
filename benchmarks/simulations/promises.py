"""Whether promises are kept however often a report is read, and what they cost in labels.

Seeds are fixed. `python -m benchmarks.simulations promises` prints all figures of `RESULTS.md`;
it takes some minutes, and the real classifier needs the folder that SVC_TEST_DATA names.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.simulations import answers
from benchmarks.simulations.answers import Random, World
from svc.stats import betting, recency, thresholds
from svc.stats.calibrators import Floats, Ints, softmax
from svc.stats.conformal import class_limits, log_scores, weighted_quantile
from svc.stats.fitting import fit_temperature
from svc.stats.tasks import SHOWN, TASKS
from svc.terms import TaskKind

LOOKS = tuple(range(20, 1_001, 10))[:99]
REPETITIONS = 400
# How far under the target the accuracy lies at the boundary.
UNDER = 1e-6


def main() -> None:
    """Print all tables."""
    for table in (
        automated,
        false_promises,
        in_files,
        refitted,
        power,
        needed,
        withdrawn,
        noticed,
        restored,
        by_option,
    ):
        print(f"\n{(table.__doc__ or '').splitlines()[0]}", flush=True)
        for line in table():
            print(f"  {line}", flush=True)


def automated(seeds: Sequence[int] = range(10), draws: int = 30) -> Iterable[str]:
    """Share automated, ten intents, 1,000 labels, and broken promises."""
    folder = os.environ.get("SVC_TEST_DATA")
    if folder is None:
        return ["needs SVC_TEST_DATA"]
    shares: dict[float, list[float]] = {0.9: [], 0.95: []}
    broken = dict.fromkeys(shares, 0)
    for seed in seeds:
        logs, truth = answers.intents(Path(folder), seed)
        confidence = np.round(np.exp(logs.max(axis=1)), SHOWN)
        correct = (logs.argmax(axis=1) == truth).astype(np.int64)
        random = np.random.default_rng(1_000 + seed)
        for _ in range(draws):
            drawn = random.integers(0, len(truth), 1_000)
            for target in shares:
                found = thresholds.lowest(target, confidence[drawn], correct[drawn])
                reached = confidence >= (2.0 if found is None else found)
                shares[target].append(float(reached.mean()))
                broken[target] += bool(reached.any()) and correct[reached].mean() < target
    return [
        f"target {target}: {np.mean(share):.3f} automated, {broken[target] / len(share):.1%} broken"
        f" ({len(share)} draws)"
        for target, share in shares.items()
    ]


def false_promises(repetitions: int = REPETITIONS) -> Iterable[str]:
    """Projects with a false promise at any of 99 looks up to 1,000 labels, on the boundary."""
    kinds = (answers.alike, answers.flat, answers.step, answers.slope, answers.words)
    for number, kind in enumerate(kinds):
        for target in (0.9, 0.95):
            random = np.random.default_rng([2, number, int(target * 100)])
            world = kind(target - UNDER)
            false = sum(ever_false(world, target, random) for _ in range(repetitions))
            yield f"{world.name}, target {target}: {false / repetitions:.1%} of {repetitions}"


def ever_false(world: World, target: float, random: Random, looks: Sequence[int] = LOOKS) -> bool:
    """Whether any look at one project has a promise that is false."""
    confidence, correct = world.labels(random, looks[-1])
    found = {thresholds.lowest(target, confidence[:n], correct[:n]) for n in looks}
    return any(world.above(one)[0] < target for one in found if one is not None)


# How often the easier two thirds of a file's rows are right, and the rest: just short of 0.9.
_KINDS = np.array([0.99, 0.719])


def in_files(repetitions: int = REPETITIONS) -> Iterable[str]:
    """Files, mixed and sorted: false promises of 0.9, and such as a calibrated model keeps."""
    for rows in (150, 300, 600, 1_500):
        for name, is_sorted in (("mixed", False), ("sorted", True)):
            random = np.random.default_rng([10, rows, is_sorted])
            false, kept = (
                np.mean([promised(random, rows, is_sorted=is_sorted) for _ in range(repetitions)])
                for promised in (falsely_promised, _rightly_promised)
            )
            yield f"{rows} rows, {name}: {false:.1%} false; {kept:.0%} of those that are kept"


def falsely_promised(random: Random, rows: int, *, is_sorted: bool) -> bool:
    """Whether 0.9 is promised where confidence says nothing; sorted, the easier kind is first."""
    kinds = (np.arange(rows) >= rows * 2 // 3).astype(np.int64)
    right = random.random(rows) < _KINDS[kinds if is_sorted else random.permutation(kinds)]
    return _promised(random.uniform(0.5, 1.0, rows), right.astype(np.int64))


def _rightly_promised(random: Random, rows: int, *, is_sorted: bool) -> bool:
    """The same for a calibrated model; sorted, its surest answers are first."""
    confidence, correct = answers.calibrated().labels(random, rows)
    order = np.argsort(-confidence) if is_sorted else np.arange(rows)
    return _promised(confidence[order], correct[order])


def _promised(confidence: Floats, correct: Ints) -> bool:
    (first, *_) = thresholds.report(confidence, correct, ordered=False)
    return first["min_confidence"] is not None


def refitted(repetitions: int = REPETITIONS // 2) -> Iterable[str]:
    """False promises at any of 99 looks, with a temperature and biases refitted at each look."""
    for name, ever in (("flat", False), ("rising", True)):
        random = np.random.default_rng([3, ever])
        false = sum(_ever_false_refitted(random, rising=ever) for _ in range(repetitions))
        yield f"{name}, target 0.9: {false / repetitions:.1%} of {repetitions}"


def _overconfident(random: Random, n: int, *, rising: bool) -> tuple[Floats, Floats]:
    """Logits of four options, and how often the top one is right: in 90%, or so on the whole."""
    logits = random.normal(scale=3, size=(n, 4))
    sure = softmax(logits).max(axis=1)
    return logits, 0.9 - UNDER + (0.15 * (sure - _MEAN_SURE) if rising else 0.0 * sure)


_MEAN_SURE = 0.86
_POPULATION = 20_000


def _fitted(logits: Floats, truth: Ints) -> Floats:
    """Biases of the options: one step of Newton's method from none, shrunk towards it."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    gradient = np.bincount(truth, minlength=4) - p.sum(axis=0)
    bias: Floats = gradient / ((p * (1 - p)).sum(axis=0) + 4.0)
    return bias


def _ever_false_refitted(random: Random, *, rising: bool) -> bool:
    logits, chance = _overconfident(random, LOOKS[-1], rising=rising)
    top, others = logits.argmax(axis=1), random.integers(1, 4, len(logits))
    truth = np.where(random.random(len(logits)) < chance, top, (top + others) % 4)
    fresh, fresh_chance = _overconfident(random, _POPULATION, rising=rising)
    for n in LOOKS:
        t = fit_temperature(softmax(logits[:n]), truth[:n]).t
        bias = _fitted(logits[:n] / t, truth[:n])
        p, q = softmax(logits[:n] / t + bias), softmax(fresh / t + bias)
        right = (p.argmax(axis=1) == truth[:n]).astype(np.int64)
        found = thresholds.lowest(0.9, np.round(p.max(axis=1), SHOWN), right)
        kept = q.argmax(axis=1) == fresh.argmax(axis=1)
        accuracy = np.where(kept, fresh_chance, (1 - fresh_chance) / 3)
        reached = np.round(q.max(axis=1), SHOWN) >= (2.0 if found is None else found)
        if reached.any() and accuracy[reached].mean() < 0.9:
            return True
    return False


def power(repetitions: int = 2_000) -> Iterable[str]:
    """Labels for a promise in 80% of projects with one confidence, and those of one fixed look."""
    for target in (0.9, 0.95):
        for way in (0.2, 0.3, 0.5, 0.7, 1.0):
            accuracy = target + way * (1 - target)
            once = fixed_look(target, accuracy)
            ever = any_look(target, accuracy, 3 * once, repetitions)
            yield f"target {target}, accuracy {accuracy:.3f}: {ever} / {once} = {ever / once:.2f}"


def fixed_look(target: float, accuracy: float) -> int:
    """The fewest labels with which a single Clopper-Pearson bound has a power of 80%."""
    n = 1
    while _power(n, target, accuracy) < 0.8:
        n += 1
    return n


def _power(n: int, target: float, accuracy: float) -> float:
    ks = np.arange(n + 1)
    choose = np.array(
        [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in ks]
    )
    under = np.cumsum(np.exp(choose + ks * math.log(1 - target) + (n - ks) * math.log(target)))
    passing = int((under <= thresholds.ERROR).sum())
    if accuracy == 1:
        return float(passing > 0)
    there = np.exp(choose + ks * math.log(1 - accuracy) + (n - ks) * math.log(accuracy))
    return float(there[:passing].sum())


def any_look(target: float, accuracy: float, most: int, repetitions: int) -> int:
    """The labels within which 80% of projects have been given the promise at some look."""
    random = np.random.default_rng([4, int(accuracy * 1_000)])
    one = np.ones(1)
    right = betting.log_factors(target, np.ones(1, dtype=np.int64), one)
    wrong = betting.log_factors(target, np.zeros(1, dtype=np.int64), one)
    times = []
    for _ in range(repetitions):
        correct = random.random(most) < accuracy
        wealth = betting.mixed(np.cumsum(np.where(correct, right, wrong), axis=1))
        reached = wealth >= -math.log(thresholds.ERROR)
        reached[: thresholds.FIRST - 1] = False
        times.append(int(reached.argmax()) + 1 if reached.any() else most + 1)
    return int(np.quantile(times, 0.8, method="higher"))


def needed(repetitions: int = 100) -> Iterable[str]:
    """`labels_needed` after 60 and 120 labels, divided by the labels that it took then."""
    worlds_ = (answers.alike(0.96), answers.calibrated())
    for number, world in enumerate(worlds_):
        for labels in (60, 120):
            random = np.random.default_rng([5, number, labels])
            ratios = [
                ratio
                for _ in range(repetitions)
                if (ratio := estimate(world, 0.9, labels, random)) is not None
            ]
            low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
            yield f"{world.name}, {labels}: {middle:.2f} ({low:.2f} to {high:.2f}), {len(ratios)}"


def estimate(world: World, target: float, labels: int, random: Random) -> float | None:
    """`labels_needed` divided by the labels that it took; None where nothing was needed."""
    confidence, correct = world.labels(random, 3_000)
    weight = np.ones(3_000)
    told = thresholds.promise(target, confidence[:labels], correct[:labels], weight[:labels])
    if not told.labels_needed:
        return None
    for n in range(labels, 3_000, 10):
        if thresholds.lowest(target, confidence[:n], correct[:n]) is not None:
            return told.labels_needed / (n - labels + 10)
    return None


_WORLDS = (answers.calibrated(), answers.alike(0.95), answers.slope(0.93))


def withdrawn(repetitions: int = REPETITIONS // 2) -> Iterable[str]:
    """Labels until a promise of 0.9 is withdrawn, after 1,000 labels and a fall of ten points."""
    for number, world in enumerate(_WORLDS):
        random = np.random.default_rng([6, number])
        delays = [d for _ in range(repetitions) if (d := withdrawal(world, random)) is not None]
        yield (
            f"{world.name}: within 200 {np.mean(np.array(delays) <= 200):.0%}, "
            f"median {np.median(delays):.0f}, 90% {np.quantile(delays, 0.9):.0f} ({len(delays)})"
        )
    for number, world in enumerate(_WORLDS):
        random = np.random.default_rng([6, 9, number])
        false = np.mean([_withdrawn_falsely(world, random) for _ in range(repetitions // 2)])
        yield f"{world.name}, unchanged: withdrawn at some of 99 looks {false:.1%}"


def _withdrawn_falsely(world: World, random: Random) -> bool:
    """Whether looks from 1,010 to 2,000 labels find no promise of 0.9, where there was one."""
    confidence, correct = world.labels(random, 2_000)
    looks = range(1_000, 2_001, 10)
    found = [thresholds.lowest(0.9, confidence[:n], correct[:n]) for n in looks]
    return found[0] is not None and None in found


def withdrawal(world: World, random: Random, fall: float = 0.1) -> int | None:
    """Labels until what is promised is true again, or nothing is; None where nothing was."""
    after = world.worse(fall)
    before, later = world.labels(random, 1_000), after.labels(random, 600)
    confidence, correct = (np.concatenate(pair) for pair in zip(before, later, strict=True))
    if thresholds.lowest(0.9, *before) is None:
        return None
    for n in range(1_010, 1_601, 10):
        found = thresholds.lowest(0.9, confidence[:n], correct[:n])
        if found is None or after.above(found)[0] >= 0.9:
            return n - 1_000
    return 601


def noticed(repetitions: int = REPETITIONS // 2) -> Iterable[str]:
    """Labels until a change after 2,000 labels is noticed, and where it is placed."""
    for number, (name, changed) in enumerate(_CHANGES.items()):
        random = np.random.default_rng([7, number])
        found = [_notice(random, *changed) for _ in range(repetitions)]
        delays = np.array([delay for delay, _ in found])
        places = np.array([place for _, place in found if place is not None])
        where = np.quantile(places, [0.1, 0.5, 0.9]).round() if len(places) else "never"
        yield (
            f"{name}: within 200 {np.mean((delays > 0) & (delays <= 200)):.0%}, median "
            f"{np.median(delays):.0f}, 90% {np.quantile(delays, 0.9):.0f}; placed {where}"
        )
    random = np.random.default_rng([7, 99])
    false = [bool(recency.changes(random.random(5_000))) for _ in range(5 * repetitions)]
    yield f"no change, 5,000 labels: {np.mean(false):.1%} of {len(false)}"


# Factors of the logits before and after, and the fall in accuracy.
_CHANGES = {
    "calibrated, then overconfident": (1.0, 2.5, 0.0),
    "overconfident, then calibrated": (2.5, 1.0, 0.0),
    "calibrated, then ten points less right": (1.0, 1.0, 0.1),
    "overconfident, then ten points less right": (2.5, 2.5, 0.1),
}


def model(random: Random, n: int, sharpness: float, fall: float) -> tuple[Floats, Ints]:
    """Probabilities of ten options and truths; right in 89%, or `fall` less."""
    logits = random.normal(scale=1.5, size=(n, 10))
    logits[np.arange(n), random.integers(0, 10, n)] += 6
    p = softmax(logits)
    truth = (p.cumsum(axis=1) < random.random((n, 1))).sum(axis=1)
    top, second = np.argsort(-p, axis=1)[:, :2].T
    fallen = (truth == top) & (random.random(n) < fall / 0.89)
    return softmax(sharpness * logits), np.where(fallen, second, truth)


def _both(random: Random, old: float, new: float, fall: float) -> tuple[Floats, Ints]:
    pairs = zip(model(random, 2_000, old, 0.0), model(random, 600, new, fall), strict=True)
    p, truth = (np.concatenate(pair) for pair in pairs)
    return p, truth


def score(p: Floats, truth: Ints) -> Floats:
    """What a change is looked for in."""
    task = TASKS[TaskKind.CLASSES]
    return recency.surprise(task.confidence(p), task.correct(p, truth))


def _notice(random: Random, old: float, new: float, fall: float) -> tuple[float, int | None]:
    """The delay, and the place relative to the truth."""
    scores = score(*_both(random, old, new, fall))
    for n in range(2_010, 2_601, 10):
        found = recency.latest(scores[:n])
        if found is not None and found > 1_500:
            return n - 2_000, found - 2_000
    return 601, None


def restored(repetitions: int = REPETITIONS // 2) -> Iterable[str]:
    """200 labels after a change: coverage of 0.9 sets, and accuracy above the 0.9 threshold."""
    for number, (name, changed) in enumerate(_CHANGES.items()):
        random = np.random.default_rng([8, number])
        found = np.array([_after(random, *changed) for _ in range(repetitions)])
        kept, all_labels, accuracy, promised = np.nanmean(found, axis=0)
        yield (
            f"{name}: sets cover {kept:.3f} ({all_labels:.3f} with all labels), accuracy above "
            f"the threshold {accuracy:.3f}, promised in {promised:.0%}"
        )


def _after(random: Random, old: float, new: float, fall: float) -> tuple[float, ...]:
    p, truth = _both(random, old, new, fall)
    p, truth = p[:2_200], truth[:2_200]
    fresh, answers = model(random, 4_000, new, fall)
    task = TASKS[TaskKind.CLASSES]
    scores, unseen = (
        log_scores(task.true_probabilities(*rows)) for rows in ((p, truth), (fresh, answers))
    )
    start = recency.latest(score(p, truth)) or 0
    start = min(start, len(truth) - 30)
    covers = [
        float((unseen <= weighted_quantile(part, 0.9)).mean()) for part in (scores[start:], scores)
    ]
    found = thresholds.lowest(0.9, task.confidence(p[start:]), task.correct(p, truth)[start:])
    if found is None:
        return *covers, math.nan, 0.0
    reached = task.confidence(fresh) >= found
    return *covers, float(task.correct(fresh, answers)[reached].mean()), 1.0


# Of the truths; the last option is mostly taken for the first.
_SHARES = np.array([0.5, 0.3, 0.15, 0.05])


def by_option(repetitions: int = REPETITIONS // 2, labels: int = 600) -> Iterable[str]:
    """How often 0.9 sets hold each of four true options, with one limit and with one each."""
    random = np.random.default_rng(9)
    held = np.zeros((2, len(_SHARES)))
    asked = np.zeros(len(_SHARES))
    sizes = np.zeros(2)
    for _ in range(repetitions):
        known, fresh = _hard_options(random, labels), _hard_options(random, 1_000)
        scores = log_scores(known[0][np.arange(labels), known[1]])
        own = class_limits(scores, known[1], len(_SHARES), 0.9)
        shared = weighted_quantile(scores, 0.9)
        highest = np.array([[shared] * len(_SHARES), [one.limit for one in own]])
        inside = log_scores(fresh[0]) <= highest[:, None, :]
        sizes += inside.sum(axis=2).mean(axis=1)
        asked += np.bincount(fresh[1], minlength=len(_SHARES))
        hits = inside[:, np.arange(1_000), fresh[1]]
        held += [np.bincount(fresh[1], weights=hit, minlength=len(_SHARES)) for hit in hits]
    for name, covered, size in zip(("one limit", "one each"), held / asked, sizes, strict=True):
        each = ", ".join(f"{share:.3f}" for share in covered)
        yield f"{name}: {each}; {size / repetitions:.2f} options in a set ({repetitions} projects)"


def _hard_options(random: Random, n: int) -> tuple[Floats, Ints]:
    options = len(_SHARES)
    truth = random.choice(options, n, p=_SHARES)
    logits = random.normal(size=(n, options)) + 3 * np.eye(options)[truth % (options - 1)]
    return softmax(logits), truth

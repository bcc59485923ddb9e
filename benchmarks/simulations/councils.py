"""What labels teach a council: members of differing quality over real text, and planted ones.

Of each world, what is served on fresh rows: by equal weights, as a council without labels gives,
and by the pool that its labels teach. Both also with a temperature fitted on the same labels, as a
calibrator follows either. Planted worlds tell how often a pool is taken up that nobody needs, and
what it costs.
"""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.banking import data_folder
from svc.stats import opinions
from svc.stats.calibrators import Floats, Ints
from svc.stats.opinions import OpinionPool

LABELS = (30, 60, 100, 300, 600)
SPLITS, DRAWS = 20, 100
INTENTS, LEARNT = 10, 600
FRESH = 2_000
# Of a planted world: how much of the truth a member's log-odds hold, and how sharp they are.
Member = tuple[float, float]

Rows = tuple[Floats, Ints]


@dataclass(frozen=True, slots=True)
class World:
    """A council; `draw` gives rows by the number of a repetition, those to be labelled first."""

    name: str
    repetitions: int
    draw: Callable[[int], Rows]


@dataclass(frozen=True, slots=True)
class Served:
    """What one kind of merging comes to on fresh rows."""

    accuracy: float
    loss: float
    calibrated_loss: float


def run() -> None:
    """Print the table."""
    print(f"{'world':34} labels  taken  equal weights        pooled               best alone  ms")
    for world in worlds():
        for labels in LABELS:
            print(_row(world, labels), flush=True)


def worlds() -> list[World]:
    """Real text first."""
    return [
        World("five mixed models, ten intents", SPLITS, _mixed),
        World("one strong, two weak, ten intents", SPLITS, _strong_and_weak),
        World("five alike, choice of 4", DRAWS, _planted(4, [(1.0, 1.0)] * 5)),
        World("five copies, choice of 4", DRAWS, _planted(4, [(1.0, 1.0)] * 5, shared=1.0)),
        World("five alike, yes or no", DRAWS, _planted(2, [(0.8, 1.0)] * 5)),
        World("five overconfident, choice of 4", DRAWS, _planted(4, [(1.0, 3.0)] * 5, shared=0.8)),
        World("one knows, four guess, yes or no", DRAWS, _planted(2, [(2, 1), *[(0.1, 1)] * 4])),
    ]


def _row(world: World, labels: int) -> str:
    usual, taught, taken, alone, spent = [], [], 0, [], 0.0
    for number in range(world.repetitions):
        p, truth = world.draw(number)
        known, fresh = (p[:labels], truth[:labels]), (p[600:], truth[600:])
        started = time.process_time()
        judged = opinions.fit(*known)
        spent += time.process_time() - started
        taken += judged.pool is not None
        equal = opinions.equal(p.shape[1])
        usual.append(_served(equal, known, fresh))
        taught.append(_served(judged.pool or equal, known, fresh))
        alone.append(max(_accuracy(fresh[0][:, i], fresh[1]) for i in range(p.shape[1])))
    share, cost = taken / world.repetitions, spent / world.repetitions * 1000
    told = f"{_told(usual)}  {_told(taught)}  {np.mean(alone):.3f}      {cost:4.0f}"
    return f"{world.name:34} {labels:6}  {share:5.0%}  {told}"


def _told(served: Sequence[Served]) -> str:
    rows = np.array([(one.accuracy, one.loss, one.calibrated_loss) for one in served])
    return "{:.3f} {:.3f} ({:.3f})".format(*rows.mean(axis=0))


def _served(pool: OpinionPool, known: Rows, fresh: Rows) -> Served:
    pooled = pool.apply(fresh[0])
    sharper = opinions.fit_geometric(
        pool.apply(known[0])[:, None], known[1], np.ones(len(known[1]))
    )
    return Served(
        _accuracy(pooled, fresh[1]),
        _loss(pooled, fresh[1]),
        _loss(sharper.apply(pooled[:, None]), fresh[1]),
    )


def _accuracy(p: Floats, truth: Ints) -> float:
    return float((p.argmax(axis=1) == truth).mean())


def _loss(p: Floats, truth: Ints) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(truth)), truth], 1e-6)).mean())


def _planted(k: int, members: Sequence[Member], shared: float = 0.0) -> Callable[[int], Rows]:
    """Members with an opinion each, of which the part `shared` is the same for all of them.

    Their evidence for the true class is normal with a shift, and they are as sure as that is worth
    times how sharp they are: with a sharpness of 1, each alone is calibrated.
    """

    def draw(number: int) -> Rows:
        random = np.random.default_rng(number)
        n = 600 + FRESH
        truth = random.integers(0, k, n)
        common = random.normal(size=(n, 1, k))
        own = random.normal(size=(n, len(members), k))
        noise = np.sqrt(shared) * common + np.sqrt(1 - shared) * own
        strength = np.array([strength for strength, _ in members])[:, None]
        evidence = strength**2 * np.eye(k)[truth][:, None] + strength * noise
        return _softmax(evidence * np.array([sharp for _, sharp in members])[:, None]), truth

    return draw


def _mixed(split: int) -> Rows:
    """Two that learnt different messages, one of them too sure, and three that know little."""
    p, truth = _members(split)
    return p[:, 1:6], truth


def _strong_and_weak(split: int) -> Rows:
    """A strong one, and two that saw few messages and are all the surer."""
    p, truth = _members(split)
    return p[:, [0, 6, 7]], truth


@lru_cache(maxsize=SPLITS)
def _members(split: int) -> Rows:
    rows = _shuffled(split)
    known, asked = rows[:LEARNT], rows[LEARNT:]
    half = LEARNT // 2
    models = [
        _learnt(_logistic(_letters(), 30.0), known),
        _learnt(_logistic(_letters(), 10.0), known[:half]),
        _learnt(_bayes(CountVectorizer(ngram_range=(1, 2)), 0.1), known[half:]),
        _learnt(_logistic(TfidfVectorizer(), 3.0), known[:100]),
        _learnt(_bayes(CountVectorizer(max_features=60), 1.0), known),
        _learnt(_bayes(CountVectorizer(), 0.01), known[:60]),
        _learnt(_bayes(CountVectorizer(), 1e-3), known[60:100]),
        _learnt(_bayes(CountVectorizer(), 1e-3), known[100:140]),
    ]
    intents = sorted({intent for _, intent in known})
    p = np.stack([_asked(model, asked, intents) for model in models], axis=1)
    return p, np.array([intents.index(intent) for _, intent in asked])


def _letters() -> TfidfVectorizer:
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)


def _logistic(features: TfidfVectorizer, c: float) -> Pipeline:
    return make_pipeline(features, LogisticRegression(C=c))


def _bayes(features: CountVectorizer, alpha: float) -> Pipeline:
    return make_pipeline(features, MultinomialNB(alpha=alpha))


def _learnt(model: Pipeline, rows: Sequence[tuple[str, str]]) -> Pipeline:
    return model.fit([text for text, _ in rows], [intent for _, intent in rows])


def _asked(model: Pipeline, rows: Sequence[tuple[str, str]], intents: list[str]) -> Floats:
    """Its probabilities; an intent that it never met has none."""
    found = model.predict_proba([text for text, _ in rows])
    p = np.zeros((len(rows), len(intents)))
    p[:, [intents.index(intent) for intent in model.classes_]] = found
    return p


def _shuffled(split: int) -> list[tuple[str, str]]:
    rows = _frequent()
    return [rows[index] for index in np.random.default_rng(split).permutation(len(rows))]


@lru_cache
def _frequent() -> list[tuple[str, str]]:
    """The messages of the most frequent intents."""
    with (Path(data_folder()) / "banking77-train.csv").open(newline="") as file:
        rows = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    counts = Counter(intent for _, intent in rows)
    names = sorted(counts, key=lambda name: (-counts[name], name))[:INTENTS]
    return [row for row in rows if row[1] in names]


def _softmax(z: Floats) -> Floats:
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return shares
